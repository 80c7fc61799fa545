"""Segmentations as values: lists of (start, end, label) for people, starts [..., n] for tensors, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.structures.segments.structure import ends_of

Nested = list[Any]
"""A value for each row, in lists nested as [*samples, *batch]: one row itself where the batch has no axes."""
Segment = tuple[int, int, int]
"""(start, end, label), end exclusive."""


def to_lists(starts: Int[Tensor, "rows n"], lengths: Int[Tensor, "rows"]) -> list[list[Segment]]:
    """Return each row's segments; `starts` has the label where a segment starts and -1 elsewhere."""
    rows = []
    for labels, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        firsts = [i for i in range(length) if labels[i] >= 0]
        rows.append([(i, j, labels[i]) for i, j in zip(firsts, [*firsts[1:], length], strict=True)])
    return rows


def nested(rows: Nested, shape: Sequence[int]) -> Any:
    """Return a flat list in lists of lists of this shape; shape () is the only row itself."""
    if not shape:
        return rows[0]
    if len(shape) == 1:
        return rows
    size = torch.Size(shape[1:]).numel()
    return [nested(rows[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def is_row(value: object) -> bool:
    """Return whether this is one segmentation, not a list of them."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, list | tuple) for each in value[:1]):
        raise ScoreError(f"values must be lists of (start, end, label), one a row; got {value!r:.60}")
    return len(value) == 0 or (len(value[0]) == 3 and not isinstance(value[0][0], (list, tuple)))


def flattened(value: Nested, batch_shape: Sequence[int] = ()) -> tuple[Nested, tuple[int, ...]]:
    """Return the rows of nested lists of segmentations, and the shape they were nested in.

    [] for a batch without rows.
    """
    if 0 in batch_shape and isinstance(value, list | tuple) and not value:
        return [], tuple(batch_shape)
    if is_row(value):
        return [value], ()
    rows, shapes = zip(*(flattened(each) for each in value), strict=True)
    if len(set(shapes)) > 1:
        raise ScoreError(f"values must be nested evenly, as [..., batch]; got parts of shapes {set(shapes)}")
    return [row for part in rows for row in part], (len(value), *shapes[0])


def from_lists(value: Nested, lengths: Int[Tensor, "rows"], batch_shape: torch.Size, n: int) -> Int[Tensor, "..."]:
    """Return lists [*samples, *batch] of segmentations as starts [*samples, *batch, n]; each must cover its row.

    Args:
        value: lists nested like the samples and the batch; each innermost one has the segments (start, end, label) of a
            row.
        lengths: the number of tokens of each row.
        batch_shape: the batch axes.
        n: the number of tokens of a row, padding included.

    Returns:
        The label at each token that starts a segment, negative elsewhere.
    """
    rows, shape = flattened(value, batch_shape)
    if len(shape) < len(batch_shape) or shape[len(shape) - len(batch_shape) :] != tuple(batch_shape):
        raise ScoreError(
            f"values must be one list of (start, end, label) for each of the rows {tuple(batch_shape)}; got {shape}"
        )
    length_of = lengths.tolist()
    starts = [_row_of(row, index % len(length_of), length_of, n) for index, row in enumerate(rows)]
    return torch.tensor(starts, dtype=torch.long, device=lengths.device).reshape(*shape, n)


def _row_of(segments: Sequence[Segment], row: int, lengths: list[int], n: int) -> list[int]:
    """Return one segmentation as starts; its segments must follow one another and cover the row."""
    starts, place = [-1] * n, 0
    for first, last, label in segments:
        if first != place or last <= first:
            raise ScoreError(
                f"segments must follow one another without gaps; got {(first, last, label)} at row {row} "
                f"where one starting at {place} was expected; fill gaps with a label"
            )
        if label < 0:
            raise ScoreError(f"labels must be at least 0; got {(first, last, label)} at row {row}")
        if first < n:
            starts[first] = label
        place = last
    if place != lengths[row]:
        raise ScoreError(
            f"segments must cover the row; got an end at {place} of row {row}, which has {lengths[row]} positions"
        )
    return starts


def check_starts(
    starts: Int[Tensor, "samples rows n"], lengths: Int[Tensor, "rows"], longest: Int[Tensor, "c"]
) -> None:
    """Check that labels are in range, a segment starts at position 0, and none is longer than its label may be.

    Args:
        starts: the label at each token that starts a segment, negative elsewhere.
        lengths: the number of tokens of each row.
        longest: the longest segment of each label.
    """
    n, c = starts.shape[-1], len(longest)
    place = torch.arange(n, device=starts.device)
    real = place < lengths[:, None]
    for sample in starts:
        begins = real & (sample >= 0)
        ends = ends_of(sample, lengths)
        too_long = begins & (ends - place > longest[sample.clamp(0, c - 1)])
        _refuse(begins & (sample >= c), sample, ends, f"labels must lie in 0..{c - 1}")
        if not bool(begins[:, 0].all()):
            row = int((~begins[:, 0]).nonzero()[0])
            raise ScoreError(f"a segment must start at position 0; got {int(sample[row, 0])} there at row {row}")
        if bool(too_long.any()):
            row, first = too_long.nonzero()[0].tolist()
            label = int(sample[row, first])
            _refuse(
                too_long,
                sample,
                ends,
                f"segments labelled {label} may cover at most {int(longest[label])} positions",
                "; score longer segments (a larger k), raise max_lengths, or cut it in the data",
            )


def _refuse(wrong: Bool[Tensor, "rows n"], starts: Tensor, ends: Tensor, rule: str, fix: str = "") -> None:
    if bool(wrong.any()):
        row, first = wrong.nonzero()[0].tolist()
        segment = (first, int(ends[row, first]), int(starts[row, first]))
        raise ScoreError(f"{rule}; got {segment} at row {row}{fix}")


def allowed_by_tokens(labels: Int[Tensor, "rows n"], k: int, c: int) -> Bool[Tensor, "rows n k c"]:
    """Return segments whose label is that of each of their positions.

    A negative label is unknown and agrees with all.

    Args:
        labels: the label of each token.
        k: the longest segment.
        c: the number of labels.

    Returns:
        True where a segment is allowed.
    """
    n = labels.shape[1]
    apart = (labels[..., None] >= 0) & (labels[..., None] != torch.arange(c, device=labels.device))
    so_far = torch.cat([apart.new_zeros(len(labels), 1, c), apart.cumsum(1)], 1)  # (rows, n+1, c)
    first = torch.arange(n, device=labels.device)[:, None]
    last = (first + 1 + torch.arange(k, device=labels.device)).clamp(max=n)
    return so_far[:, last] == so_far[:, first]


def allowed_by_segments(
    known: Sequence[Sequence[tuple[int, int, int | None]]], n: int, k: int, c: int, device: torch.device
) -> Bool[Tensor, "rows n k c"]:
    """Return segments that are one of the known ones of their row or touch none of them; a label of None is unknown.

    Args:
        known: for each row the segments (start, end, label) that are known.
        n: the number of tokens of a row, padding included.
        k: the longest segment.
        c: the number of labels.
        device: where the result lies.

    Returns:
        True where a segment is allowed.
    """
    allowed = torch.ones(len(known), n, k, c, dtype=torch.bool, device=device)
    first = torch.arange(n, device=device)[:, None]
    last = first + 1 + torch.arange(k, device=device)
    for row, segments in enumerate(known):
        for i, j, label in segments:
            if not 0 <= i < j <= n or j - i > k or (label is not None and not 0 <= label < c):
                raise ScoreError(
                    f"known segments must be (start, end, label) within 0..{n}, of at most {k} positions, labelled "
                    f"0..{c - 1} or None; got {(i, j, label)} at row {row}"
                )
            same = ((first == i) & (last == j))[..., None].expand(n, k, c)
            if label is not None:
                same = same & (torch.arange(c, device=device) == label)
            apart = (last <= i) | (first >= j)
            allowed[row] &= same | apart[..., None]
    return allowed
