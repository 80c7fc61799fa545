"""The most probable strings: prefixes grow symbol by symbol, each with the exact probability of all its scripts.

No string is more probable than its prefixes, so prefixes lighter than the best whole strings found are dropped without
loss, and at most 1/p prefixes of one length weigh p or more. What is lost by the limit `width` is known: the answer is
certain if no prefix that was left out weighs more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.nn.edit import search_kernels
from trelliswork.nn.edit.network import EditNetwork
from trelliswork.nn.edit.windows import Windows
from trelliswork.runtime.bridge import Array
from trelliswork.runtime.shapes import Float, Int
from trelliswork.runtime.threads import over_rows

FIRST, WIDER = 4, 4  # the width that is tried first, and how much wider the next one is
MOST_CELLS = 4_000  # of the columns of a row: very long sources are not searched more widely
NEG_INF = -np.inf
AT_LEAST, PER_SYMBOL = 100, 5  # symbols that are written at most: for a model that never wants to end


@dataclass(frozen=True)
class Found:
    """A string with log p(string | x), and log p(symbol | x, symbols before it) of each of its symbols."""

    symbols: tuple[int, ...]
    log_prob: float
    shares: tuple[float, ...]


NOTHING = Found((), NEG_INF, ())  # the answer where writing did not end


@dataclass(frozen=True)
class Answers:
    """The best strings of a row, and whether no others can be better."""

    best: list[Found]
    certain: bool


@dataclass
class Inputs:
    """What the search knows of a batch of x: cells' vectors, lengths, what copying writes, and how many symbols."""

    left: Float[Tensor, "batch n+1 d"]
    lengths: Array
    copies: Array
    n_symbols: int

    def of(self, rows: Array) -> Inputs:
        longest = int(self.lengths[rows].max())
        left = self.left[torch.from_numpy(rows)][:, : longest + 1]
        return Inputs(left, self.lengths[rows], np.ascontiguousarray(self.copies[rows, : longest or 1]), self.n_symbols)


