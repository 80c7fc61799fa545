"""Trees of a batch with the labels of each span summed, or the best of them taken: exact, and n² numbers for n words.

p(tree) is a product over spans, so the label of a span is a choice of its own once the span is a constituent. A chart
needs two labels then, none and some, and which one some is has to be asked of those spans only that are likely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.span_tree import SpanTree
from trelliswork.models.parsers.constituency import span_kernels
from trelliswork.models.parsers.constituency.derivations import ChainLabels, Node
from trelliswork.nn.scorers.spans import SpanPlaces, SpanScorer
from trelliswork.runtime.arrays import INF, Array, Bool, Float, Int

LIKELY = 0.01  # spans below are not looked at, unless constituents turn out to be as cheap
FAINT = 1e-7  # spans that are less probable cannot be worth any price: the root alone has 1 / labels right
ROUNDS = 6  # at most, until the price of a constituent stays the same
FIRST_PRICE = 0.4
LOWEST = -1e30  # stands for -inf where it is subtracted
PinnedSpans = Mapping[tuple[int, int, int], "Bool[Tensor, 'c']"]  # which labels a span (row, start, end) may have


class Likely(NamedTuple):
    """Spans that may pay, by their cells: whether they are needed, and of each number of constituents the best label.

    `right` is how many constituents of that label are expected to be right, -1 if there is no such label.
    """

    cells: Array
    needed: Array
    right: Array  # [m, sizes]
    labels: Array


class FoldedSpans:
    """p(tree | words, pins) of a batch whose spans are scored by `scorer`.

    Args:
        scorer: Scorer of labelled spans.
        encoded: Vectors of words, [batch, n, d], 0 at padding.
        lengths: Number of words of each row, [batch].
        labels: Joint labels of chains.
        pinned: Labels that some spans may have, a mask [c] for each.
    """

    def __init__(
        self, scorer: SpanScorer, encoded: Float[Tensor, "batch n d"], lengths: Int[Tensor, "batch"],
        labels: ChainLabels, pinned: PinnedSpans,
    ):  # fmt: skip
        self.scorer, self.lengths, self.labels, self.pinned = scorer, lengths, labels, pinned
        self.batch, self.n = encoded.shape[:2]
        self.ends, self.places = scorer.ends(encoded), SpanPlaces.of(lengths, self.n)

    @cached_property
    def highest(self) -> SpanTree:
        """Trees whose spans have the best label."""
        flat_chart = self.ends[0].new_zeros(self.batch * self.n * self.n, 2)
        for cells, scores in self._scores(self.places):
            flat_chart[:, 1].index_copy_(0, cells, scores.amax(-1))
        return self._trees(flat_chart)

    @cached_property
    def summed(self) -> SpanTree:
        """Trees whose spans have the sum of all labels."""
        return self._sums[0]

    @cached_property
    def _sums(self) -> tuple[SpanTree, Float[Tensor, "cells"]]:
        """These trees, and how many constituents the label of each span is expected to stand for, if it has one."""
        flat_chart = self.ends[0].new_zeros(self.batch * self.n * self.n, 2)
        number, sizes = flat_chart.new_zeros(len(flat_chart)), self.labels.sizes[1:].to(flat_chart)
        for cells, scores in self._scores(self.places):
            top = scores.amax(-1, keepdim=True).clamp(min=LOWEST)
            weights = scores.sub_(top).exp_()
            total = weights.sum(-1)
            flat_chart[:, 1].index_copy_(0, cells, total.log() + top[:, 0])
            number.index_copy_(0, cells, (weights @ sizes) / total.clamp(min=1e-30))
        return self._trees(flat_chart), number

    def _trees(self, flat_chart: Float[Tensor, "cells 2"]) -> SpanTree:
        chart = flat_chart.view(self.batch, self.n, self.n, 2)
        for row, start, end in self.pinned:
            chart[row, :start, start : end - 1] = chart[row, start + 1 : end, end:] = -INF  # what crosses it
            chart[row, start, end - 1, 0] = -INF
        return SpanTree(chart, lengths=self.lengths, empty=0)

    @cached_property
    def whole(self) -> Float[Tensor, "cells"]:
        """The probability that a span is a constituent."""
        return self.summed.marginals[..., 1].flatten()

    def _scores(self, places: SpanPlaces) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (cells, scores) of some spans, in pieces."""
        for cells, scores in self.scorer.scores(self.ends, places):
            yield cells, self._allowed(cells, scores) if self.pinned else scores

    def _allowed(self, cells: Tensor, scores: Tensor) -> Tensor:
        """Return scores of labels, -inf of those that a pin excludes."""
        for (row, start, end), having in self.pinned.items():
            here = cells == (row * self.n + start) * self.n + end - 1
            scores = torch.where(here[:, None] & ~having[1:], -INF, scores)
        return scores

    def some(self, cells: Int[Tensor, "m"]) -> Float[Tensor, "m c-1"]:
        """Return the scores of the labels of spans, by their cells."""
        row, first, last = cells // (self.n * self.n), cells // self.n % self.n, cells % self.n
        posts = row * (self.n + 1)
        pieces = [scores for _, scores in self._scores(SpanPlaces(posts + first, posts + last + 1, cells))]
        return torch.cat(pieces) if pieces else self.ends[0].new_zeros(0, self.scorer.labels.out_features)

    def shares(self, cells: Int[Tensor, "m"]) -> Float[Tensor, "m c-1"]:
        """Return the probabilities of the labels of spans, by their cells."""
        return self.some(cells).softmax(-1).mul_(self.whole[cells, None])

    def log_prob(self, chosen: Sequence[Sequence[Node]]) -> Float[Tensor, "batch"]:
        """Return log p of trees, each as its constituents (start, end, label)."""
        flat = [((row * self.n + i) * self.n + j - 1, row, y) for row, nodes in enumerate(chosen) for i, j, y in nodes]
        cells, rows, labels = torch.tensor(flat, device=self.lengths.device).reshape(-1, 3).unbind(1)
        scores = self.some(cells).double().gather(1, labels[:, None] - 1).squeeze(1)
        return scores.new_zeros(self.batch).index_add(0, rows, scores) - self.summed.log_partition.double()

    def best(self) -> list[list[Node]]:
        """Return the most probable tree of each row, as its constituents."""
        trees = [[node for node in value if node[2]] for value in self.highest.argmax]
        cells = [(row * self.n + i) * self.n + j - 1 for row, nodes in enumerate(trees) for i, j, _ in nodes]
        labels = iter((self.some(torch.tensor(cells, device=self.lengths.device)).argmax(-1) + 1).tolist())
        return [[(i, j, next(labels)) for i, j, _ in nodes] for nodes in trees]

    def expected(self) -> list[list[Node]]:
        """Return the tree of each row with the highest 2 E[right] / (predicted + E[gold]), as its constituents.

        A constituent pays if its probability is above half of the F1 that is reached (Dinkelbach 1967, On nonlinear
        fractional programming), so the best tree for one price gives the next.
        """
        gold = (self._sums[1] * self.whole).view(self.batch, -1).double().sum(1).cpu().numpy()
        for least in (LIKELY, FAINT):
            trees, lowest = self._priced(self._likely(least), gold)
            if lowest > least:
                break
        return trees

    def _priced(self, likely: Likely, gold: Array) -> tuple[list[list[Node]], float]:
        """Return the best trees of likely spans, and the lowest price that a constituent had."""
        row_of, sizes = likely.cells // (self.n * self.n), np.arange(1, likely.right.shape[1] + 1)
        price, lowest = np.full(self.batch, FIRST_PRICE), FIRST_PRICE
        for _ in range(ROUNDS):
            gains = np.where(likely.right < 0, -INF, likely.right - price[row_of, None] * sizes)
            size = gains.argmax(1)
            chosen = self._chosen(likely, gains.max(1))
            n_right = np.bincount(row_of[chosen], likely.right[chosen, size[chosen]], self.batch)
            again = n_right / np.maximum(np.bincount(row_of[chosen], size[chosen] + 1.0, self.batch) + gold, 1e-9)
            if np.allclose(again, price, atol=1e-9):
                break
            price, lowest = again, min(lowest, float(again.min()))
        return self._nodes(likely.cells[chosen], likely.labels[chosen, size[chosen]]), lowest

    def _likely(self, least: float) -> Likely:
        needed, labels = self._needed().reshape(-1), self.labels
        cells = ((self.whole.cpu() > least) | torch.from_numpy(needed)).nonzero().squeeze(1)
        shares = self.shares(cells.to(self.lengths.device)).float().cpu().numpy()
        starts, items, n_items = labels.items
        shape = len(cells), int(labels.sizes.max())
        right, best = np.empty(shape), np.zeros(shape, np.int64)
        span_kernels.best_by_size(shares, (starts, items), n_items, right, best)
        return Likely(cells.numpy(), needed[cells.numpy()], right, best)

    def _needed(self) -> Array:
        """Return spans that must be constituents: the whole row, if it has two words, and what is pinned."""
        needed = np.zeros((self.batch, self.n, self.n), np.bool_)
        for row, length in enumerate(self.lengths.tolist()):
            needed[row, 0, length - 1] = length > 1
        for row, start, end in self.pinned:
            needed[row, start, end - 1] = True
        return needed

    def _chosen(self, likely: Likely, gains: Array) -> Array:
        """Return the indices of the likely spans that are in the tree of the highest gain."""
        chart, worth = np.zeros((self.batch, self.n, self.n)), np.maximum(gains, 0.0)
        chart.reshape(-1)[likely.cells] = worth + (worth.sum() + 1.0) * likely.needed  # more than all others together
        trees = SpanTree(torch.from_numpy(chart)[..., None], lengths=self.lengths.cpu(), validate_args=False)
        nodes = trees.argmax_nodes.numpy()
        row, rank = np.nonzero(nodes[..., 0] >= 0)
        start, end, _ = nodes[row, rank].T
        inside = np.zeros(chart.shape, np.bool_)
        inside[row, start, end - 1] = True
        return np.flatnonzero(inside.reshape(-1)[likely.cells] & ((gains > 0) | likely.needed))

    def _nodes(self, cells: Array, labels: Array) -> list[list[Node]]:
        rows: list[list[Node]] = [[] for _ in range(self.batch)]
        for cell, label in zip(cells.tolist(), labels.tolist(), strict=True):
            row, place = divmod(cell, self.n * self.n)
            rows[row].append((place // self.n, place % self.n + 1, label))
        return [sorted(nodes, key=lambda node: (node[0], -node[1])) for nodes in rows]
