"""A model of what a query of scores on another device takes: there by the reference, or by kernel on a copy.

A reference takes a launch for each of its operations, or the card's time for the arithmetic if that is more; kernels
take two transfers and the arithmetic on the host. The model has one table of constants (`COSTS`), which the environment
variable TRELLISWORK_DEVICE_COSTS overrides: `launch=8e-6,bandwidth=2.4e10`.

`launches` and the seconds of kernels were counted and timed on a CPU; the rest are usual figures of cards on PCIe, not
measured (docs/guides/gpu.md).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork import logs
from trelliswork.errors import TrellisworkError

VARIABLE = "TRELLISWORK_DEVICE_COSTS"
COSTS = {
    "launch": 6e-6,  # seconds of the host for one operation of the device
    "transfer": 2e-5,  # seconds of one transfer and its synchronisation, whatever its size
    "bandwidth": 1e10,  # bytes each second
    "device_rate": 1e10,  # units of work each second on the device, in float64, which most cards do at 1/64 of float32
    "host_rate": 6e8,  # units of work each second on one core, gradients included
    "scan_work": 1e6,  # units of work of one position, up to which chains are scanned on the device (`chain/scan.py`)
}


class Size(NamedTuple):
    """The extent of a query: bytes to move, and the shape of the largest tensor of scores."""

    n_bytes: int
    shape: tuple[int, ...]

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> Size:
        """Return the size of parts that consist of these tensors."""
        scores = [tensor for tensor in tensors if tensor.is_floating_point()]
        largest = max(scores, key=Tensor.numel, default=tensors[0])
        return Size(sum(tensor.numel() * tensor.element_size() for tensor in tensors), tuple(largest.shape))


class Extent(NamedTuple):
    """Units of work (multiply-adds) of kernels, and launches and work of the reference, gradients included."""

    work: float
    launches: float
    scanned: float = 0.0  # of the reference, where it does more than kernels


def _chain(shape: tuple[int, ...]) -> Extent:
    """Emissions [batch, n, c], or transitions [batch, n-1, c, c] if they are larger: by scan, or in a loop."""
    batch, n, c = (*shape, 1, 1)[:3]
    products = batch * c**3
    if products <= COSTS["scan_work"]:
        return Extent(batch * n * c * c, 70 + 16 * math.ceil(math.log2(n + 1)), products * n)
    return Extent(batch * n * c * c, 60 + 26 * n)


def _segments(shape: tuple[int, ...]) -> Extent:
    """Segments [batch, n, k, c]; of what is factored, tokens [batch, n, c]."""
    batch, n, *others = (*shape, 1, 1)
    size = math.prod(others)
    products = batch * size**3 / 4
    if products <= 4 * COSTS["scan_work"]:
        return Extent(batch * n * size * (1 + shape[-1]), 190 + 20 * math.ceil(math.log2(n + 1)), products * n)
    return Extent(batch * n * size * (1 + shape[-1]), 60 + 45 * n)


def _cubic(per_width: float) -> Callable[[tuple[int, ...]], Extent]:
    """Charts [batch, n, n, ...] whose spans are split at every place."""

    def extent(shape: tuple[int, ...]) -> Extent:
        batch, n = (*shape, 1)[:2]
        return Extent(batch * n**3 + 10 * math.prod(shape), 60 + per_width * n)

    return extent


def _stepwise(per_step: float) -> Callable[[tuple[int, ...]], Extent]:
    """Lattices [batch, steps, ...] that are walked once."""

    def extent(shape: tuple[int, ...]) -> Extent:
        return Extent(10 * math.prod(shape), 60 + per_step * (*shape, 1)[1])

    return extent


EXTENTS: dict[str, Callable[[tuple[int, ...]], Extent]] = {
    "chain": _chain,
    "segments": _segments,
    "constituency": _cubic(23),
    "projective": _cubic(48),
    "spanning": _cubic(107),
    "grammar": _cubic(50),
    "ctc": _stepwise(55),
    "ctc strings": _stepwise(55),
    "edit": _stepwise(124),
    "factors": _stepwise(30),
}


def copy_is_cheaper(structure: str, size: Size, device: torch.device) -> bool:
    """Return whether kernels on a copy take less time than the reference on the device, and say so once at DEBUG.

    A structure that the table does not know is always asked by kernel.

    Args:
        structure: name of the structure.
        size: how much the query has to do.
        device: where the scores lie.

    Returns:
        True for kernels on a copy.
    """
    costs = _costs(os.environ.get(VARIABLE, ""))
    if structure not in EXTENTS:
        return True
    work, launches, scanned = EXTENTS[structure](size.shape)
    there = max(launches * costs["launch"], max(work, scanned) / costs["device_rate"])
    here = 2 * (costs["transfer"] + size.n_bytes / costs["bandwidth"]) + work / costs["host_rate"]
    chosen = here < there
    if logs.LOGGER.isEnabledFor(logging.DEBUG):
        _say_once(structure, str(device), chosen, f"{here:.1e}", f"{there:.1e}")
    return chosen


_SAID: set[tuple[str, str, bool]] = set()


def _say_once(structure: str, device: str, chosen: bool, here: str, there: str) -> None:
    """Log a choice when it is made for the first time for a structure and device."""
    if (structure, device, chosen) in _SAID:
        return
    _SAID.add((structure, device, chosen))
    way = "kernels on a copy" if chosen else "torch on the device"
    logs.tell(
        f"{structure} on {device}: {way} (foretold: {here} s on a copy, {there} s on the device)",
        level=logging.DEBUG,
        structure=structure, device=device, copied=chosen,
    )  # fmt: skip


@cache
def _costs(given: str) -> dict[str, float]:
    """The table of constants, with what the environment variable says instead."""
    costs = dict(COSTS)
    for entry in filter(None, (piece.strip() for piece in given.split(","))):
        name, _, number = entry.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if name not in COSTS or not value >= 0:
            raise TrellisworkError(
                f"{VARIABLE} must be like launch=8e-6,bandwidth=2e10 with names of {', '.join(COSTS)} and numbers "
                f"from 0 on; got {entry!r}"
            )
        costs[name] = value
    return {name: max(value, 1e-30) for name, value in costs.items()}
