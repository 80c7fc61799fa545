"""Search for the most probable strings: prefixes grow symbol by symbol, each with the probability of all its scripts.

No string is more probable than its prefixes, so prefixes with less mass than the best whole strings so far are dropped
without loss; and at most 1/p prefixes of one length have mass p or more. The loss by the limit `width` is known: the
result is certain if no dropped prefix has more mass than the k-th best string.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.nn.edit import search_kernels
from trelliswork.nn.edit.network import EditNetwork
from trelliswork.runtime.arrays import NEG_INF, Array, Float, Int
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.frontier import path_to

# The part of a lattice's column that has mass: at any time, a long source is being read near one position.

NEGLIGIBLE = 60.0  # nats below the largest probability of a column: adding e^-60 to 1 changes nothing in float64
AHEAD = 64  # positions after the last one with mass, which consecutive deletions can reach


@dataclass(frozen=True)
class Windows:
    """Positions `first`..`last` of the source of each hypothesis, and the mass that arrives in the cells there.

    Before `first` no mass arrives. After `last` it can only arrive by deleting `AHEAD` symbols in a row, which `cut`
    reports. A window is `whole` if its `last` position is the end of the source.
    """

    first: Array
    last: Array
    whole: Array
    arriving: Array

    @staticmethod
    def around(base: Array, arriving: Array, lengths: Array) -> Windows:
        """Return the windows of columns.

        Args:
            base: Position of the first entry of each column.
            arriving: Log mass that arrives at each position from `base` on, [hypothesis, positions].
            lengths: Lengths of the sources.
        """
        # Only positions between the first and the last one with mass are kept, and AHEAD more.
        heavy = arriving >= arriving.max(1, keepdims=True) - NEGLIGIBLE
        skipped = heavy.argmax(1)
        end = heavy.shape[1] - 1 - heavy[:, ::-1].argmax(1)
        first, last = base + skipped, np.minimum(lengths, base + end + AHEAD)
        places = skipped[:, None] + np.arange(int((last - first).max()) + 1)
        known = np.take_along_axis(arriving, places.clip(max=arriving.shape[1] - 1), 1)
        return Windows(first, last, last == lengths, np.where(places < arriving.shape[1], known, NEG_INF))

    @property
    def sizes(self) -> Array:
        """Return the number of source symbols in each window."""
        sizes: Array = self.last - self.first
        return sizes

    def of(self, table: Array, rows: Array) -> Array:
        """Return the entries of a table [batch, n, ...] in each window; entries after its end are arbitrary."""
        width = max(self.arriving.shape[1] - 1, 1)
        places = self.first[:, None] + np.arange(width)
        entries: Array = table[rows[:, None], places.clip(max=table.shape[1] - 1)]
        return entries

    def cut(self, alpha: Array) -> Array:
        """Return for each window whether mass has reached its last position although that is not the end."""
        at_last = np.take_along_axis(alpha, self.sizes[:, None], 1)[:, 0]
        is_cut: Array = ~self.whole & (at_last >= alpha.max(1) - NEGLIGIBLE)
        return is_cut


FIRST, WIDER = 4, 4  # the first width, and the factor from one width to the next
MOST_CELLS = 4_000  # in the columns of a row: for very long sources the beam is not widened further
AT_LEAST, PER_SYMBOL = 100, 5  # limit of the output length, 100 + 5 n: some models never end


@dataclass(frozen=True)
class ScoredString:
    """A string with log p(string | x), and log p(symbol | x, symbols before it) of each of its symbols."""

    symbols: tuple[int, ...]
    log_prob: float
    shares: tuple[float, ...]


NO_STRING = ScoredString((), NEG_INF, ())  # the result if no string ended


@dataclass(frozen=True)
class SearchResult:
    """The best strings of a row; `certain` if no other string can be better."""

    best: list[ScoredString]
    certain: bool


@dataclass
class SearchInputs:
    """A batch of encoded x.

    Attributes:
        left: The vectors that the positions of x add in the cells.
        lengths: The length of each x.
        copies: The symbol that copying x_i writes, -1 if none, [batch, n].
        n_symbols: Number of symbols that can be written.
    """

    left: Float[Tensor, "batch n+1 d"]
    lengths: Array
    copies: Array
    n_symbols: int

    def of(self, rows: Array) -> SearchInputs:
        """Return the inputs of some rows, padded to the longest of them."""
        longest = int(self.lengths[rows].max())
        left = self.left[torch.from_numpy(rows)][:, : longest + 1]
        copies = np.ascontiguousarray(self.copies[rows, : longest or 1])
        return SearchInputs(left, self.lengths[rows], copies, self.n_symbols)


def best_strings(
    network: EditNetwork, inputs: SearchInputs, k: int, width: int, *, best_path: bool = False
) -> list[SearchResult]:
    """Return the k best strings of each row, from beams that widen until the result is certain.

    The best string does not depend on k: prefixes with more mass are never dropped for the lighter ones that a larger k
    keeps.

    Args:
        network: The network.
        inputs: The encoded x.
        k: Number of strings.
        width: Width of the widest beam.
        best_path: Rank strings by their most probable script instead of the sum over all scripts.
    """
    results = [SearchResult([], False) for _ in inputs.lengths]
    rows, now = np.arange(len(results)), min(FIRST, width)
    while len(rows):
        widened = StringBeam(network, inputs.of(rows), k, now, best_path).run()
        for row, new in zip(rows.tolist(), widened, strict=True):
            results[row] = _merge(results[row], new, k)
        most = np.minimum(width, MOST_CELLS // (inputs.lengths[rows] + 1))
        certain = np.array([results[row].certain for row in rows.tolist()])
        rows, now = rows[~certain & (now < most)], min(now * WIDER, width)
    return [result if result.best else SearchResult([NO_STRING], False) for result in results]


def beam_widths(n: int, width: int) -> list[int]:
    """Return the widths of all beams that are tried for a source of n symbols if none is certain, in rising order."""
    widths = [min(FIRST, width)]
    while widths[-1] < min(width, MOST_CELLS // (n + 1)):
        widths.append(min(widths[-1] * WIDER, width))
    return widths


def _merge(old: SearchResult, new: SearchResult, k: int) -> SearchResult:
    """Return the k best strings of two searches."""
    by_symbols = {string.symbols: string for string in [*old.best, *new.best]}
    best = sorted(by_symbols.values(), key=lambda string: (-string.log_prob, string.symbols))[:k]
    return SearchResult(best, new.certain)


@dataclass
class PrefixBeam(ABC):
    """One search with a fixed width, in which all prefixes of one length are continued together.

    Hypotheses of all rows and levels are numbered in the order of their creation. `parents`, `symbols` and `masses`
    have for each level the parent, last symbol and log mass of its hypotheses.
    """

    network: EditNetwork
    inputs: SearchInputs
    k: int
    width: int
    best_path: bool
    parents: list[Array] = field(default_factory=list)
    symbols: list[Array] = field(default_factory=list)
    masses: list[Array] = field(default_factory=list)

    @abstractmethod
    def reach(self, rows: Array) -> tuple[Array, Array, Array]:
        """Compute what the hypotheses of the last level can become.

        Args:
            rows: The row of each hypothesis.

        Returns:
            log p(the prefix is the whole string) [hypothesis]; log p(the prefix and one more symbol are written)
            [hypothesis, symbol]; and whether an unknown mass was left out [hypothesis].
        """

    @abstractmethod
    def follow(self, parents: Array, symbols: Array) -> None:
        """Take the chosen longer prefixes as the next level."""

    def run(self) -> list[SearchResult]:
        """Return the best strings of each row."""
        n_rows, n = len(self.inputs.lengths), int(self.inputs.lengths.max())
        best, numbers = np.full((n_rows, self.k), NEG_INF), np.full((n_rows, self.k), -1)
        lost = np.full(n_rows, NEG_INF)  # the log mass of the heaviest prefix that was ever dropped
        rows, starts, first = np.arange(n_rows), np.arange(n_rows + 1), 0
        self._keep(np.full(n_rows, -1), np.full(n_rows, -1), np.zeros(n_rows))
        for _ in range(AT_LEAST + PER_SYMBOL * n):
            ends, masses, is_cut = self.reach(rows)
            lost[rows[is_cut]] = 0.0  # 1 at most
            search_kernels.finish(ends, starts, first, best, numbers)
            parents, symbols, kept, starts = self._survivors(masses, starts, best[:, -1], lost)
            if not len(parents):
                break
            self.follow(parents, symbols)
            self._keep(parents + first, symbols, kept)
            first, rows = first + len(rows), rows[parents]
        else:  # the limit of the output length was reached
            lost[rows] = 0.0
        return self._results(best, numbers, lost)

    def _keep(self, parents: Array, symbols: Array, masses: Array) -> None:
        self.parents.append(parents)
        self.symbols.append(symbols)
        self.masses.append(masses)

    def _survivors(self, masses: Array, starts: Array, bounds: Array, lost: Array) -> tuple[Array, ...]:
        """Return parents, symbols and masses of the hypotheses that go on, and where those of each row begin."""
        most = (len(starts) - 1) * self.width
        parents, symbols, kept = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        count = search_kernels.survivors(masses, starts, bounds, self.width, parents, symbols, kept, lost)
        parents, symbols, kept = parents[:count], symbols[:count], kept[:count]
        return parents, symbols, kept, np.searchsorted(parents, starts)

    def _results(self, best: Array, numbers: Array, lost: Array) -> list[SearchResult]:
        parents, symbols, masses = (
            np.concatenate(levels).tolist() for levels in (self.parents, self.symbols, self.masses)
        )

        def string(number: int, log_prob: float) -> ScoredString:
            path = path_to(number, parents)
            shares = tuple(masses[node] - masses[parents[node]] for node in path)
            return ScoredString(tuple(symbols[node] for node in path), log_prob, shares)

        results = []
        for row, log_probs, bound in zip(numbers.tolist(), best.tolist(), lost.tolist(), strict=True):
            ended = [string(number, p) for number, p in zip(row, log_probs, strict=True) if p > NEG_INF]
            results.append(SearchResult(ended, bound <= log_probs[-1]))
        return results


@dataclass
class StringBeam(PrefixBeam):
    """Search among all strings; a level is a column of the lattice of each hypothesis."""

    def __post_init__(self) -> None:
        zero = self.inputs.left.new_zeros(len(self.inputs.lengths), self.network.reader.hidden_size)
        self._state = zero, zero
        self._base, self._arriving = np.zeros(len(zero), np.int64), np.zeros((len(zero), 1))

    def reach(self, rows: Array) -> tuple[Array, Array, Array]:
        inputs, network = self.inputs, self.network
        windows = Windows.around(self._base, self._arriving, inputs.lengths[rows])
        right, after = network.read_on(torch.from_numpy(self.symbols[-1]), self._state)
        lengths, copies = windows.sizes, windows.of(inputs.copies, rows)
        offsets = np.cumsum(lengths + 1) - (lengths + 1)
        which = np.repeat(np.arange(len(rows)), lengths + 1)  # the hypothesis of each cell
        places = (rows * inputs.left.shape[1] + windows.first - offsets)[which] + np.arange(len(which))
        left, ahead = inputs.left.flatten(0, 1)[torch.from_numpy(places)], right[torch.from_numpy(which)]
        hidden = left.add_(ahead).tanh_()
        work = len(rows), hidden.numel() * 4
        outputs = network.outputs(hidden).numpy()
        ends, masses = np.empty(len(rows)), np.empty((len(rows), inputs.n_symbols))
        cells = outputs, offsets, lengths, copies, self.best_path
        over_rows(search_kernels.columns, *work, *cells, windows.arriving, ends, masses)
        ends[~windows.whole] = NEG_INF
        self._columns = Columns(outputs, offsets, windows, copies, after)
        return ends, masses, windows.cut(self._columns.alpha)

    def follow(self, parents: Array, symbols: Array) -> None:
        columns, chosen = self._columns, torch.from_numpy(parents)
        self._base, self._arriving = columns.windows.first[parents], columns.after(parents, symbols, self.best_path)
        self._state = columns.state[0][chosen], columns.state[1][chosen]


@dataclass
class Columns:
    """A column of the lattice of each hypothesis.

    Attributes:
        outputs: Probabilities in the cells, packed: hypothesis h has those from offsets[h] on.
        offsets: Index of the first cell of each hypothesis.
        windows: The part of the source that the column covers, and α in it.
        copies: Symbols that copying writes, in the window.
        state: State of the reader after the prefix.
    """

    outputs: Array
    offsets: Array
    windows: Windows
    copies: Array
    state: tuple[Tensor, Tensor]

    @property
    def alpha(self) -> Array:
        """Return α; the kernel has written it in place of what arrives."""
        return self.windows.arriving

    def after(self, parents: Array, symbols: Array, best_path: bool) -> Array:
        """Return the mass that arrives in the columns of the longer prefixes by writing their last symbols.

        Args:
            parents: The prefix that each longer one comes from [prefixes].
            symbols: Its last symbol [prefixes].
            best_path: Whether the best script counts alone, instead of the sum over all.

        Returns:
            Log mass [prefixes, n+1].
        """
        arriving: Any = np.empty((len(parents), self.alpha.shape[1]))
        column = self.outputs, (self.offsets, self.windows.sizes, self.copies), best_path, self.alpha
        over_rows(search_kernels.arrive, len(parents), arriving.size * 8, *column, parents, symbols, arriving)
        return arriving


def search_inputs(
    network: EditNetwork, sources: Int[Tensor, "batch n"], copies: Tensor, lengths: Tensor, n_symbols: int
) -> SearchInputs:
    """Encode a batch for the search.

    Args:
        network: The network.
        sources: Symbols of x.
        copies: The symbol that copying x_i writes, -1 if none.
        lengths: The length of each x.
        n_symbols: Number of symbols that can be written, including those that can only be copied.
    """
    left = network.encode(sources, lengths).contiguous()
    copied = copies.numpy() if copies.shape[1] else np.full((len(copies), 1), -1)
    return SearchInputs(left, lengths.numpy(), np.ascontiguousarray(copied), n_symbols)
