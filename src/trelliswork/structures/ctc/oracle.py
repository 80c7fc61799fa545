"""Every path of a row, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from trelliswork.structures.ctc.structure import Labelling

Path = tuple[int, ...]


def collapsed(path: Sequence[int], blank: int) -> tuple[int, ...]:
    """B(π): repeats merged, then blanks dropped."""
    return tuple(symbol for symbol, _ in itertools.groupby(path) if symbol != blank)


def paths(parts: Labelling, row: int) -> list[Path]:
    """All paths of a row that collapse to its labels."""
    n_frames, c = int(parts.lengths[row]), parts.scores.shape[2]
    labels = tuple(parts.targets[row, : int(parts.target_lengths[row])].tolist())
    every = itertools.product(range(c), repeat=n_frames)
    return [path for path in every if collapsed(path, parts.blank) == labels]


def scores(parts: Labelling, row: int) -> torch.Tensor:
    """The score of every path of `paths`, in the same order."""
    found = [sum(parts.scores[row, t, symbol].item() for t, symbol in enumerate(path)) for path in paths(parts, row)]
    return torch.tensor(found, dtype=torch.float64)


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
