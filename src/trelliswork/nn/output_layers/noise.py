"""Distributions that symbols are drawn from where not all are scored."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.shapes import Float


def log_uniform(n_symbols: int) -> Float[Tensor, " v"]:
    """P(k) = (ln(k + 2) - ln(k + 1)) / ln(v + 1), for symbols that are numbered by falling frequency.

    >>> log_uniform(3).sum()
    tensor(1.)
    """
    k = torch.arange(n_symbols, dtype=torch.float64)
    total = torch.log(torch.tensor(n_symbols + 1.0, dtype=torch.float64))
    return (torch.log((k + 2) / (k + 1)) / total).float()  # [S4.359]


def zipf(n_symbols: int, exponent: float = 1.0) -> Float[Tensor, " v"]:
    """P(k) ∝ 1 / k^s, with k counted from 1."""
    weights = torch.arange(1, n_symbols + 1, dtype=torch.float64) ** -exponent
    return (weights / weights.sum()).float()  # [S4.360]


def checked(noise: Float[Tensor, " v"] | None, n_symbols: int) -> Float[Tensor, " v"]:
    """Counts or probabilities of all symbols as probabilities; log-uniform if there are none."""
    if noise is None:
        return log_uniform(n_symbols)
    if noise.shape != (n_symbols,) or not bool((noise > 0).all()):
        raise ScoreError(f"noise must be positive numbers for {n_symbols} symbols; got {tuple(noise.shape)}; add 1")
    return (noise.double() / noise.double().sum()).float()