def best_strings(network: EditNetwork, inputs: Inputs, k: int, width: int, *, best_path: bool = False) -> list[Answers]:
    """The k best strings of each row; wider and wider beams until they are certain, or `width` is reached.

    The first of them is the same whatever k: heavy prefixes never give way to the lighter ones that a larger k keeps.
    """
    answers = [Answers([], False) for _ in inputs.lengths]
    rows, now = np.arange(len(answers)), min(FIRST, width)
    while len(rows):
        found = Beam(network, inputs.of(rows), k, now, best_path).run()
        for row, new in zip(rows.tolist(), found, strict=True):
            answers[row] = _together(answers[row], new, k)
        room = np.minimum(width, MOST_CELLS // (inputs.lengths[rows] + 1))
        certain = np.array([answers[row].certain for row in rows.tolist()])
        rows, now = rows[~certain & (now < room)], min(now * WIDER, width)
    return [each if each.best else Answers([NOTHING], False) for each in answers]


def widths_tried(n: int, width: int) -> list[int]:
    """The beams of a source of n symbols that none makes certain, the narrowest first."""
    tried = [min(FIRST, width)]
    while tried[-1] < min(width, MOST_CELLS // (n + 1)):
        tried.append(min(tried[-1] * WIDER, width))
    return tried


def _together(old: Answers, new: Answers, k: int) -> Answers:
    """The best strings of two searches."""
    every = {each.symbols: each for each in [*old.best, *new.best]}
    best = sorted(every.values(), key=lambda each: (-each.log_prob, each.symbols))[:k]
    return Answers(best, new.certain)


@dataclass
class Beam:
    """One search with a fixed width; hypotheses of all rows and levels are numbered as they come."""

    network: EditNetwork
    inputs: Inputs
    k: int
    width: int
    best_path: bool
    parents: list[Array] = field(default_factory=list)
    symbols: list[Array] = field(default_factory=list)
    masses: list[Array] = field(default_factory=list)

    def run(self) -> list[Answers]:
        n_rows, n = len(self.inputs.lengths), int(self.inputs.lengths.max())
        best, numbers = np.full((n_rows, self.k), NEG_INF), np.full((n_rows, self.k), -1)
        lost = np.full(n_rows, NEG_INF)
        rows, starts = np.arange(n_rows), np.arange(n_rows + 1)
        base, arriving = np.zeros(n_rows, np.int64), np.zeros((n_rows, 1))
        hidden = self.network.reader.hidden_size
        zero = self.inputs.left.new_zeros(n_rows, hidden)
        state, number = (zero, zero), 0
        self._keep(np.full(n_rows, -1), np.full(n_rows, -1), np.zeros(n_rows))
        for _ in range(AT_LEAST + PER_SYMBOL * n):
            column = self._column(rows, state, Windows.around(base, arriving, self.inputs.lengths[rows]))
            lost[rows[column.windows.cut(column.alpha)]] = 0.0
            search_kernels.finish(column.ends, starts, number, best, numbers)
            parents, symbols, masses, starts = self._survivors(column.masses, starts, best[:, -1], lost)
            if not len(parents):
                break
            number += len(rows)
            base, arriving = column.windows.first[parents], column.after(parents, symbols, self.best_path)
            chosen = torch.from_numpy(parents)
            state, rows = (column.state[0][chosen], column.state[1][chosen]), rows[parents]
            self._keep(parents + number - len(column.ends), symbols, masses)
        else:
            lost[rows] = 0.0
        return self._answers(best, numbers, lost)

    def _keep(self, parents: Array, symbols: Array, masses: Array) -> None:
        self.parents.append(parents)
        self.symbols.append(symbols)
        self.masses.append(masses)

    def _column(self, rows: Array, state: tuple[Tensor, Tensor], windows: Windows) -> Column:
        """The lattice's next column for each hypothesis: what the network says in its cells, and the sums."""
        inputs, network, arriving = self.inputs, self.network, windows.arriving
        right, after = network.read_on(torch.from_numpy(self.symbols[-1]), state)
        lengths, copies = windows.sizes, windows.of(inputs.copies, rows)
        offsets = np.cumsum(lengths + 1) - (lengths + 1)
        which = np.repeat(np.arange(len(rows)), lengths + 1)  # the hypothesis of each cell
        places = (rows * inputs.left.shape[1] + windows.first - offsets)[which] + np.arange(len(which))
        left, ahead = inputs.left.flatten(0, 1)[torch.from_numpy(places)], right[torch.from_numpy(which)]
        hidden = left.add_(ahead).tanh_()
        work = len(rows), hidden.numel() * 4
        outputs = network.outputs(hidden).numpy()
        ends, masses = np.empty(len(rows)), np.empty((len(rows), inputs.n_symbols))
        given = outputs, offsets, lengths, copies, self.best_path
        over_rows(search_kernels.columns, *work, *given, arriving, ends, masses)
        ends[~windows.whole] = NEG_INF
        return Column(outputs, offsets, windows, copies, ends, masses, after)

    def _survivors(self, masses: Array, starts: Array, bounds: Array, lost: Array) -> tuple[Array, ...]:
        """Parents, symbols and masses of the hypotheses that go on, and where those of each row begin."""
        room = (len(starts) - 1) * self.width
        parents, symbols, found = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        count = search_kernels.survivors(masses, starts, bounds, self.width, parents, symbols, found, lost)
        parents, symbols, found = parents[:count], symbols[:count], found[:count]
        return parents, symbols, found, np.searchsorted(parents, starts)

    def _answers(self, best: Array, numbers: Array, lost: Array) -> list[Answers]:
        parents, symbols, masses = (np.concatenate(each) for each in (self.parents, self.symbols, self.masses))

        def spelled(number: int, log_prob: float) -> Found:
            written, shares = [], []
            while parents[number] >= 0:
                written.append(int(symbols[number]))
                shares.append(float(masses[number] - masses[parents[number]]))
                number = int(parents[number])
            return Found(tuple(written[::-1]), log_prob, tuple(shares[::-1]))

        found = []
        for r in range(len(best)):
            known = [(int(number), float(p)) for number, p in zip(numbers[r], best[r], strict=True) if p > NEG_INF]
            found.append(Answers([spelled(*each) for each in known], bool(lost[r] <= best[r, -1])))
        return found


@dataclass
class Column:
    """Of all hypotheses: probabilities in their cells, α, ends, masses of longer prefixes, and the reader's state."""

    outputs: Array
    offsets: Array
    windows: Windows
    copies: Array
    ends: Array
    masses: Array
    state: tuple[Tensor, Tensor]

    @property
    def alpha(self) -> Array:
        """What arrives, and what deletions make of it, in its place."""
        return self.windows.arriving

    def after(self, parents: Array, symbols: Array, best_path: bool) -> Array:
        """What comes into the columns of the longer prefixes."""
        arriving: Any = np.empty((len(parents), self.alpha.shape[1]))
        given = self.outputs, (self.offsets, self.windows.sizes, self.copies), best_path, self.alpha
        over_rows(search_kernels.arrive, len(parents), arriving.size * 8, *given, parents, symbols, arriving)
        return arriving


def search_inputs(
    network: EditNetwork, sources: Int[Tensor, "batch n"], copies: Tensor, lengths: Tensor, n_symbols: int
) -> Inputs:
    """Encode a batch for the search."""
    left = network.encode(sources, lengths).contiguous()
    copied = copies.numpy() if copies.shape[1] else np.full((len(copies), 1), -1)
    return Inputs(left, lengths.numpy(), np.ascontiguousarray(copied), n_symbols)
