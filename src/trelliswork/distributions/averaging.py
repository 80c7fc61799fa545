"""Averages of distributions over parameters: prediction when the parameters are not known for sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import logsumexp


class AverageMode(NamedTuple):
    """The best tags found under the average, their log-probability, and whether nothing can be better."""

    tags: Int[Tensor, "batch n"]
    log_prob: Float[Tensor, "batch"]
    proven: Bool[Tensor, "batch"]


def average_log_prob(
    members: Sequence[LinearChain],
    value: Int[Tensor, "*samples batch n"],
    log_weights: Float[Tensor, "members"] | None = None,
) -> Float[Tensor, "*samples batch"]:
    """ln E_θ[p(y | x; θ)] over chains with parameters θ drawn from p(θ | data), or weighted by it.

    Args:
        members: chains over the same sentences, one for each θ.
        value: tags [*samples, batch, n].
        log_weights: [members], the log weight of each θ; all the same if not given.

    Returns:
        [*samples, batch].
    """  # [S4.140]
    weights = _log_shares(members, log_weights)
    log_probs = torch.stack([member.log_prob(value) for member in members], -1)
    return logsumexp(log_probs + weights.to(log_probs), -1)


def average_argmax(
    members: Sequence[LinearChain], log_weights: Float[Tensor, "members"] | None = None, *, max_k: int = 64
) -> AverageMode:
    """Return argmax_y E_θ[p(y | x; θ)], the Bayesian prediction.

    Candidates are the k best tag sequences of each member. Any other y has at most each member's k-th best probability:
    once the best candidate has the average of those, it is proven to be best. k doubles until then, up to `max_k`.

    Args:
        members: chains over the same sentences, one for each θ.
        log_weights: [members], the log weight of each θ; all the same if not given.
        max_k: the most candidates of each member.

    Returns:
        Tags [batch, n], their log probabilities [batch], and whether they are proven to be best [batch].
    """  # [S4.140]
    weights, k = _log_shares(members, log_weights), 1
    while True:
        best_of_each = [member.top_k(k) for member in members]
        candidates = torch.cat([tags for tags, _ in best_of_each])
        log_probs = average_log_prob(members, candidates, log_weights)
        best, index = log_probs.max(0)
        tags = candidates.gather(0, index[None, :, None].expand(1, *candidates.shape[1:]))[0]
        lasts = [scores[-1] - member.log_partition for (_, scores), member in zip(best_of_each, members, strict=True)]
        rest = logsumexp(torch.stack(lasts, -1) + weights.to(log_probs), -1)
        proven = best >= rest
        if bool(proven.all()) or k >= max_k:
            return AverageMode(tags, best, proven)
        k = min(2 * k, max_k)


def average_chain(
    members: Sequence[LinearChain],
    log_weights: Float[Tensor, "members"] | None = None,
    *,
    lengths: Int[Tensor, "batch"] | None = None,
    voting: bool = False,
) -> LinearChain:
    """Return the chain with the marginals and pairwise marginals of E_θ[p(y | x; θ)].

    Of all chains it is the nearest to the average, which is none itself: KL(average ‖ chain) is least. With `voting` a
    member counts as if it were sure of its best tags. `lengths` are those of the members.

    Args:
        members: chains over the same tags and rows, one for each value of the parameters θ.
        log_weights: the log weight of each member, normalised here; None for equal weights.
        lengths: the lengths of the rows of the members; None if all rows are full.
        voting: whether a member counts as if it were sure of its best tags.

    Returns:
        One chain over the same rows.
    """  # [S4.140]
    shares = _log_shares(members, log_weights).exp().tolist()
    labels, pairs = _tables(members[0], voting)
    labels, pairs = shares[0] * labels, shares[0] * pairs
    for share, member in zip(shares[1:], members[1:], strict=True):
        tables = _tables(member, voting)
        labels += share * tables[0]
        pairs += share * tables[1]
    emissions = torch.zeros_like(labels)
    emissions[..., :1, :] = labels[..., :1, :].log()
    transitions = torch.where(pairs > 0, pairs.log() - labels[..., :-1, :, None].log(), -INF)
    if lengths is not None:
        outside = torch.arange(1, labels.shape[-2]) >= lengths[..., None]
        transitions = transitions.masked_fill(outside[..., None, None], 0.0)
        emissions = emissions.masked_fill((lengths == 0)[..., None, None], 0.0)
    return LinearChain(emissions, transitions, lengths=lengths)


def _tables(member: LinearChain, voting: bool) -> tuple[Tensor, Tensor]:
    """Return marginals and pairwise marginals of a member, or of its best tags alone."""
    if not voting:
        return member.marginals.double(), member.pairwise_marginals.double()
    best = torch.nn.functional.one_hot(member.argmax, member.emissions.shape[-1]).double()
    return best, best[..., :-1, :, None] * best[..., 1:, None, :]


def _log_shares(members: Sequence[LinearChain], log_weights: Tensor | None) -> Float[Tensor, "members"]:
    """Log weights that sum to one; equal ones if there are none."""
    if not members:
        raise ScoreError("members must be at least one distribution; got none")
    weights = torch.zeros(len(members), dtype=torch.float64) if log_weights is None else log_weights
    if weights.shape != (len(members),) or not bool((weights < INF).all()) or bool((weights == -INF).all()):
        raise ScoreError(
            f"log_weights must be {len(members)} numbers below +inf, one above -inf at least; got {weights.tolist()}"
        )
    return torch.log_softmax(weights.double(), 0)
