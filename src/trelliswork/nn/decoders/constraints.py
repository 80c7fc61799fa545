"""Constraints on generated strings, which determine the symbols that may follow each prefix.

`Constraint` is the interface that generation uses; its states are numbers. `PrefixConstraint` numbers states of any
kind, such as parser configurations; `AcceptorConstraint` follows the paths of an automaton.
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
from trelliswork.runtime.arrays import Array, Bool, Int

NEVER = np.iinfo(np.int16).max  # number of symbols to the end if it cannot be reached
DONE = 0  # the state of strings that have ended


class Constraint(Protocol):
    """Interface of constraints; states are numbers, one for each hypothesis."""

    def initial(self, batch: int) -> Int[Tensor, "batch 1"]:
        """Return the state before the first symbol of each input."""

    def allowed(
        self, state: Int[Tensor, "batch beam"], room: Int[Tensor, "batch beam"]
    ) -> Bool[Tensor, "batch beam v"]:
        """Return True at the symbols that may come next.

        Args:
            state: The state of each hypothesis.
            room: How many symbols may still follow, including the end. A constraint that knows the distance to the end
                allows only symbols after which the string can end in time.
        """

    def step(self, state: Int[Tensor, "batch beam"], symbols: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
        """Return the state after one more symbol, which must be allowed."""


class PrefixConstraint:
    """Base class for constraints with hashable states, which get numbers when they are first reached.

    Subclasses define the initial state of an input, the successors of a state, and its distance to the end. Successors
    and distances are computed once for each state.
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
        """Return the state before the first symbol of an input."""

    @abstractmethod
    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        """Return the next states by symbol, without the end of the string."""

    @abstractmethod
    def distance(self, state: Hashable) -> int | None:
        """Return the fewest symbols to the end, including the end itself; None if it cannot be reached.

        It is 1 if and only if the string may end here; for other states a lower bound is enough.
        """

    def initial(self, batch: int) -> Int[Tensor, "batch 1"]:
        starts = [self._number(self.start(row)) for row in range(batch)]
        for row, number in enumerate(starts):
            if (self._needed_of(number) == NEVER).all():
                raise ConstraintError(f"the constraint of input {row} accepts no string; check its grammar")
        return torch.tensor(starts)[:, None]

    def allowed(
        self, state: Int[Tensor, "batch beam"], room: Int[Tensor, "batch beam"]
    ) -> Bool[Tensor, "batch beam v"]:
        distinct, places = np.unique(state.cpu().numpy(), return_inverse=True)
        needed = np.stack([self._needed_of(int(number)) for number in distinct])[places.reshape(state.shape)]
        # If no symbol leads to the end in time, those on the shortest way to it are allowed.
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
        following = self._following[number]
        if following is None:
            successors = self.successors(self._states[number])
            following = {symbol: self._number(next_state) for symbol, next_state in successors.items()}
            self._following[number] = following
        return following

    def _needed_of(self, number: int) -> Array:
        """Return the fewest symbols to the end for each next symbol, itself included."""
        self._needed += [None] * (len(self._states) - len(self._needed))
        needed = self._needed[number]
        if needed is None:
            rest = {symbol: self.distance(self._states[n]) for symbol, n in self._following_of(number).items()}
            needed = self._row({symbol: 1 + steps for symbol, steps in rest.items() if steps is not None})
            if self.distance(self._states[number]) == 1:
                needed[self.end] = 1
            self._needed += [None] * (len(self._states) - len(self._needed))  # `_following_of` may number new states
            self._needed[number] = needed
        return needed

    def _row(self, needed: Mapping[int, int]) -> Array:
        row = np.full(self.n_symbols, NEVER, np.int16)
        row[list(needed)] = list(needed.values())
        return row


class AcceptorConstraint(PrefixConstraint):
    """Allows only the strings of an acceptor, whatever their weights.

    Args:
        acceptor: The automaton.
        symbols: Names of the output symbols by number; arcs with other labels are ignored.
        end: Number of the symbol that ends a string.

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
        """Return the distances of states to the end, by breadth-first search backwards from the final states."""
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
        targets_of: dict[int, set[int]] = {}  # by symbol: the subset construction, state by state
        for source in state:
            for symbol, target in self._arcs.get(source, ()):
                targets_of.setdefault(symbol, set()).add(target)
        return {symbol: frozenset(targets) for symbol, targets in targets_of.items()}

    def distance(self, state: Hashable) -> int | None:
        assert isinstance(state, frozenset)
        return min((self._steps[q] for q in state if q in self._steps), default=None)
