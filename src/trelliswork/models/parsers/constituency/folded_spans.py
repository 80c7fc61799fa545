"""Trees of a batch with the labels of each span summed, or the best of them taken: exact, and n² numbers for n words.

p(tree) is a product over spans, so the label of a span is a choice of its own once the span is a constituent. A chart
needs two labels then, none and some, and which one some is has to be asked of those spans only that are likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.span_tree import SpanTree
from trelliswork.models.parsers.constituency import span_kernels
from trelliswork.models.parsers.constituency.derivations import ChainLabels, Node
from trelliswork.nn.scorers.spans import SpanPlaces, SpanScorer
from trelliswork.runtime.bridge import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

FAINT = 1e-7  # spans that are less probable cannot be worth their price: the root alone has 1 / labels right
ROUNDS = 6  # at most, until the price of a constituent stays the same
FIRST_PRICE = 0.4
INF = float("inf")
Pinned = Mapping[tuple[int, int, int], "Bool[Tensor, 'c']"]  # which labels a span (row, start, end) may have


class Likely(NamedTuple):
    """Spans that are likely to be constituents: their cells, and the probability of each label but the empty one."""

    cells: Int[Tensor, "m"]
    shares: Float[Tensor, "m c-1"]


class FoldedSpans:
    """p(tree | words, pins) of a batch whose spans are scored by `scorer`."""

    def __init__(
        self, scorer: SpanScorer, encoded: Float[Tensor, "batch n d"], lengths: Int[Tensor, "batch"], pinned: Pinned
    ):
        self.scorer, self.lengths, self.pinned = scorer, lengths, pinned
        self.batch, self.n = encoded.shape[:2]
        self.ends, self.places = scorer.ends(encoded), SpanPlaces.of(lengths, self.n)

    @cached_property
    def summed(self) -> SpanTree:
        """Trees whose spans have the sum of all labels."""
        return self._folded(lambda scores: scores.logsumexp(-1))

    @cached_property
    def highest(self) -> SpanTree:
        """Trees whose spans have the best label."""
        return self._folded(lambda scores: scores.amax(-1))

    def _folded(self, fold: Callable[[Tensor], Tensor]) -> SpanTree:
        found = self.ends[0].new_zeros(self.batch * self.n * self.n, 2)
        for cells, scores in self._scores(self.places):
            found[:, 1].index_copy_(0, cells, fold(scores))
        chart = found.view(self.batch, self.n, self.n, 2)
        for row, start, end in self.pinned:
            chart[row, :start, start : end - 1] = chart[row, start + 1 : end, end:] = -INF  # what crosses it
            chart[row, start, end - 1, 0] = -INF
        return SpanTree(chart, lengths=self.lengths, empty=0)

    def _scores(self, places: SpanPlaces) -> Iterator[tuple[Tensor, Tensor]]:
        """Of some spans, in pieces."""
        for cells, scores in self.scorer.scores(self.ends, places):
            yield cells, self._allowed(cells, scores) if self.pinned else scores

    def _allowed(self, cells: Tensor, scores: Tensor) -> Tensor:
        """Scores of labels, -inf of those that a pin excludes."""
        for (row, start, end), having in self.pinned.items():
            here = cells == (row * self.n + start) * self.n + end - 1
            scores = torch.where(here[:, None] & ~having[1:], -INF, scores)
        return scores

    def some(self, cells: Int[Tensor, "m"]) -> Float[Tensor, "m c-1"]:
        """The scores of the labels of spans, by their cells."""
        row, first, last = cells // (self.n * self.n), cells // self.n % self.n, cells % self.n
        posts = row * (self.n + 1)
        found = [scores for _, scores in self._scores(SpanPlaces(posts + first, posts + last + 1, cells))]
        return torch.cat(found) if found else self.ends[0].new_zeros(0, self.scorer.labels.out_features)

    @cached_property
    def likely(self) -> Likely:
        """The likely spans, with the probabilities of their labels."""
        whole = self.summed.marginals[..., 1].flatten()
        cells = (whole > FAINT).nonzero().squeeze(1)
        return Likely(cells, self.some(cells).softmax(-1).mul_(whole[cells, None]))  # may be large, so in place

    def log_prob(self, chosen: Sequence[Sequence[Node]]) -> Float[Tensor, "batch"]:
        """log p of trees, each as its constituents (start, end, label)."""
        flat = [((row * self.n + i) * self.n + j - 1, row, y) for row, nodes in enumerate(chosen) for i, j, y in nodes]
        cells, rows, labels = torch.tensor(flat, device=self.lengths.device).reshape(-1, 3).unbind(1)
        scores = self.some(cells).double().gather(1, labels[:, None] - 1).squeeze(1)
        return scores.new_zeros(self.batch).index_add(0, rows, scores) - self.summed.log_partition.double()

    def best(self) -> list[list[Node]]:
        """The most probable tree of each row, as its constituents."""
        found = [[node for node in value if node[2]] for value in self.highest.argmax]
        cells = [(row * self.n + i) * self.n + j - 1 for row, nodes in enumerate(found) for i, j, _ in nodes]
        labels = iter((self.some(torch.tensor(cells, device=self.lengths.device)).argmax(-1) + 1).tolist())
        return [[(i, j, next(labels)) for i, j, _ in nodes] for nodes in found]

    def expected(self, labels: ChainLabels) -> list[list[Node]]:
        """The tree of each row with the highest 2 E[right] / (predicted + E[gold]), as its constituents.

        A constituent pays if its probability is above half of the F1 that is reached (Dinkelbach 1967, On nonlinear
        fractional programming), so the best tree for one price gives the next.
        """
        cells, shares = self.likely.cells.cpu().numpy(), self.likely.shares.float().cpu().numpy()
        chains, sizes = labels.items, labels.sizes.double().numpy()
        n_sizes, shape = int(sizes.max()), (self.batch, self.n, self.n)
        right, best = np.empty((len(cells), n_sizes)), np.zeros((len(cells), n_sizes), np.int64)
        span_kernels.best_by_size(shares, chains[:2], chains[2], right, best)
        gold = np.bincount(cells // (self.n * self.n), shares @ sizes[1:], self.batch)
        needed = self._needed(shape).reshape(-1)[cells]
        price = np.full(self.batch, FIRST_PRICE)
        for _ in range(ROUNDS):
            gains = right - price[cells // (self.n * self.n), None] * np.arange(1, n_sizes + 1)
            gains[right < 0] = -INF
            size, here = gains.argmax(1), np.arange(len(cells))
            found = self._chosen(cells, gains[here, size], needed, shape)
            rows = cells[found] // (self.n * self.n)
            n_right = np.bincount(rows, right[found, size[found]], self.batch)
            again = n_right / np.maximum(np.bincount(rows, size[found] + 1.0, self.batch) + gold, 1e-9)
            if np.allclose(again, price, atol=1e-9):
                break
            price = again
        return self._nodes(cells[found], best[found, size[found]])

    def _needed(self, shape: tuple[int, int, int]) -> Array:
        """Spans that must be constituents: the whole row, if it has two words, and what is pinned."""
        needed = np.zeros(shape, np.bool_)
        for row, length in enumerate(self.lengths.tolist()):
            needed[row, 0, length - 1] = length > 1
        for row, start, end in self.pinned:
            needed[row, start, end - 1] = True
        return needed

    def _chosen(self, cells: Array, gains: Array, needed: Array, shape: tuple[int, int, int]) -> Array:
        """Which of the likely spans are in the tree of the highest gain."""
        chart, more = np.zeros(shape), np.maximum(gains, 0.0).sum() + 1.0
        chart.reshape(-1)[cells] = np.maximum(gains, 0.0) + more * needed  # more than all others together
        trees = SpanTree(torch.from_numpy(chart)[..., None], lengths=self.lengths.cpu(), validate_args=False)
        nodes = trees.argmax_nodes.numpy()
        row, rank = np.nonzero(nodes[..., 0] >= 0)
        start, end, _ = nodes[row, rank].T
        inside = np.zeros(shape, np.bool_)
        inside[row, start, end - 1] = True
        return np.flatnonzero(inside.reshape(-1)[cells] & ((gains > 0) | needed))

    def _nodes(self, cells: Array, labels: Array) -> list[list[Node]]:
        found: list[list[Node]] = [[] for _ in range(self.batch)]
        for cell, label in zip(cells.tolist(), labels.tolist(), strict=True):
            row, place = divmod(cell, self.n * self.n)
            found[row].append((place // self.n, place % self.n + 1, label))
        return [sorted(nodes, key=lambda node: (node[0], -node[1])) for nodes in found]
