"""Scores of another device on the host and results back: one transfer each way, differentiable to every order.

Scores of a structured layer are small, and a recursion launches thousands of operations: on a GPU a copy is often the
cheaper way (`device_costs.py`, decision 67). A query asked by `by_copy` is one step of autograd: kernels find it and
its first derivative on the host. When a gradient is itself differentiated, the reference does it on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.autograd import Results, by_reference

PINNED = ("cuda", "xpu")  # devices that copy into pinned memory while the host goes on
NO_DOUBLES = ("mps",)  # devices without float64


def is_elsewhere(tensor: Tensor) -> bool:
    """Return whether kernels cannot read a tensor where it is."""
    return not tensor.is_cpu


def tensors_in(part: object) -> Iterator[Tensor]:
    """Yield the tensors of another device in a part: a tensor, or a tuple or dataclass that holds some."""
    if isinstance(part, Tensor):
        if is_elsewhere(part):
            yield part
    elif isinstance(part, tuple | list):
        for item in part:
            yield from tensors_in(item)
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            if field.init:
                yield from tensors_in(getattr(part, field.name))


def with_tensors(part: Any, tensors: Iterator[Tensor]) -> Any:
    """Return the part with other tensors in place of those of another device, in the order of `tensors_in`."""
    if isinstance(part, Tensor):
        return next(tensors) if is_elsewhere(part) else part
    if type(part) in (tuple, list):
        return type(part)(with_tensors(item, tensors) for item in part)
    if isinstance(part, tuple):  # a NamedTuple
        return type(part)(*(with_tensors(item, tensors) for item in part))
    if not is_dataclass(part) or isinstance(part, type):
        return part
    own = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    moved = {name: with_tensors(value, tensors) for name, value in own.items()}
    return replace(part, **moved) if any(moved[name] is not own[name] for name in own) else part


def to_host(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy tensors of one device to the host in one transfer, into pinned memory where the device knows it.

    There the copy does not hold up the stream, and the host waits for it once.
    """
    if not tensors:
        return []
    block, device = _packed(tensors), tensors[0].device
    if device.type not in PINNED:
        return _unpacked(block.cpu(), tensors)
    near = torch.empty(block.shape, dtype=block.dtype, pin_memory=True)  # torch keeps the memory for the next time
    near.copy_(block, non_blocking=True)
    getattr(torch, device.type).current_stream(device).synchronize()
    return _unpacked(near, tensors)


def to_device(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copy tensors of the host to a device in one transfer, without waiting where it reads pinned memory."""
    if device.type in NO_DOUBLES:
        tensors = [tensor.float() if tensor.dtype == torch.float64 else tensor for tensor in tensors]
    if not tensors:
        return []
    block = _packed(tensors)
    if device.type not in PINNED:
        return _unpacked(block.to(device), tensors)
    near = torch.empty(block.shape, dtype=block.dtype, pin_memory=True)
    return _unpacked(near.copy_(block).to(device, non_blocking=True), tensors)


def _packed(tensors: Sequence[Tensor]) -> Tensor:
    """The numbers of the tensors in one row: as they are if there is one tensor, as bytes if there are several."""
    if len(tensors) == 1:
        return tensors[0].detach().reshape(-1).contiguous()
    rows = [tensors[place].detach().reshape(-1).contiguous() for place in _widest_first(tensors)]
    return torch.cat([row.view(torch.uint8) for row in rows])


def _unpacked(block: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of these shapes and dtypes from what `_packed` has made, on its device."""
    if len(like) == 1:
        return [block.view(like[0].shape)]
    order = _widest_first(like)
    pieces = block.split([like[place].numel() * like[place].element_size() for place in order])
    tensors = list(pieces)
    for place, piece in zip(order, pieces, strict=True):
        tensors[place] = piece.view(like[place].dtype).view(like[place].shape)
    return tensors


def _widest_first(tensors: Sequence[Tensor]) -> list[int]:
    """An order in which each begins at a multiple of the width of its numbers."""
    return sorted(range(len(tensors)), key=lambda place: -tensors[place].element_size())


def by_copy(
    scores: tuple[Tensor, ...],
    copies: tuple[Tensor, ...],
    device: torch.device,
    answer: Callable[[], Results | None],
    reference: Callable[..., Results],
) -> Any:
    """Answer a query on the host, and give its results on the device, differentiable by the scores to every order.

    Args:
        scores: tensors on the device; gradients are those of the ones that require them.
        copies: the same on the host, leaves that require gradients where the scores do.
        device: where the results belong.
        answer: the query on the copies, with a graph to them if gradients are recorded; None if it has no answer.
        reference: the same results of float64 scores on the device, by torch operations.

    Returns:
        What `answer` gives, a tensor, a tuple of them or None, on the device.
    """
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in scores)):
        results = answer()
        return None if results is None else _moved(results, device)
    return _ByCopy.apply(_Query(copies, device, answer, reference), *scores)


class _Query(NamedTuple):
    """The arguments of `by_copy` that are not differentiated by."""

    copies: tuple[Tensor, ...]
    device: torch.device
    answer: Callable[[], Results | None]
    reference: Callable[..., Results]


class _ByCopy(torch.autograd.Function):
    """See `by_copy`."""

    @staticmethod
    def forward(ctx: Any, query: _Query, *scores: Tensor) -> Results | None:
        with torch.enable_grad():
            results = query.answer()
        if results is None:
            return None
        ctx.query, ctx.single = query, isinstance(results, Tensor)
        ctx.results = (results,) if ctx.single else results
        ctx.save_for_backward(*scores)
        moved = _moved(results, query.device)
        parts = zip(ctx.results, (moved,) if ctx.single else moved, strict=True)
        ctx.mark_non_differentiable(*(there for here, there in parts if not here.requires_grad))
        return moved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scores, query = ctx.saved_tensors, ctx.query
        if torch.is_grad_enabled():
            return None, *by_reference(query.reference, scores, grads)
        ends = [place for place, result in enumerate(ctx.results) if result.requires_grad]
        needed = [place for place, wanted in enumerate(ctx.needs_input_grad[1:]) if wanted]
        seeds = to_host([grads[place] for place in ends])
        gradients = torch.autograd.grad(
            [ctx.results[place] for place in ends],
            [query.copies[place] for place in needed],
            [seed.to(ctx.results[place].dtype) for seed, place in zip(seeds, ends, strict=True)],
            retain_graph=True,  # the caller may ask twice, and what is kept ends with this node
            allow_unused=True,
        )
        places = [place for place, gradient in zip(needed, gradients, strict=True) if gradient is not None]
        there = to_device([gradient for gradient in gradients if gradient is not None], query.device)
        by_place: list[Tensor | None] = [None] * len(scores)
        for place, gradient in zip(places, there, strict=True):
            by_place[place] = gradient
        return None, *by_place


def _moved(results: Results, device: torch.device) -> Results:
    """Results on the device, in one transfer."""
    if isinstance(results, Tensor):
        return to_device([results], device)[0]
    return tuple(to_device(results, device))
