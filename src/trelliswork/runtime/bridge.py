"""Between torch and the kernels: tensors as arrays and back, and gradients that the reference computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from trelliswork.runtime import buffers

Array = np.ndarray[Any, Any]


def as_array(tensor: Tensor, dtype: type | None = None) -> Array:
    """A C-contiguous array, sharing memory where it can. numpy converts small tensors faster than torch does."""
    array = tensor.numpy(force=True)
    if dtype is None and array.flags.c_contiguous:
        return array
    if dtype is np.float64 and array.dtype != np.float64:
        converted = buffers.empty(array.shape)
        np.copyto(converted, array)
        return converted
    return np.ascontiguousarray(array, dtype)


def as_tensor(array: Array, dtype: torch.dtype) -> Tensor:
    """The way back from `as_array`; scores are float32 or float64."""
    return torch.from_numpy(array if dtype == torch.float64 else array.astype(np.float32))


def to_tensors(arrays: tuple[Array, ...], like: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Arrays as tensors of the shapes and dtypes of `like`; None where there is none."""
    pairs = zip(arrays, like, strict=True)
    return tuple(
        None if tensor is None else as_tensor(array.reshape(tensor.shape), tensor.dtype) for array, tensor in pairs
    )


def by_reference(query: Any, parts: Any, scores: tuple[Tensor | None, ...], grads: tuple[Tensor, ...]) -> Any:
    """The gradient of query(parts) by autograd in float64, as a graph to differentiate again if one is recorded.

    `parts.with_scores(*scores)` must give the same structure with these scores; one that is None has no gradient.
    """
    again = torch.is_grad_enabled()
    moved = [tensor is not None and tensor.requires_grad for tensor in scores]
    needed = [tensor for tensor in scores if tensor is not None and tensor.requires_grad]
    with torch.enable_grad():
        results = query(parts.with_scores(*(None if tensor is None else tensor.double() for tensor in scores)))
        results = results if isinstance(results, tuple) else (results,)
        pairs = zip(results, grads, strict=True)
        moving = [(result, grad.to(result.dtype)) for result, grad in pairs if result.requires_grad]
        ends, seeds = [result for result, _ in moving], [grad for _, grad in moving]
        found = iter(torch.autograd.grad(ends, needed, seeds, create_graph=again, allow_unused=True))
    return tuple(next(found) if each else None for each in moved)


def out_of_reach() -> bool:
    """Whether torch.func or forward-mode derivatives are at work: their tensors have no memory that kernels could read,
    or carry tangents that they would drop. The reference handles both."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
