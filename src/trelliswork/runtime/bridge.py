"""Between torch and the kernels: tensors as arrays and back."""

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
    if array.size < buffers.LARGE or dtype is not np.float64 or array.dtype == np.float64:
        return np.ascontiguousarray(array, dtype)
    converted = buffers.empty(array.shape)
    np.copyto(converted, array)
    return converted


def as_tensor(array: Array, dtype: torch.dtype) -> Tensor:
    """The way back from `as_array`; scores are float32 or float64."""
    if dtype != torch.float64 and array.dtype != np.float32:
        array = array.astype(np.float32)
    return torch.from_numpy(array)


def to_tensors(arrays: tuple[Array, ...], like: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Arrays as tensors of the shapes and dtypes of `like`; None where there is none."""
    found: list[Tensor | None] = []
    for array, tensor in zip(arrays, like, strict=True):
        if tensor is None:
            found.append(None)
            continue
        shaped = array if array.shape == tensor.shape else array.reshape(tensor.shape)
        found.append(as_tensor(shaped, tensor.dtype))
    return tuple(found)


def out_of_reach() -> bool:
    """Whether torch.func or forward-mode derivatives are at work: their tensors have no memory that kernels could read,
    or carry tangents that they would drop. The reference handles both."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
