"""Every segmentation of a row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from trelliswork.structures.segments.structure import Segments

Segment = tuple[int, int, int]


def segmentations(parts: Segments, row: int) -> list[tuple[Segment, ...]]:
    """All ways to cut a row into labelled segments (start, end, label) of at most k positions."""
    return list(cuts(0, int(parts.lengths[row]), [parts.k] * parts.c))


def cuts(first: int, length: int, longest: list[int]) -> Iterator[tuple[Segment, ...]]:
    """All labelled segmentations of positions first..length-1; `longest` has the longest segment of each label."""
    if first == length:
        yield ()
        return
    for label, limit in enumerate(longest):
        for last in range(first + 1, min(first + limit, length) + 1):
            for rest in cuts(last, length, longest):
                yield ((first, last, label), *rest)


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
