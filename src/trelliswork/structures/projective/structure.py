"""Projective trees in plain torch: Eisner's inside recursion over any semiring, all spans of one width at once.

    I→(i, j), I←(i, j)  arcs i -> j and j -> i with all between them           (incomplete)
    C→(i, j), C←(i, j)  a head i (or j) with all its dependents on that side   (complete)

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.arcs import Arcs, is_tree
from trelliswork.structures.reference import posteriors


def total(trees: Arcs, semiring: Semiring) -> Tensor:
    """⊕ over all projective trees of ⊗ of their arcs: log Z for `Log`. Padding is not read.

    Scores may have a last axis for labels, [batch, n+1, n+1, l]: then over all trees with labels.
    Lists by width: `right[w][..., i]` is C→(i, i + w), and so on; nodes 0..n, the root 0 has no words to its left.
    """  # [S2, projective trees]
    arcs, n = trees.arcs, trees.n
    forth = semiring.lift(arcs) if arcs.dim() == 3 else semiring.sum(semiring.lift(arcs), dim=-1)
    back = forth.transpose(-1, -2)  # [i, j]: arcs i -> j in `forth`, j -> i here
    right = [semiring.one((len(arcs), n + 1), arcs)]
    left = [semiring.one((len(arcs), n + 1), arcs)]
    open_right: list[Tensor] = [right[0]]
    open_left: list[Tensor] = [left[0]]
    for w in range(1, n + 1):
        joined = _sum_of_splits(semiring, right, left, w, range(w), 1)  # C→(i, r) C←(r+1, j)
        inner = joined
        if trees.single_root:  # the root takes its one word when all is done
            inner = torch.cat([semiring.zero((len(arcs), 1), arcs), joined[..., 1:]], -1)
        open_right.append(semiring.times(inner, forth.diagonal(w, -2, -1)))
        open_left.append(semiring.times(joined, back.diagonal(w, -2, -1)))
        right.append(_sum_of_splits(semiring, open_right, right, w, range(1, w + 1), 0))  # I→(i, r) C→(r, j)
        left.append(_sum_of_splits(semiring, left, open_left, w, range(w), 0))  # C←(i, r) I←(r, j)
    if not trees.single_root:
        return _at_length([each[..., 0] for each in right], trees)  # C→(0, j)
    ends = [semiring.zero((len(arcs),), arcs)]
    for j in range(1, n + 1):  # ⊕_r arcs[0, r] C←(1, r) C→(r, j)
        parts = [
            semiring.times(semiring.times(left[r - 1][..., 1], right[j - r][..., r]), forth[..., 0, r])
            for r in range(1, j + 1)
        ]
        ends.append(semiring.sum(torch.stack(parts, -1), dim=-1))
    return _at_length(ends, trees)


def _sum_of_splits(
    semiring: Semiring, first: list[Tensor], second: list[Tensor], w: int, splits: range, gap: int
) -> Tensor:
    """⊕_s first(i, i+s) ⊗ second(i+s+gap, i+w) for all spans of width w."""
    n_spans = first[0].shape[-1] - w
    ones = torch.stack([first[s][..., :n_spans] for s in splits], -1)
    others = torch.stack([second[w - s - gap][..., s + gap : s + gap + n_spans] for s in splits], -1)
    return semiring.sum(semiring.times(ones, others), dim=-1)


def _at_length(ends: list[Tensor], trees: Arcs) -> Tensor:
    """ends[lengths[b]][..., b]."""
    by_length = torch.stack(ends, -1)
    index = trees.lengths.expand(by_length.shape[:-1])
    return by_length.gather(-1, index[..., None]).squeeze(-1)


def log_partition(trees: Arcs) -> Float[Tensor, "batch"]:
    """log Z; -inf, with gradient 0, in rows without a tree."""
    return total(trees, Log())


def marginals(trees: Arcs) -> Float[Tensor, "batch n+1 n+1"]:
    """p(arc h -> m | x): the derivative of log Z by the arc's score."""
    return posteriors(log_partition, trees)


def decode(marks: Float[Tensor, "batch n+1 n+1 *l"], trees: Arcs) -> Int[Tensor, "batch n *2"]:
    """The head of each real word; with an axis for labels, (head, label) of each."""
    chosen = marks[:, :, 1:]
    if chosen.dim() == 3:
        return chosen.argmax(1)
    heads = chosen.sum(-1).argmax(1)
    return torch.stack([heads, chosen.amax(1).argmax(-1)], -1)


def is_projective(trees: Arcs, heads: Int[Tensor, "batch n"]) -> Bool[Tensor, "batch"]:
    """Return whether heads are a tree of which no two arcs cross."""
    words = torch.arange(1, trees.n + 1, device=heads.device)
    lows, highs = torch.minimum(words, heads), torch.maximum(words, heads)
    both = trees.word_mask[:, :, None] & trees.word_mask[:, None, :]
    starts_inside = (lows[:, :, None] < lows[:, None, :]) & (lows[:, None, :] < highs[:, :, None])
    crossing = starts_inside & (highs[:, None, :] > highs[:, :, None]) & both
    return is_tree(trees, heads) & ~crossing.flatten(1).any(1)
