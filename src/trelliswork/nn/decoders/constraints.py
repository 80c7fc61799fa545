"""What may be generated: constraints that say, after any prefix, which symbols may follow.

A constraint has numbered states. `Constraint` is what generation asks; `PrefixConstraint` numbers states of any kind,
such as parser configurations; `AcceptorConstraint` follows the paths of an automaton.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.acceptor import Acceptor
from trelliswork.errors import ConstraintError
from trelliswork.runtime.bridge import Array
from trelliswork.runtime.shapes import Bool, Int

NEVER = np.iinfo(np.int16).max  # symbols to the end, where there is no way to it
DONE = 0  # the state of what has ended


class Constraint(Protocol):
    """Which symbols may follow. States are numbers, one for each hypothesis."""

    def initial(self, batch: int) -> Int[Tensor, "batch 1"]:
        """The state before the first symbol of each input."""

    def allowed(
        self, state: Int[Tensor, "batch beam"], room: Int[Tensor, "batch beam"]
    ) -> Bool[Tensor, "batch beam v"]:
        """True at the symbols that may come next; `room` is how many may still come, the end included.

        A constraint that knows how long it takes to end allows only what can end in time.
        """

    def step(self, state: Int[Tensor, "batch beam"], symbols: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
        """The state after one more symbol, which was allowed."""


class PrefixConstraint:
    """Numbers states of any hashable kind as they are met, and remembers what may follow each.

    A subclass says where an input starts, what follows a state, and how far from its end a state is.
    """

    def __init__(self, n_symbols: int, end: int) -> None:
        self.n_symbols, self.end = n_symbols, end
        self._numbers: dict[Hashable, int] = {}
        self._states: list[Hashable] = []
        self._number(("the end",))
        self._following: list[dict[int, int] | None] = [{}]
        self._needed: list[Array | None] = [self._row({})]

    @abstractmethod
    def start(self, row: int) -> Hashable:
        """The state before the first symbol of an input."""

    @abstractmethod
    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        """The states that follow, by symbol; the end of the string is not among the symbols."""

    @abstractmethod
    def distance(self, state: Hashable) -> int | None:
        """The fewest symbols to the end, which counts as one: 1 where the string may end; None where it never does.

        A lower bound is enough; 1 everywhere says that a string may end after any prefix.
        """

    def initial(self, batch: int) -> Int[Tensor, "batch 1"]:
        starts = [self._number(self.start(row)) for row in range(batch)]
        for row, number in enumerate(starts):
            if (self._needed_of(number) == NEVER).all():
                raise ConstraintError(f"the constraint of input {row} accepts no string; look for a grammar of nothing")
        return torch.tensor(starts)[:, None]

    def allowed(
        self, state: Int[Tensor, "batch beam"], room: Int[Tensor, "batch beam"]
    ) -> Bool[Tensor, "batch beam v"]:
        found, places = np.unique(state.cpu().numpy(), return_inverse=True)
        needed = np.stack([self._needed_of(int(number)) for number in found])[places.reshape(state.shape)]
        limit = np.maximum(room.cpu().numpy()[..., None], needed.min(-1, keepdims=True))
        return torch.from_numpy((needed <= limit) & (needed < NEVER)).to(state.device)

    def step(self, state: Int[Tensor, "batch beam"], symbols: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
        pairs = zip(state.flatten().tolist(), symbols.flatten().tolist(), strict=True)
        return torch.tensor([self._follow(*pair) for pair in pairs], device=state.device).view(state.shape)

    def _follow(self, number: int, symbol: int) -> int:
        return DONE if symbol == self.end else self._following_of(number).get(symbol, DONE)

    def _number(self, state: Hashable) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _following_of(self, number: int) -> dict[int, int]:
        self._following += [None] * (len(self._states) - len(self._following))
        found = self._following[number]
        if found is None:
            found = {symbol: self._number(next_) for symbol, next_ in self.successors(self._states[number]).items()}
            self._following[number] = found
        return found

    def _needed_of(self, number: int) -> Array:
        """How many symbols it takes to the end with each symbol first."""
        self._needed += [None] * (len(self._states) - len(self._needed))
        found = self._needed[number]
        if found is None:
            rest = {symbol: self.distance(self._states[n]) for symbol, n in self._following_of(number).items()}
            found = self._row({symbol: 1 + steps for symbol, steps in rest.items() if steps is not None})
            if self.distance(self._states[number]) == 1:
                found[self.end] = 1
            self._needed += [None] * (len(self._states) - len(self._needed))
            self._needed[number] = found
        return found

    def _row(self, needed: Mapping[int, int]) -> Array:
        row = np.full(self.n_symbols, NEVER, np.int16)
        row[list(needed)] = list(needed.values())
        return row


class AcceptorConstraint(PrefixConstraint):
    """Only the strings of an acceptor, whatever their weights; `symbols` are the names of the symbols by number.

    >>> colours = Acceptor.from_strings([["dark", "red"], ["blue"]])
    >>> only = AcceptorConstraint(colours, ["<end>", "blue", "dark", "red"], end=0)
    >>> only.allowed(only.initial(1), torch.tensor([[9]]))
    tensor([[[False,  True,  True, False]]])
    """

    def __init__(self, acceptor: Acceptor, symbols: Sequence[str], end: int) -> None:
        super().__init__(len(symbols), end)
        machine = acceptor.connect().remove_epsilon().connect().machine
        table, index = acceptor.symbols, {name: number for number, name in enumerate(symbols)}
        self._starts = frozenset((machine.initial > -torch.inf).nonzero().flatten().tolist())
        self._finals = frozenset((machine.final > -torch.inf).nonzero().flatten().tolist())
        self._arcs: dict[int, list[tuple[int, int]]] = {}
        for source, target, label in zip(machine.source, machine.target, machine.input, strict=True):
            name = str(label) if table is None else table.name(int(label))
            if name in index:
                self._arcs.setdefault(int(source), []).append((index[name], int(target)))
        self._steps = self._steps_to_end()

    def _steps_to_end(self) -> dict[int, int]:
        """Breadth first from the final states, backwards."""
        before: dict[int, set[int]] = {}
        for source, arcs in self._arcs.items():
            for _, target in arcs:
                before.setdefault(target, set()).add(source)
        steps, newest = dict.fromkeys(self._finals, 1), set(self._finals)
        while newest:
            newest = {source for state in newest for source in before.get(state, ())} - steps.keys()
            steps |= dict.fromkeys(newest, max(steps.values()) + 1)
        return steps

    def start(self, row: int) -> Hashable:
        return self._starts

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, frozenset)
        found: dict[int, set[int]] = {}
        for each in state:
            for symbol, target in self._arcs.get(each, ()):
                found.setdefault(symbol, set()).add(target)
        return {symbol: frozenset(targets) for symbol, targets in found.items()}

    def distance(self, state: Hashable) -> int | None:
        assert isinstance(state, frozenset)
        return min((self._steps[each] for each in state if each in self._steps), default=None)
