"""KL divergences between structured distributions, registered with torch.distributions.kl_divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import register_kl

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.errors import ScoreError

if TYPE_CHECKING:
    from jaxtyping import Float

INF = float("inf")


@register_kl(LinearChain, LinearChain)
def _kl(p: LinearChain, q: LinearChain) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if p.emissions.shape != q.emissions.shape or not torch.equal(p.valid, q.valid):
        raise ScoreError(
            "KL needs chains of the same shape, lengths and mask; "
            f"got {tuple(p.emissions.shape)} and {tuple(q.emissions.shape)}"
        )

    def gap(mine: Tensor, other: Tensor) -> Tensor:
        both_forbid = (mine == -INF) & (other == -INF)
        return torch.where(both_forbid, 0.0, torch.where(both_forbid, 0.0, mine) - torch.where(both_forbid, 0.0, other))

    mine, other = p._precise, q._precise
    transitions, q_transitions = mine.transitions, other.transitions
    if transitions.dim() != q_transitions.dim():
        transitions, q_transitions = torch.broadcast_tensors(transitions, q_transitions)
    costs = mine.with_scores(
        gap(mine.emissions, other.emissions),
        gap(transitions, q_transitions),
        gap(mine.start, other.start),
        gap(mine.end, other.end),
    )
    return p._batched(p._expected(costs) - p._log_z + q._log_z)
