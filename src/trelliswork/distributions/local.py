"""Chains that are normalised at each token, as in a maximum-entropy Markov model, to compare with."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float


def locally_normalised(chain: LinearChain) -> LinearChain:
    """Return the chain of log p(y_t | y_{t-1}, x) = log softmax of what y_{t-1} leaves to choose from; its log Z is 0.

    What ends a sentence counts as one more choice at its last token.
    """
    if chain.transitions.dim() != 2:
        shape = tuple(chain.transitions.shape)
        raise ScoreError(f"transitions must be [c, c] to be normalised token by token; got {shape}; share them")
    emissions, arcs = local_scores(chain.emissions, chain.transitions, chain.start, chain.end, chain.valid)
    return LinearChain(emissions, arcs, mask=chain.valid, backend=chain.backend)


def local_scores(
    emissions: Float[Tensor, "*batch n c"],
    transitions: Float[Tensor, "c c"],
    start: Float[Tensor, "c"],
    end: Float[Tensor, "c"],
    valid: Bool[Tensor, "*batch n"],
) -> tuple[Float[Tensor, "*batch n c"], Float[Tensor, "*batch n-1 c c"]]:
    """Return emissions and transitions that are log p(y_t | y_{t-1}, x), in plain operations.

    Args:
        emissions: scores [*batch, n, c] of the tags at each position.
        transitions: scores [c, c] of pairs of tags, indexed [from, to].
        start: scores [c] of the first tag.
        end: scores [c] of the last tag.
        valid: True at positions that are read [*batch, n].

    Returns:
        Log-probabilities: emissions of the first position and 0 elsewhere, and transitions by position.
    """
    last = valid & ~torch.cat([valid[..., 1:], torch.zeros_like(valid[..., :1])], -1)
    scores = emissions + torch.where(last[..., None], end, 0.0)
    first = _log_softmax(scores[..., :1, :] + start)
    arcs = _log_softmax(scores[..., 1:, None, :] + transitions)
    return torch.cat([first, torch.zeros_like(scores[..., 1:, :])], -2), arcs


def _log_softmax(scores: Tensor) -> Tensor:
    """Return log softmax over the last axis; -inf, with a gradient of 0, where there is nothing to choose."""
    possible = (scores > -INF).any(-1, keepdim=True)
    return torch.where(possible, torch.log_softmax(torch.where(possible, scores, 0.0), -1), -INF)
