"""Changes of a distribution before sampling: temperature, truncation to the k best symbols or to the nucleus."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.shapes import Float

INF = float("inf")


def tempered(log_probs: Float[Tensor, "*batch v"], temperature: float) -> Float[Tensor, "*batch v"]:
    """Return p(k)^(1/T), normalised: T → 0 gives the best symbol, T → ∞ the uniform distribution.

    >>> tempered(torch.tensor([0.8, 0.2]).log(), 0.5).exp()
    tensor([0.9412, 0.0588])
    """  # [S2, softmax]
    if not temperature > 0:
        raise ScoreError(f"temperature must be above 0; got {temperature}; 1 leaves the distribution unchanged")
    return (log_probs / temperature).log_softmax(-1)


def keep_best(log_probs: Float[Tensor, "*batch v"], n_kept: int) -> Float[Tensor, "*batch v"]:
    """Restrict a distribution to its `n_kept` best symbols, and normalise it.

    >>> keep_best(torch.tensor([0.5, 0.3, 0.2]).log(), 2).exp()
    tensor([0.6250, 0.3750, 0.0000])

    Fan, Lewis and Dauphin (2018), Hierarchical neural story generation.
    """
    if n_kept < 1:
        raise ScoreError(f"at least 1 symbol must be kept; got {n_kept}")
    if n_kept >= log_probs.shape[-1]:
        return log_probs
    kept = log_probs.topk(n_kept, -1).indices  # indices, not a threshold: exactly n_kept symbols even with ties
    mask = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, kept, True)
    return log_probs.masked_fill(~mask, -INF).log_softmax(-1)


def nucleus(log_probs: Float[Tensor, "*batch v"], mass: float) -> Float[Tensor, "*batch v"]:
    """Restrict a distribution to the smallest set of symbols with a probability of at least `mass`, and normalise it.

    >>> nucleus(torch.tensor([0.5, 0.3, 0.2]).log(), 0.7).exp()
    tensor([0.6250, 0.3750, 0.0000])

    Holtzman et al. (2020), The curious case of neural text degeneration.
    """  # [S4.426]
    if not 0 < mass <= 1:
        raise ScoreError(f"the mass of a nucleus must lie in (0, 1]; got {mass}; try 0.9")
    ordered, order = torch.sort(log_probs, dim=-1, descending=True, stable=True)
    probabilities = ordered.double().exp()
    before = probabilities.cumsum(-1) - probabilities
    kept = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, order, before < mass)
    return log_probs.masked_fill(~kept, -INF).log_softmax(-1)
