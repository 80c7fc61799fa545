"""A parser's state in plain Python lists, and everything that can come of it by brute force."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

SHIFT, LEFT, RIGHT, SWAP = "shift", "left", "right", "swap"


@dataclass(frozen=True)
class Plain:
    """One sentence of n words; `system` is arc-standard, arc-hybrid or swap."""

    system: str
    n: int
    single_root: bool = True
    stack: tuple[int, ...] = (0,)
    buffer: tuple[int, ...] = ()
    arcs: frozenset[tuple[int, int, int]] = field(default=frozenset())  # head, dependent, label

    @staticmethod
    def start(system: str, n: int, single_root: bool = True) -> Plain:
        return Plain(system, n, single_root, buffer=tuple(range(1, n + 1)))

    @property
    def finished(self) -> bool:
        return not self.buffer and self.stack == (0,)

    def moves(self) -> set[str]:
        found = {SHIFT} if self.buffer else set()
        if len(self.stack) > 1 and (len(self.stack) > 2 or not self.single_root or not self.buffer):
            found.add(RIGHT)
        if self.system == "arc-hybrid":
            return found | ({LEFT} if self.buffer and self.stack[-1] != 0 else set())
        if len(self.stack) > 2:
            found.add(LEFT)
            if self.system == "swap" and self.stack[-2] < self.stack[-1]:
                found.add(SWAP)
        return found

    def take(self, move: str, label: int = 0) -> Plain:
        *below, top = self.stack
        if move == SHIFT:
            return self._with((*self.stack, self.buffer[0]), self.buffer[1:])
        if move == SWAP:
            return self._with((*below[:-1], top), (below[-1], *self.buffer))
        if move == RIGHT:
            return self._with(tuple(below), self.buffer, (below[-1], top, label))
        if self.system == "arc-hybrid":
            return self._with(tuple(below), self.buffer, (self.buffer[0], top, label))
        return self._with((*below[:-1], top), self.buffer, (top, below[-1], label))

    def _with(self, stack: tuple[int, ...], buffer: tuple[int, ...], arc: tuple[int, int, int] | None = None) -> Plain:
        arcs = self.arcs if arc is None else self.arcs | {arc}
        return Plain(self.system, self.n, self.single_root, stack, buffer, arcs)

    def heads(self) -> list[int]:
        by_word = {dependent: head for head, dependent, _ in self.arcs}
        return [by_word.get(word, 0) for word in range(1, self.n + 1)]

    def labels(self) -> list[int]:
        by_word = {dependent: label for _, dependent, label in self.arcs}
        return [by_word.get(word, 0) for word in range(1, self.n + 1)]

    def features(self) -> list[int]:
        """As `SLOTS` names them; -1 for none."""
        tops = [self.stack[-1 - depth] if len(self.stack) > depth else -1 for depth in range(3)]
        ahead = self.buffer[0] if self.buffer else -1

        def child(word: int, side: int) -> int:
            found = [d for h, d, _ in self.arcs if h == word and (d - h) * side > 0]
            return (min if side < 0 else max)(found, default=-1)

        nearby = [child(word, side) for word in tops[:2] for side in (-1, 1)]
        return [*tops, ahead, *nearby, child(ahead, -1)]


@cache
def outcomes(state: Plain) -> frozenset[tuple[int, ...]]:
    """The heads of every tree that can still be built."""
    if state.finished:
        return frozenset([tuple(state.heads())])
    return frozenset().union(*(outcomes(state.take(move)) for move in state.moves()))


def loss(state: Plain, gold: tuple[int, ...]) -> int:
    """The fewest wrong heads that a tree built from here can have."""
    return min(sum(a != b for a, b in zip(heads, gold, strict=True)) for heads in outcomes(state))


def reachable(state: Plain) -> set[Plain]:
    """Every state that can come, this one included."""
    found, waiting = {state}, [state]
    while waiting:
        here = waiting.pop()
        after = {here.take(move) for move in here.moves()} - found
        found |= after
        waiting.extend(after)
    return found
