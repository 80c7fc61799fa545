"""Labelled binary trees in plain torch: the CKY recursion over any semiring, all spans of one width at once.

A tree over L tokens has 2 L - 1 nodes: one for each token, the whole row, and each node of two or more tokens is split
into two. Each node has one label; score(tree) = Σ spans[i, j, y] over its nodes, tokens i..j.

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.semirings.log import log_ratio
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

    Labels are summed first; `right[w][..., i]` are all trees over tokens i..i+w, `left[w][..., i]` those that may be a
    left child or the root, whose label is not `empty`.
    """
    read = semiring.lift(torch.where(parts.span_mask[..., None], parts.spans.double(), -INF))
    all_labels = some_labels = semiring.sum(read, dim=-1)
    if parts.empty is not None:
        kept = [y for y in range(read.shape[-1]) if y != parts.empty]
        some_labels = semiring.sum(read[..., kept], dim=-1)
    right = [all_labels.diagonal(0, -2, -1)]
    left = list(right)
    for w in range(1, parts.n):
        n_spans = parts.n - w
        lefts = torch.stack([left[s][..., :n_spans] for s in range(w)], -1)
        rights = torch.stack([right[w - 1 - s][..., s + 1 : s + 1 + n_spans] for s in range(w)], -1)
        splits = semiring.sum(semiring.times(lefts, rights), dim=-1)
        right.append(semiring.times(splits, all_labels.diagonal(w, -2, -1)))
        left.append(semiring.times(splits, some_labels.diagonal(w, -2, -1)))
    whole_rows = torch.stack([each[..., 0] for each in left], -1)
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
