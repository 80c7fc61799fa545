"""Labels on the arcs of dependency trees.

A label is chosen for each arc by itself, so sums and optima over trees need only the sum or the best over labels, arc
by arc.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.arcs import Arcs


@dataclass(frozen=True)
class LabelledArcs:
    """parts[b, h, m, y] = arcs[b, h, m] + labels[b, h, m, y] in float64, -inf at whatever is not an arc."""

    parts: Float[Tensor, "batch n+1 n+1 l"]

    @staticmethod
    def of(trees: Arcs, labels: Float[Tensor, "batch n+1 n+1 l"]) -> LabelledArcs:
        possible = trees.is_arc[..., None]
        return LabelledArcs(torch.where(possible, trees.arcs[..., None] + labels.double(), -INF))

    @cached_property
    def summed(self) -> Float[Tensor, "batch n+1 n+1"]:
        """log Σ_y exp(parts): the arcs of the distribution over trees without labels."""
        return logsumexp(self.parts, dim=-1)

    @cached_property
    def shares(self) -> Float[Tensor, "batch n+1 n+1 l"]:
        """p(label | arc), 0 where the arc is impossible."""
        return (self.parts - torch.where(self.summed > -INF, self.summed, 0.0)[..., None]).exp()

    @property
    def best(self) -> Float[Tensor, "batch n+1 n+1"]:
        """max_y parts: the arcs of the best tree."""
        return self.parts.detach().amax(-1)

    @property
    def n_possible(self) -> Float[Tensor, "batch n+1 n+1"]:
        """Return the number of labels that each arc can have, in float64."""
        return (self.parts.detach() > -INF).sum(-1).double()

    def draw_labels(
        self, heads: Int[Tensor, "*samples batch n"], generator: torch.Generator | None
    ) -> Int[Tensor, "*samples batch n"]:
        """Return one label for each arc, drawn from p(label | arc)."""
        scores = below(self.parts, heads).detach()
        top = scores.amax(-1, keepdim=True)
        weights = (scores - torch.where(top > -INF, top, 0.0)).exp()
        weights = torch.where(top > -INF, weights, 1.0)  # padding: drawn, and not used
        if not weights.numel():
            return torch.zeros_like(heads)
        drawn = torch.multinomial(weights.flatten(0, -2), 1, generator=generator)
        return drawn.reshape(heads.shape)

    def score(
        self, heads: Int[Tensor, "batch n"], labels: Int[Tensor, "batch n"], real: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, "batch"]:
        """Return Σ_m parts[head_m, m, label_m] over real words.

        Args:
            heads: head of each word, words counted from 1 and 0 being the root.
            labels: label of each word's arc.
            real: True at words that are no padding.

        Returns:
            The score of each tree.
        """
        picked = below(self.parts, heads).gather(-1, labels[..., None]).squeeze(-1)
        return torch.where(real, picked, 0.0).sum(1)


def below(parts: Float[Tensor, "batch n+1 n+1 *l"], heads: Int[Tensor, "*samples batch n"]) -> Tensor:
    """Return [*samples, batch, n, *l]: what stands at the arcs that heads choose."""
    rows = torch.arange(heads.shape[-2], device=heads.device)[:, None]
    return parts[rows, heads, torch.arange(1, heads.shape[-1] + 1, device=heads.device)]


def label_log_probs(
    arcs: Tensor, labels: Tensor, summed: Tensor, heads: Int[Tensor, "batch n"], chosen: Int[Tensor, "batch n"]
) -> Float[Tensor, "batch n"]:
    """Return log p(label | arc) of the arcs that heads choose.

    -inf for a forbidden label, and where the arc is impossible.

    Args:
        arcs: scores [batch, n+1, n+1] of arcs.
        labels: scores [batch, n+1, n+1, l] of labels on arcs.
        summed: log Σ exp over the labels of each arc [batch, n+1, n+1].
        heads: head of each word.
        chosen: label of each word's arc.

    Returns:
        One log probability for each word.
    """
    rows = torch.arange(len(heads), device=heads.device)[:, None]
    words = torch.arange(1, heads.shape[1] + 1, device=heads.device)
    picked = arcs[rows, heads, words].double() + labels[rows, heads, words, chosen].double()
    whole = summed[rows, heads, words]
    possible = (picked > -INF) & (whole > -INF)
    return torch.where(possible, torch.where(possible, picked, 0.0) - torch.where(possible, whole, 0.0), -INF)


def add_labels(
    of_heads: Float[Tensor, "batch"], of_labels: Float[Tensor, "batch n"], real: Bool[Tensor, "batch n"]
) -> Float[Tensor, "batch"]:
    """Return log p of trees with labels; -inf, with gradient 0, where one of them is impossible; never above 0.

    Args:
        of_heads: log probability of the heads of each tree.
        of_labels: log probability of each word's label, given its head.
        real: True at words that are no padding.

    Returns:
        The log probability of each tree with its labels.
    """
    possible = (of_heads > -INF) & ((of_labels > -INF) | ~real).all(1)
    together = torch.where(possible, of_heads, 0.0)
    together = together + torch.where(real & possible[:, None], of_labels, 0.0).sum(1)
    return torch.where(possible, together - together.detach().clamp(min=0), -INF)
