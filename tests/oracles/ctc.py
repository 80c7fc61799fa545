"""Every label string that a few frames can collapse to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch


def collapsed(path: Sequence[int], blank: int) -> tuple[int, ...]:
    """B(π): repeats merged, then blanks dropped."""
    return tuple(symbol for symbol, _ in itertools.groupby(path) if symbol != blank)


def strings(log_probs: torch.Tensor, blank: int) -> dict[tuple[int, ...], float]:
    """log of the summed exp scores of every label string that frames [t, c] can collapse to."""
    weights: dict[tuple[int, ...], list[float]] = {}
    rows = log_probs.double().tolist()
    for path in itertools.product(range(log_probs.shape[1]), repeat=log_probs.shape[0]):
        score = sum(rows[t][symbol] for t, symbol in enumerate(path))
        if score > -math.inf:
            weights.setdefault(collapsed(path, blank), []).append(score)
    return {string: _log_sum(found) for string, found in weights.items()}


def _log_sum(found: list[float]) -> float:
    top = max(found)
    return top + math.log(math.fsum(math.exp(score - top) for score in found))
