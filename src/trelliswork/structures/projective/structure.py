"""Projective trees in plain torch: Eisner's inside recursion over any semiring, all spans of one width at once.

    I→(i, j), I←(i, j)  arcs i -> j and j -> i with all between them           (incomplete)
    C→(i, j), C←(i, j)  a head i (or j) with all its dependents on that side   (complete)

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.arcs import Arcs, is_tree
from trelliswork.structures.diagonals import diagonals_of_both_sides, narrowed, widened
from trelliswork.structures.reference import posteriors


def total(trees: Arcs, semiring: Semiring) -> Tensor:
    """⊕ over all projective trees of ⊗ of their arcs: log Z for `Log`. Padding is not read.

    Scores may have a last axis for labels, [batch, n+1, n+1, l]: then over all trees with labels.
    Both sides are done together, [..., 2, batch, span, width]: what hangs to the right of a head and, in a mirror, what
    hangs to the left. With a single root the spans are of words, and the root takes its one word when all is done.
    """  # [S2, projective trees]
    single, batch = trees.single_root, len(trees.arcs)
    arcs = _padded(trees) if single else trees.arcs
    forth = semiring.lift(arcs) if arcs.dim() == 3 else semiring.sum(semiring.lift(arcs), dim=-1)
    both_sides = diagonals_of_both_sides(forth[..., 1:, 1:] if single else forth)
    n = trees.n if single else trees.n + 1
    starts = ends = semiring.one((2, batch, n, 1), arcs)  # C
    begun = starts[..., :0]  # I, from their starts
    for w in range(1, n):
        starts, ends = narrowed(starts, ends)
        right, left = starts.unbind(-4)
        joined = semiring.sum(semiring.times(right, left.flip(-2, -1)), dim=-1)  # C→(i, r) C←(r+1, j)
        opened = semiring.times(torch.stack([joined, joined.flip(-1)], -3), both_sides[w])
        begun = torch.cat([begun[..., :-1, :], opened[..., None]], -1)
        closed = semiring.sum(semiring.times(begun, ends), dim=-1)  # I→(i, r) C→(r, j), and mirrored
        starts, ends = widened(starts, ends, closed, closed)
    if not single:
        whole_rows = starts.select(-4, 0)[..., 0, :]  # C→(0, j)
        return whole_rows.gather(-1, trees.lengths.expand(whole_rows.shape[:-1])[..., None]).squeeze(-1)
    right, left = ends.squeeze(-2).unbind(-3)  # C→(r, n), and in the mirror C←(1, r)
    return semiring.sum(semiring.times(semiring.times(left.flip(-1), right), forth[..., 0, 1:]), dim=-1)


def _padded(trees: Arcs) -> Tensor:
    """Arcs by which each padded word hangs from the word before, and nothing else: all rows have one length then."""
    place = torch.arange(trees.n + 1, device=trees.arcs.device)
    follows = (place[:, None] + 1 == place) & (place > trees.lengths[:, None, None])
    if trees.arcs.dim() == 4:
        follows = follows[..., None] & (torch.arange(trees.arcs.shape[-1], device=place.device) == 0)
    return torch.where(follows, 0.0, trees.arcs)


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
