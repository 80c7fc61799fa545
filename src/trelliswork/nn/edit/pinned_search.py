"""Search for the best strings that agree with pins, which fix the output of parts of x.

An output symbol belongs to the symbol of x that was read last; symbols inserted before the first one belong to none. So
a pin on x_i .. x_{j-1} fixes what is written from reading x_i until x_j is read. The edit lattice gets a place for each
row and each number of symbols of the pin that have been written there; steps that write other symbols are left out. The
mass of a prefix is that of the paths to it that agree with the pins, an upper bound for every longer string.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from trelliswork.nn.edit.kernels import COPY, DELETE, INSERT, N_OPERATIONS, SUBSTITUTE
from trelliswork.nn.edit.search import PrefixBeam
from trelliswork.runtime.arrays import NEG_INF, Array

Pin = tuple[int, int, tuple[int, ...]]  # start, end, numbers of the symbols that are written
Place = tuple[int, int]  # a row, and how many symbols of the pin on the symbol before it have been written


@dataclass(frozen=True)
class PinnedLattice:
    """The lattice of one x of `n` symbols under its pins: where steps lead, and which symbols they may write."""

    n: int
    n_symbols: int
    pins: Sequence[Pin]

    def _pin_on(self, i: int) -> Pin | None:
        return next((pin for pin in self.pins if pin[0] <= i < pin[1]), None)

    @cached_property
    def places(self) -> list[Place]:
        """Return all places, sorted by row."""
        places = []
        for row in range(self.n + 1):
            pin = self._pin_on(row - 1)
            places += [(row, k) for k in range(1 if pin is None else len(pin[2]) + 1)]
        return places

    @cached_property
    def rows(self) -> Array:
        return np.array([row for row, _ in self.places])

    def _progress(self, place: Place) -> int | None:
        """Return how many symbols of the pin on x_row precede its reading, or None if it must not be read yet."""
        row, k = place
        before, pin = self._pin_on(row - 1), self._pin_on(row) if row < self.n else None
        if before is not None and before is pin:
            return k
        return 0 if before is None or k == len(before[2]) else None

    @cached_property
    def final(self) -> Array:
        """Return for each place whether the string may end there."""
        return np.array([row == self.n and self._progress((row, k)) is not None for row, k in self.places])

    @cached_property
    def steps(self) -> tuple[Array, Array, Array]:
        """Return the places that steps lead to, -1 for steps that are not allowed.

        Returns:
            Targets of deletions [place], of insertions [place, symbol], and of reading a symbol of x and writing one
            [place, symbol].
        """
        number = {place: i for i, place in enumerate(self.places)}
        deleting = np.full(len(number), -1)
        inserting, reading = np.full((2, len(number), self.n_symbols), -1)
        for place, i in number.items():
            row, k = place
            self._write(inserting[i], self._pin_on(row - 1), k, row, number)
            progress = self._progress(place)
            if row < self.n and progress is not None:
                deleting[i] = number[row + 1, progress]
                self._write(reading[i], self._pin_on(row), progress, row + 1, number)
        return deleting, inserting, reading

    def _write(self, to: Array, pin: Pin | None, k: int, row: int, number: dict[Place, int]) -> None:
        """Fill in the targets of the symbols that may be written into `row` after `k` symbols of a pin."""
        if pin is None:
            to[:] = number[row, 0]
        elif k < len(pin[2]) and pin[2][k] >= 0:
            to[pin[2][k]] = number[row, k + 1]


@dataclass
class PinnedBeam(PrefixBeam):
    """Search for one x among the strings that agree with pins.

    `_arriving` and `_alpha` [hypothesis, place] are log probabilities of the prefix being written when a place is
    reached, before and after deletions.
    """

    lattice: PinnedLattice = field(kw_only=True)

    def __post_init__(self) -> None:
        self._arriving = np.full((1, len(self.lattice.places)), NEG_INF)
        self._arriving[0, 0] = 0.0
        self._state = (self.inputs.left.new_zeros(1, self.network.reader.hidden_size),) * 2

    def reach(self, rows: Array) -> tuple[Array, Array, Array]:
        right, self._after = self.network.read_on(torch.from_numpy(self.symbols[-1]), self._state)
        self._inserting, self._reading, deleting = self._log_probs(right)
        self._alpha = alpha = self._with_deletions(self._arriving, deleting)
        ends = self._plus.reduce(np.where(self.lattice.final, alpha, NEG_INF), axis=1) + deleting[:, self.lattice.n]
        return ends, self._masses(alpha), np.zeros(len(rows), np.bool_)

    def follow(self, parents: Array, symbols: Array) -> None:
        """Take the longer prefixes, with the mass that arrives at their places by writing their last symbols."""
        _, inserted, read = self.lattice.steps
        self._arriving = np.full((len(parents), self._alpha.shape[1]), NEG_INF)
        for new, (h, y) in enumerate(zip(parents, symbols, strict=True)):
            for to, step in ((inserted[:, y], self._inserting), (read[:, y], self._reading)):
                at = np.flatnonzero(to >= 0)
                moved = self._alpha[h, at] + step[h, self.lattice.rows[at], y]
                self._plus.at(self._arriving[new], to[at], moved)
        chosen = torch.from_numpy(parents)
        self._state = self._after[0][chosen], self._after[1][chosen]

    @property
    def _plus(self) -> np.ufunc:
        """Return ⊕ of log probabilities: of the sum over paths, or of the best path."""
        return np.maximum if self.best_path else np.logaddexp

    def _log_probs(self, right: torch.Tensor) -> tuple[Array, Array, Array]:
        """Return log p of inserting and of substituting each symbol [hypothesis, row, symbol], and of deletions."""
        outputs = self.network.outputs(torch.tanh(self.inputs.left + right[:, None])).double()
        n, v = self.lattice.n, self.network.n_targets
        copies = self.inputs.copies[0, :n] if n else np.empty(0, np.int64)
        operations = outputs[..., :N_OPERATIONS].clone()
        operations[:, n, SUBSTITUTE] = operations[:, n, COPY] = NEG_INF
        operations[:, torch.from_numpy(np.flatnonzero(copies < 0)), COPY] = NEG_INF
        chosen = operations.log_softmax(-1).numpy()
        symbols = np.full((len(right), n + 1, self.lattice.n_symbols), NEG_INF)
        symbols[..., :v] = outputs[..., N_OPERATIONS:].log_softmax(-1).numpy()
        inserting, reading = chosen[..., INSERT, None] + symbols, chosen[..., SUBSTITUTE, None] + symbols
        for i in np.flatnonzero(copies >= 0):
            reading[:, i, copies[i]] = self._plus(reading[:, i, copies[i]], chosen[:, i, COPY])
        return inserting, reading, chosen[..., DELETE]

    def _with_deletions(self, arriving: Array, deleting: Array) -> Array:
        """Return α: the mass that arrives at each place, together with what comes there by deletions."""
        alpha, (to, _, _) = arriving.copy(), self.lattice.steps
        for place in np.flatnonzero(to >= 0):
            moved = alpha[:, place] + deleting[:, self.lattice.rows[place]]
            alpha[:, to[place]] = self._plus(alpha[:, to[place]], moved)
        return alpha

    def _masses(self, alpha: Array) -> Array:
        """Return log p(the prefix and one more symbol are written) [hypothesis, symbol]."""
        _, inserted, read = self.lattice.steps
        rows, before = self.lattice.rows, alpha[:, :, None]
        by_inserting = np.where(inserted >= 0, before + self._inserting[:, rows], NEG_INF)
        by_reading = np.where(read >= 0, before + self._reading[:, rows], NEG_INF)
        masses: Array = self._plus.reduce(np.concatenate([by_inserting, by_reading], 1), axis=1)
        return masses
