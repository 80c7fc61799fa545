"""Labelled binary trees in plain torch: the CKY recursion over any semiring, all spans of one width at once.

A tree over L tokens has 2 L - 1 nodes: one for each token, the whole row, and each node of two or more tokens is split
into two. Each node has one label; score(tree) = Σ spans[i, j, y] over its nodes, tokens i..j.

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.diagonals import diagonals, narrowed, widened
from trelliswork.structures.reference import posteriors


@dataclass(frozen=True)
class Spans:
    """Scores of a batch: spans[b, i, j, y] for tokens i..j (j included) labelled y; read where i <= j < lengths[b]."""

    spans: Float[Tensor, "batch n n c"]
    lengths: Int[Tensor, "batch"]
    empty: int | None = None  # the label that stands on tokens and right children only, if there is one

    @property
    def n(self) -> int:
        """Tokens of the longest row."""
        return self.spans.shape[1]

    @property
    def span_mask(self) -> Bool[Tensor, "batch n n"]:
        """True at the spans of each row."""
        place = torch.arange(self.n, device=self.lengths.device)
        return (place[:, None] <= place) & (place < self.lengths[:, None, None])

    @property
    def scores(self) -> Float[Tensor, "batch n n c"]:
        return self.spans

    @property
    def part_scores(self) -> Float[Tensor, "batch n n c"]:
        return self.spans

    def with_scores(self, spans: Tensor) -> Spans:
        return replace(self, spans=spans)

    def detached(self) -> Spans:
        """The same scores as a leaf to differentiate by."""
        return replace(self, spans=self.spans.detach().double().requires_grad_())


def total(parts: Spans, semiring: Semiring) -> Tensor:
    """⊕ over all trees of ⊗ of their nodes: log Z for `Log`. Padding is not read.

    Labels are summed first. `starts` and `ends` are all trees over narrower spans as `diagonals` says: `starts` those
    that may be a left child or the root, whose label is not `empty`.
    """
    read = semiring.lift(torch.where(parts.span_mask[..., None], parts.spans.double(), -INF))
    all_labels = semiring.sum(read, dim=-1)
    any_label = diagonals(all_labels)
    some_label = any_label
    if parts.empty is not None:
        kept = [y for y in range(read.shape[-1]) if y != parts.empty]
        some_label = diagonals(semiring.sum(read[..., kept], dim=-1))
    starts = ends = any_label[0][..., None]
    for w in range(1, parts.n):
        starts, ends = narrowed(starts, ends)
        splits = semiring.sum(semiring.times(starts, ends), dim=-1)
        right = semiring.times(splits, any_label[w])
        left = right if parts.empty is None else semiring.times(splits, some_label[w])
        starts, ends = widened(starts, ends, left, right)
    whole_rows = starts[..., 0, :]  # spans from the first token on
    index = (parts.lengths - 1).expand(whole_rows.shape[:-1])
    return whole_rows.gather(-1, index[..., None]).squeeze(-1)


def log_partition(parts: Spans) -> Float[Tensor, "batch"]:
    """log Z; -inf, with gradient 0, in rows without a tree."""
    log_z = total(parts, Log())
    return torch.where(log_z > -INF, log_z, -INF)  # a root without labels leaves the splits below it a gradient


def path_score(parts: Spans, nodes: Int[Tensor, "batch nodes 3"]) -> Float[Tensor, "batch"]:
    """Σ spans[i, j, y] over the nodes (start, end, label), end exclusive; nodes that are -1 do not count."""
    real = nodes[..., 0] >= 0
    start, end, label = torch.where(real[..., None], nodes, nodes.new_tensor([0, 1, 0])).unbind(-1)
    row = torch.arange(len(nodes), device=nodes.device)[:, None]
    return torch.where(real, parts.spans[row, start, end - 1, label].double(), 0.0).sum(1)


def log_prob(parts: Spans, nodes: Int[Tensor, "batch nodes 3"]) -> Float[Tensor, "batch"]:
    """log p(tree | x) = score - log Z, at most 0: rounding must not pass certainty."""
    return log_ratio(path_score(parts, nodes), log_partition(parts))


def marginals(parts: Spans) -> Float[Tensor, "batch n n c"]:
    """p(tokens i..j are a node labelled y | x): the derivative of log Z by the span's score."""
    return posteriors(log_partition, parts)


def decode(marks: Float[Tensor, "batch n n c"], parts: Spans) -> Int[Tensor, "batch nodes 3"]:
    return nodes_of(marks)


def nodes_of(indicator: Float[Tensor, "batch n n c"]) -> Int[Tensor, "batch nodes 3"]:
    """(start, end, label) of each marked node, parents before children and left before right; -1 fills up."""
    batch, n = indicator.shape[:2]
    nodes = torch.full((batch, 2 * n - 1, 3), -1, device=indicator.device)
    # Last tokens from the right to the left: among spans with one start the widest comes first, its parent before it.
    row, start, turned, label = indicator.flip(2).nonzero(as_tuple=True)
    new_row = torch.searchsorted(row, torch.arange(batch, device=row.device))
    rank = torch.arange(len(row), device=row.device) - new_row[row]
    fits = rank < 2 * n - 1
    nodes[row[fits], rank[fits]] = torch.stack([start, n - turned, label], -1)[fits]
    return nodes
