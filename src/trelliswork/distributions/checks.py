"""Checks that many distributions share, with a sentence for each thing that can be wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Int
from trelliswork.runtime.bridge import any_seen, require_numbers, values_are_hidden
from trelliswork.runtime.kernel_math import LARGEST_SCORE

Lengths = Tensor | Sequence[int]
"""The length of each row."""
KnownRows = Sequence[Any]
"""Knowledge of each row, such as some of its segments or nodes, in lists nested as the batch is."""


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return tensor.to(dtype), free where nothing changes."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def check_tensor(name: str, value: object) -> None:
    """Require a tensor, not a list or an array that only looks like one."""
    if not isinstance(value, Tensor):
        raise ScoreError(f"{name} must be a tensor; got {type(value).__name__}; call torch.tensor() on it")


def check_tensors(**parts: object) -> None:
    """Require tensors of several by name, as far as they are given."""
    for name, part in parts.items():
        if part is not None:
            check_tensor(name, part)


def check_floating(dtype: torch.dtype) -> None:
    if not dtype.is_floating_point:
        raise ScoreError(f"scores must be floating point; got {dtype}; call .float() on them")


def is_whole(tensor: Tensor) -> bool:
    """Return whether all numbers are whole; truth values are not numbers."""
    return not (tensor.dtype.is_floating_point or tensor.dtype == torch.bool)


def one_dtype(parts: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Return scores in the dtype that holds all of them, which must be floating point and on one device."""
    given = [part for part in parts if part is not None]
    if all(part.dtype is given[0].dtype and part.is_cpu for part in given):
        check_floating(given[0].dtype)
        return tuple(parts)
    if any(part.device != given[0].device for part in given):
        devices = sorted({str(part.device) for part in given})
        raise ScoreError(f"all scores must be on one device; got {devices}; move them with .to(device)")
    dtype = given[0].dtype
    for part in given:
        dtype = torch.promote_types(dtype, part.dtype) if part.dtype != dtype else dtype
    check_floating(dtype)
    return tuple(None if part is None else cast(part, dtype) for part in parts)


def check_edges(transitions: Tensor | None, edges: dict[str, Tensor], c: int, of: str) -> None:
    """Check the shapes of transitions [c, c], and of start and end scores [c], one for each of `of`.

    Args:
        transitions: [c, c] or None, which is not checked.
        edges: scores [c] by name, such as `start` and `end`.
        c: the number of tags or labels.
        of: what there are c of, for the sentence of an error.
    """
    if transitions is not None and transitions.shape != (c, c):
        raise ScoreError(f"transitions must be {(c, c)}, indexed [from, to]; got {tuple(transitions.shape)}")
    for name, edge in edges.items():
        if edge.shape != (c,):
            raise ScoreError(f"{name} must be ({c},), one score a {of}; got {tuple(edge.shape)}")


def refuse_not_scores(
    name: str, scores: Tensor, read: Tensor | None = None, at: Callable[[list[int]], object] = list
) -> None:
    """Refuse NaN, +inf and scores whose sums could overflow, by name and place, where they are read.

    `at` writes a place.

    Args:
        name: what the scores are called.
        scores: scores of any shape.
        read: True where scores are read, of a shape that broadcasts to theirs; None for everywhere.
        at: a function from the index of a score to what is written of its place.
    """
    wrong = ~(scores.detach() <= min(LARGEST_SCORE, torch.finfo(scores.dtype).max))
    wrong = wrong if read is None else wrong & read
    if any_seen(wrong):
        place = wrong.nonzero()[0].tolist()
        if scores[tuple(place)].isfinite():
            problem = f"got {scores[tuple(place)].item():g} at {at(place)}"
            raise ScoreError(
                f"{name} must be at most {LARGEST_SCORE:g}, so that sums are finite; {problem}; scale them down"
            )
        raise ScoreError(
            f"{name} must be finite numbers or -inf; got {scores[tuple(place)].item()} at {at(place)}; "
            "look for a division by zero or an overflow upstream, and forbid with -inf"
        )


