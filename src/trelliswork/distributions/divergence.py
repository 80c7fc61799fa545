"""KL divergences between structured distributions, registered with torch.distributions.kl_divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import register_kl

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.distributions.semi_markov import SemiMarkov
from trelliswork.errors import ScoreError

if TYPE_CHECKING:
    from jaxtyping import Float

INF = float("inf")


def _gap(mine: Tensor, other: Tensor) -> Tensor:
    """mine - other, 0 where both forbid."""
    both_forbid = (mine == -INF) & (other == -INF)
    return torch.where(both_forbid, 0.0, torch.where(both_forbid, 0.0, mine) - torch.where(both_forbid, 0.0, other))


@register_kl(LinearChain, LinearChain)
def _kl(p: LinearChain, q: LinearChain) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if p.emissions.shape != q.emissions.shape or not torch.equal(p.valid, q.valid):
        raise ScoreError(
            "KL needs chains of the same shape, lengths and mask; "
            f"got {tuple(p.emissions.shape)} and {tuple(q.emissions.shape)}"
        )

    mine, other = p._precise, q._precise
    transitions, q_transitions = mine.transitions, other.transitions
    if transitions.dim() != q_transitions.dim():
        transitions, q_transitions = torch.broadcast_tensors(transitions, q_transitions)
    costs = mine.with_scores(
        _gap(mine.emissions, other.emissions),
        _gap(transitions, q_transitions),
        _gap(mine.start, other.start),
        _gap(mine.end, other.end),
    )
    return p._batched(p._expected(costs) - p._log_z + q._log_z)


@register_kl(SemiMarkov, SemiMarkov)
def _kl_of_segmentations(p: SemiMarkov, q: SemiMarkov) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if p.segments.shape != q.segments.shape or not torch.equal(p.lengths, q.lengths):
        raise ScoreError(
            "KL needs segmentations of the same shape and lengths; "
            f"got {tuple(p.segments.shape)} and {tuple(q.segments.shape)}"
        )
    if (p.transitions is None) != (q.transitions is None):
        p, q = p._first_order(), q._first_order()
    mine, other = p._parts, q._parts
    arcs = None
    if mine.transitions is not None and other.transitions is not None:
        arcs = _gap(mine.transitions, other.transitions)
    costs = mine.with_scores(
        _gap(mine.segments, other.segments), arcs, _gap(mine.start, other.start), _gap(mine.end, other.end)
    )
    return p._batched(p._expected(costs) - p._log_z + q._log_z)
