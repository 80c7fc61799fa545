"""Every segmentation of a row, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from trelliswork.structures.segments.structure import Segments

Segment = tuple[int, int, int]


def segmentations(parts: Segments, row: int) -> list[tuple[Segment, ...]]:
    """All ways to cut a row into labelled segments (start, end, label) of at most k positions."""
    return list(_cuts(0, int(parts.lengths[row]), parts.k, parts.c))


def _cuts(first: int, length: int, k: int, c: int) -> Iterator[tuple[Segment, ...]]:
    if first == length:
        yield ()
    for last in range(first + 1, min(first + k, length) + 1):
        for rest in _cuts(last, length, k, c):
            yield from (((first, last, label), *rest) for label in range(c))


def score(parts: Segments, row: int, segmentation: tuple[Segment, ...]) -> Tensor:
    """start + segments + transitions + end, added up part by part."""
    labels = [label for _, _, label in segmentation]
    value = parts.start[labels[0]] + parts.end[labels[-1]]
    for first, last, label in segmentation:
        value = value + parts.segments[row, first, last - first - 1, label]
    if parts.transitions is not None:
        for before, after in itertools.pairwise(labels):
            value = value + parts.transitions[before, after]
    return value


def scores(parts: Segments, row: int) -> Tensor:
    """The score of every segmentation of `segmentations`, in the same order."""
    return torch.stack([score(parts, row, each) for each in segmentations(parts, row)])
