"""Chains that are normalised at each token, as in a maximum-entropy Markov model, to compare with."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.distributions.linear_chain import LinearChain
from trelliswork.errors import ScoreError

INF = float("inf")


def locally_normalised(chain: LinearChain) -> LinearChain:
    """The chain of log p(y_t | y_{t-1}, x) = log softmax of what y_{t-1} leaves to choose from; its log Z is 0.

    What ends a sentence counts as one more choice at its last token.
    """
    if chain.transitions.dim() != 2:
        shape = tuple(chain.transitions.shape)
        raise ScoreError(f"transitions must be [c, c] to be normalised token by token; got {shape}; share them")
    last = chain.valid & ~torch.cat([chain.valid[..., 1:], torch.zeros_like(chain.valid[..., :1])], -1)
    scores = chain.emissions + torch.where(last[..., None], chain.end, 0.0)
    first = _log_softmax(scores[..., :1, :] + chain.start)
    arcs = _log_softmax(scores[..., 1:, None, :] + chain.transitions)
    emissions = torch.cat([first, torch.zeros_like(scores[..., 1:, :])], -2)
    return LinearChain(emissions, arcs, mask=chain.valid, backend=chain.backend)


def _log_softmax(scores: Tensor) -> Tensor:
    """Over the last axis; -inf, with a gradient of 0, where there is nothing to choose."""
    possible = (scores > -INF).any(-1, keepdim=True)
    return torch.where(possible, torch.log_softmax(torch.where(possible, scores, 0.0), -1), -INF)
