"""The ways from a kernel's numbers into autograd: of scores in float64, and of the layers of networks as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array, to_tensors

OptionalTensors = tuple[Tensor | None, ...]
Results = Tensor | tuple[Tensor, ...]


def differentiable(
    results: Results,
    scores: OptionalTensors,
    vjp: Callable[..., tuple[Array, ...]] | None,
    reference: Callable[..., Results],
) -> Any:
    """Return the results of a kernel, differentiable by `scores` to every order; a score may be None.

    Args:
        results: what the kernel computed from the scores.
        scores: the tensors that it read, in float64; one that is None has no gradient.
        vjp: the analytic gradient: float64 arrays shaped like the results in, one array for each of the scores out.
            None to differentiate `reference`.
        reference: the same results from float64 scores by torch operations, for where there is no `vjp` and where a
            gradient is itself differentiated.

    Returns:
        The results, in the form that they came in.
    """
    if torch.is_grad_enabled():
        for each in scores:
            if each is not None and each.requires_grad:
                return _FromKernel.apply((results, vjp, reference), *scores)
    return results


class _FromKernel(torch.autograd.Function):
    """See `differentiable`. The results are not kept: the graph would hold itself alive."""

    @staticmethod
    def forward(ctx: Any, kernel: tuple[Results, Any, Any], *scores: Tensor | None) -> Results:
        results, ctx.vjp, ctx.reference = kernel
        ctx.save_for_backward(*scores)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores = ctx.saved_tensors
        if ctx.vjp is None or torch.is_grad_enabled():  # enabled by create_graph: the gradient has to have a graph
            return None, *by_reference(ctx.reference, scores, grads)
        gradients = ctx.vjp(*[as_array(grad, np.float64) for grad in grads])
        return None, *to_tensors(gradients, scores, ctx.needs_input_grad[1:])


class FusedLayer(Protocol):
    """A layer of a network as one step of autograd: kernels and products on tensors of its own dtype.

    `reference` computes the same results as `forward` with torch operations, for gradients that are themselves
    differentiated.
    """

    def forward(self, *tensors: Any) -> tuple[Results, tuple[Tensor, ...]]:
        """Compute the results of the layer.

        Args:
            tensors: inputs and weights, as the signature of a layer names them, with their shapes.

        Returns:
            The results, and tensors that `backward` reads in addition to the inputs.
        """
        ...

    def backward(self, tensors: Any, kept: Any, grads: Any) -> tuple[Tensor | None, ...]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: what `forward` was given.
            kept: what `forward` kept for this.
            grads: the gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it; None where it has no gradient.
        """
        ...

    def reference(self, *tensors: Any) -> Results:
        """Compute the same results with torch operations.

        Args:
            tensors: what `forward` is given.

        Returns:
            The results, differentiable by autograd.
        """
        ...


def fused(layer: FusedLayer, *tensors: Tensor) -> Any:
    """Return the results of a layer, differentiable by the tensors to every order."""
    return _Fused.apply(layer, *tensors)


class _Fused(torch.autograd.Function):
    """See `fused`."""

    @staticmethod
    def forward(ctx: Any, layer: FusedLayer, *tensors: Tensor) -> Results:
        results, kept = layer.forward(*tensors)
        ctx.layer, ctx.n = layer, len(tensors)
        ctx.save_for_backward(*tensors, *kept)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        tensors, kept = ctx.saved_tensors[: ctx.n], ctx.saved_tensors[ctx.n :]
        if torch.is_grad_enabled():
            return None, *by_reference(ctx.layer.reference, tensors, grads)
        return None, *ctx.layer.backward(tensors, kept, grads)


@contextmanager
def recording(*parts: Any) -> Iterator[list[Any]]:
    """Let autograd record inside, in `torch.inference_mode` too, and yield the parts as it can keep them."""
    anew = torch.is_inference_mode_enabled()
    with torch.inference_mode(False), torch.enable_grad():
        yield [_recordable(part, anew) for part in parts]


def _recordable(part: Any, anew: bool) -> Any:
    """Copy tensors of inference mode; `anew`, so that a dataclass forgets what it has derived from them."""
    if isinstance(part, Tensor):
        return part.clone() if part.is_inference() else part
    if type(part) is tuple:
        return tuple(_recordable(each, anew) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    mine = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    copied = {name: _recordable(value, anew) for name, value in mine.items()}
    return replace(part, **copied) if anew or any(copied[name] is not mine[name] for name in mine) else part


def by_reference(
    reference: Callable[..., Results], scores: OptionalTensors, grads: tuple[Tensor, ...]
) -> OptionalTensors:
    """Return the gradient of reference(*scores) by autograd in float64, with a graph of its own if one is recorded.

    Args:
        reference: a function of scores by torch operations.
        scores: its arguments; one that is None has no gradient.
        grads: the gradient by each of its results.

    Returns:
        One tensor for each of the scores, shaped like it; None where it has no gradient.
    """
    again = torch.is_grad_enabled()
    moved = [tensor is not None and tensor.requires_grad for tensor in scores]
    needed = [tensor for tensor in scores if tensor is not None and tensor.requires_grad]
    with torch.enable_grad():
        results = reference(*(None if tensor is None else _precise(tensor) for tensor in scores))
        results = results if isinstance(results, tuple) else (results,)
        pairs = zip(results, grads, strict=True)
        moving = [(result, grad.to(result.dtype)) for result, grad in pairs if result.requires_grad]
        ends, seeds = [result for result, _ in moving], [grad for _, grad in moving]
        gradients = iter(torch.autograd.grad(ends, needed, seeds, create_graph=again, allow_unused=True))
    return tuple(next(gradients) if each else None for each in moved)


def _precise(scores: Tensor) -> Tensor:
    """Scores in float64, where the device has it."""
    return scores if scores.device.type == "mps" else scores.double()


def rows_by_reference(
    gradient: Array, left: Array, scores: Tensor, grad: Array, reference: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Fill in the rows of a gradient that a kernel has left: that of reference(scores[rows], rows).

    Args:
        gradient: gradient by the scores [rows, ...], which is filled in.
        left: True for the rows that the kernel has left [rows].
        scores: the scores [rows, ...].
        grad: the gradient by the result of each row [rows].
        reference: a function from scores of some rows, and their numbers, to their results.
    """
    if not left.any():
        return
    rows = torch.from_numpy(np.flatnonzero(left))
    with recording(scores.detach(), rows) as (scores, rows):
        chosen = scores[rows].requires_grad_()
        (of_rows,) = torch.autograd.grad(reference(chosen, rows), chosen, torch.from_numpy(grad)[rows])
    gradient[left] = as_array(of_rows)
