"""Projective trees in plain torch: Eisner's inside recursion over any semiring, all spans of one width at once.

    I→(i, j), I←(i, j)  arcs i -> j and j -> i with all between them           (incomplete)
    C→(i, j), C←(i, j)  a head i (or j) with all its dependents on that side   (complete)

Any device, differentiable as often as you like; `kernels.py` is faster and tested against it. See `math.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.semirings import KBest, Log, Max, Sampling, Semiring
from trelliswork.structures.arcs import Arcs, differentiate, is_tree

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INF = float("inf")


def total(trees: Arcs, semiring: Semiring) -> Tensor:
    """⊕ over all projective trees of ⊗ of their arcs [S2, projective trees]: log Z for `Log`. Padding is not read.

    Scores may have a last axis for labels, [batch, n+1, n+1, l]: then over all trees with labels.
    Lists by width: `right[w][..., i]` is C→(i, i + w), and so on; nodes 0..n, the root 0 has no words to its left.
    """
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
    again = torch.is_grad_enabled() and trees.arcs.requires_grad
    with torch.enable_grad():
        leaf = trees if again else trees.with_arcs(trees.arcs.detach().requires_grad_())
        return differentiate(log_partition(leaf), leaf.arcs, again)


def best(trees: Arcs) -> tuple[Int[Tensor, "batch n"], Bool[Tensor, "batch"]]:
    """The best tree through `Max`, and whether a row has any."""
    with torch.enable_grad():
        leaf = trees.with_arcs(trees.arcs.detach().requires_grad_())
        score = total(leaf, Max())
        return _heads_of_gradient(score, leaf.arcs), score.detach() > -INF


def top_k(trees: Arcs, k: int) -> tuple[Int[Tensor, "k batch n"], Int[Tensor, "k batch n"], Float[Tensor, "k batch"]]:
    """Heads, labels and scores of the k best, best first, for arcs with a last axis for labels.

    Through `KBest`: the gradient of score r marks the labelled arcs of tree r.
    """
    with torch.enable_grad():
        leaf = trees.with_arcs(trees.arcs.detach().requires_grad_())
        scores = total(leaf, KBest(k))
        chosen = torch.stack([_chosen(scores[r], leaf.arcs) for r in range(k)])  # [k, batch, head, word, label]
    heads = chosen.sum(-1).argmax(-2)
    labels = chosen.gather(2, heads[:, :, None, :, None].expand(-1, -1, 1, -1, chosen.shape[-1])).squeeze(2).argmax(-1)
    return heads, labels, scores.detach()


def sample(trees: Arcs, n_samples: int, generator: torch.Generator | None = None) -> Int[Tensor, "samples batch n"]:
    """Independent exact samples through `Sampling`: each backward pass draws one tree per row."""
    with torch.enable_grad():
        leaf = trees.with_arcs(trees.arcs.detach().requires_grad_())
        log_z = total(leaf, Sampling(generator))
        heads = [_heads_of_gradient(log_z, leaf.arcs) for _ in range(n_samples)]
    return torch.stack(heads) if heads else trees.lengths.new_zeros(0, len(trees.lengths), trees.n)


def _heads_of_gradient(scores: Tensor, arcs: Tensor) -> Int[Tensor, "batch n"]:
    """The head of each real word."""
    return _chosen(scores, arcs).argmax(1)


def _chosen(scores: Tensor, arcs: Tensor) -> Float[Tensor, "batch n+1 n ..."]:
    """Gradients of semiring totals are indicators of the chosen arcs: 1 at the head of each real word."""
    (indicator,) = torch.autograd.grad(scores.sum(), arcs, retain_graph=True)
    return indicator[:, :, 1:]


def is_projective(trees: Arcs, heads: Int[Tensor, "batch n"]) -> Bool[Tensor, "batch"]:
    """Whether heads are a tree of which no two arcs cross."""
    words = torch.arange(1, trees.n + 1, device=heads.device)
    lows, highs = torch.minimum(words, heads), torch.maximum(words, heads)
    both = trees.word_mask[:, :, None] & trees.word_mask[:, None, :]
    starts_inside = (lows[:, :, None] < lows[:, None, :]) & (lows[:, None, :] < highs[:, :, None])
    crossing = starts_inside & (highs[:, None, :] > highs[:, :, None]) & both
    return is_tree(trees, heads) & ~crossing.flatten(1).any(1)