def refuse_not_scores_in(parts: Mapping[str, Tensor | None]) -> None:
    """Refuse what `refuse_not_scores` does in several parts; on a device, one number is waited for, not one of each."""
    given = {name: part.detach() for name, part in parts.items() if part is not None and part.numel()}
    most = [min(LARGEST_SCORE, torch.finfo(part.dtype).max) for part in given.values()]
    highest = [part.amax() for part in given.values()]  # NaN is higher than all numbers
    if highest and any_seen(~(torch.stack(highest) <= min(most))):
        for name, part in given.items():
            refuse_not_scores(name, part)


def named_place(*names: str) -> Callable[[list[int]], str]:
    """Return a function that writes a place as "row 0, word 3"; there may be more names than axes."""
    return lambda place: ", ".join(f"{name} {index}" for name, index in zip(names, place, strict=False))


def flat_lengths(
    name: str,
    lengths: Lengths | None,
    batch_shape: torch.Size,
    most: int,
    device: torch.device,
    least: int = 0,
    fix: str = "pad or shorten the row",
) -> Int[Tensor, "rows"]:
    """Return one whole number a row, in least..most; `most` if none are given.

    Args:
        name: what the lengths are called, for the sentence of an error.
        lengths: one for each row, as a tensor [*batch] or a sequence; None for `most` everywhere.
        batch_shape: the batch axes.
        most: the highest length.
        device: where the result lies.
        least: the lowest length.
        fix: what the caller can do about a length out of range.

    Returns:
        Lengths of all rows = prod(batch_shape) in one axis.
    """
    if lengths is None:
        return torch.full((batch_shape.numel(),), most, device=device)
    try:
        given = torch.as_tensor(lengths, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"{name} must be whole numbers of shape {tuple(batch_shape)}; got {lengths!r}") from error
    if not given.numel() and not isinstance(lengths, Tensor):
        given = given.long()
    if given.shape != batch_shape or not is_whole(given):
        raise ScoreError(
            f"{name} must be whole numbers of shape {tuple(batch_shape)}; got {given.dtype} {tuple(given.shape)}"
        )
    flat = cast(given.reshape(-1), torch.long)
    numbers = [] if values_are_hidden() else flat.tolist()  # a few numbers: quicker than torch
    if numbers and not least <= min(numbers) <= max(numbers) <= most:
        row = next(row for row, length in enumerate(numbers) if not least <= length <= most)
        raise ScoreError(f"{name} must lie in {least}..{most}; got {numbers[row]} at row {row}; {fix}")
    return flat


def whole_values(name: str, value: Tensor, shape: Sequence[int]) -> Int[Tensor, "*samples *shape"]:
    """Return values [*samples, *shape], whole numbers.

    Args:
        name: what the values are called, for the sentence of an error.
        value: a tensor of any integer dtype, any samples first.
        shape: the axes that it must end with.

    Returns:
        The values as int64.
    """
    check_tensor(name, value)
    if not is_whole(value):
        raise ScoreError(f"{name} must be whole numbers; got {value.dtype}; call .long() on them")
    if value.shape[max(0, value.dim() - len(shape)) :] != tuple(shape):
        raise ScoreError(f"{name} must be [..., {', '.join(map(str, shape))}]; got {tuple(value.shape)}")
    return cast(value, torch.long)


def real_values(
    name: str, value: Tensor, batch_shape: torch.Size, real: Bool[Tensor, "rows n"]
) -> Int[Tensor, "samples rows n"]:
    """Return values [*samples, *batch, n] as [samples, rows, n], 0 at padding.

    Args:
        name: what the values are called, for the sentence of an error.
        value: whole numbers [*samples, *batch, n].
        batch_shape: the batch axes.
        real: True at positions that are no padding.

    Returns:
        One axis for all samples, one for all rows.
    """
    whole = whole_values(name, value, (*batch_shape, real.shape[1]))
    n_samples = whole.shape[: whole.dim() - len(batch_shape) - 1].numel()
    return torch.where(real, whole.reshape(n_samples, *real.shape), 0)


