"""Every edit script of a row, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from trelliswork.structures.edit.structure import EditLattice

MOVES = ((1, 1), (1, 0), (0, 1))  # substitute, delete, insert


def scripts(parts: EditLattice, row: int) -> list[tuple[int, ...]]:
    """All ways from (0, 0) to the row's last cell."""
    return list(_ways(int(parts.lengths[row]), int(parts.target_lengths[row])))


def _ways(i: int, j: int) -> Iterator[tuple[int, ...]]:
    if i == j == 0:
        yield ()
    for operation, (reads, writes) in enumerate(MOVES):
        if reads <= i and writes <= j:
            for way in _ways(i - reads, j - writes):
                yield (*way, operation)


def scores(parts: EditLattice, row: int) -> torch.Tensor:
    """The score of every script of `scripts`, in the same order."""
    found = []
    for script in scripts(parts, row):
        i = j = 0
        score = 0.0
        for operation in script:
            i, j = i + MOVES[operation][0], j + MOVES[operation][1]
            score += parts.scores[row, i, j, operation].item()
        found.append(score)
    return torch.tensor(found, dtype=torch.float64)