def allowed_values(
    partial: Tensor, scores: Tensor, real: Bool[Tensor, "*batch n"], nouns: tuple[str, str] = ("tags", "tags")
) -> Bool[Tensor, "*batch n c"]:
    """Return allowed values from values with negatives for unknown [*batch, n], or from a mask [*batch, n, c] itself.

    `nouns` say what is allowed at each place, and what all places together are.

    Args:
        partial: whole numbers [*batch, n], or True for each allowed value [*batch, n, c].
        scores: scores [*batch, n, c], whose shape and device the mask must fit.
        real: True at positions that are no padding.
        nouns: what is allowed at each place, and what all places together are, for the sentence of an error.

    Returns:
        True where a value is allowed; everything at padding.
    """
    check_tensor("partial knowledge", partial)
    if partial.dtype == torch.bool:
        if partial.shape != scores.shape:
            raise ScoreError(
                f"allowed {nouns[0]} must be {tuple(scores.shape)}, True = allowed; got {tuple(partial.shape)}"
            )
        return partial
    if partial.dtype.is_floating_point or partial.shape != scores.shape[:-1]:
        raise ScoreError(
            f"partial {nouns[1]} must be whole numbers {tuple(scores.shape[:-1])}, -100 = unknown; "
            f"got {partial.dtype} {tuple(partial.shape)}"
        )
    known = known_values(f"partial {nouns[1]}", partial, real, scores.shape[-1])
    return (known[..., None] < 0) | (known[..., None] == torch.arange(scores.shape[-1], device=partial.device))


def known_values(name: str, partial: Tensor, real: Bool[Tensor, "*batch n"], n_values: int) -> Int[Tensor, "*batch n"]:
    """Return values below `n_values`, negative where they are unknown, padding included.

    Args:
        name: what the values are called, for the sentence of an error.
        partial: whole numbers [*batch, n].
        real: True at positions that are no padding.
        n_values: the number of values.

    Returns:
        The values, -1 at padding.
    """
    known = torch.where(real, partial, -1)
    if any_seen(known >= n_values):
        raise ScoreError(f"{name} must lie in 0..{n_values - 1} or be -100 for unknown; got {int(known.max())}")
    return known


def known_rows(partial: KnownRows, batch_shape: torch.Size, what: str) -> KnownRows:
    """Return what is known of each row, from lists nested as the batch is.

    Args:
        partial: lists nested as deeply as the batch has axes, with what is known of a row in each innermost one.
        batch_shape: the batch axes.
        what: what is known of a row, for the sentence of an error.

    Returns:
        One entry for each of the prod(batch_shape) rows.
    """
    rows = [partial] if not batch_shape else partial
    for _ in batch_shape[1:]:
        rows = [row for block in rows for row in block]
    if len(rows) != batch_shape.numel():
        raise ScoreError(f"known {what} must be one list a row, {tuple(batch_shape)}; got {len(rows)}")
    return list(rows)


def label_index(label: int | str | None, labels: Sequence[str] | None) -> int | None:
    """Return a label by its index, or by its name among `labels`."""
    if not isinstance(label, str):
        return label
    if labels is None or label not in labels:
        raise ScoreError(f"label must be an index or one of labels={labels}; got {label!r}")
    return list(labels).index(label)


def check_k(k: SupportsIndex, noun: str) -> int:
    """Check the number of best values that are asked for, a whole number from 1."""
    try:
        wanted = operator.index(k)
    except TypeError:
        raise ScoreError(f"k must be a whole number; got {k!r}; ask for one best {noun} or more") from None
    if wanted < 1:
        raise ScoreError(f"k must be at least 1; got {wanted}; ask for one best {noun} or more")
    return wanted


def check_sample_shape(sample_shape: Sequence[int]) -> torch.Size:
    """Return the shape of samples; one number alone is a likely slip, and an error."""
    if isinstance(sample_shape, int):
        raise ScoreError(f"sample_shape must be a tuple; got {sample_shape}; write sample(({sample_shape},))")
    return torch.Size(sample_shape)


def require_finite_totals(log_z: Tensor, count: Callable[[], Tensor] | None = None) -> None:
    """Require finite totals for samples and searches, which draw by shares of the total.

    With `count`, so does a row that has structures, but a total of -inf: overflow can look like this.
    """
    require_numbers("what is drawn or searched by shares")
    totals = log_z.detach().reshape(-1)
    wrong = ~(totals < INF)
    if count is not None and bool((totals == -INF).any()):
        wrong |= (totals == -INF) & (count().reshape(-1) > 0)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ScoreError(
            f"the scores of row {row} must have a finite total; got {totals[row].item()}; scale them down so that "
            "their sums stay within ±1.8e308, and look for NaN and +inf among them"
        )
