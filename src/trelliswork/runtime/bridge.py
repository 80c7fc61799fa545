"""Between torch and the kernels: tensors as arrays and back."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling, is_exporting

from trelliswork import logs
from trelliswork.errors import TrellisworkError
from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array

_PROXY = torch._C._TorchDispatchModeKey.PROXY


def as_array(tensor: Tensor, dtype: type | None = None) -> Array:
    """Return a C-contiguous array, sharing memory where it can. numpy converts small tensors faster than torch does."""
    try:
        array = tensor.numpy(force=True)
    except RuntimeError:
        require_numbers("this query")
        raise
    return array if dtype is None and array.flags.c_contiguous else converted(array, dtype)


def converted(array: Array, dtype: type | None) -> Array:
    """Return the numbers C-contiguous in a dtype, the same array where they are.

    What is large goes into kept memory.
    """
    if array.size < buffers.LARGE or dtype is not np.float64 or array.dtype == np.float64:
        return np.ascontiguousarray(array, dtype)
    doubles = buffers.empty(array.shape)
    np.copyto(doubles, array)
    return doubles


def as_tensor(array: Array, dtype: torch.dtype) -> Tensor:
    """Return the way back from `as_array`; scores are float32 or float64."""
    if dtype is not torch.float64 and array.dtype != np.float32:
        array = array.astype(np.float32)
    return torch.from_numpy(array)


def to_tensors(arrays: Sequence[Array], like: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Tensor | None]:
    """Return arrays as tensors of the shapes and dtypes of `like`; None where there is none, or it is not wanted.

    Args:
        arrays: one for each tensor of `like`, with as many entries; not read where there is no tensor.
        like: tensors that give shape and dtype, or None.
        wanted: whether each is wanted.
    """
    tensors: list[Tensor | None] = []
    for array, tensor, is_wanted in zip(arrays, like, wanted, strict=True):
        if tensor is None or not is_wanted:
            tensors.append(None)
        else:  # few reshape: that takes longer than to compare shapes
            shaped = array if array.shape == tensor.shape else array.reshape(tensor.shape)
            tensors.append(as_tensor(shaped, tensor.dtype))
    return tensors


def out_of_reach() -> bool:
    """Return whether torch.func, forward-mode derivatives or a recorder are at work.

    Their tensors have no memory that kernels could read, carry tangents that kernels would drop, or stand for other
    numbers. The reference handles all of them.
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0 or is_recording()


def is_recording() -> bool:
    """Return whether torch.export, torch.jit.trace or make_fx records a program, which will run with other numbers."""
    if is_exporting():
        return True
    return not is_dynamo_compiling() and (torch._C._is_tracing() or torch._C._get_dispatch_mode(_PROXY) is not None)


def values_are_hidden() -> bool:
    """Return whether no decision may depend on the numbers in a tensor: under vmap, and while a program is recorded."""
    if is_recording() or (torch._C._are_functorch_transforms_active() and _under_vmap()):
        return True
    return is_capturing()


def must_stay(device: torch.device) -> bool:
    """Return whether scores of a device may not be copied to the host.

    That is where they are `out_of_reach`, in `torch.compile` regions, and while a CUDA graph is captured (logged once).
    """
    if is_dynamo_compiling() or out_of_reach():
        return True
    if device.type != "cuda" or not is_capturing():
        return device.type == "meta"
    if device not in _CAPTURED:
        _CAPTURED.add(device)
        logs.tell(f"a CUDA graph is captured on {device}: sums stay on the device, by torch", level=logging.DEBUG)
    return True


_CAPTURED: set[torch.device] = set()


def is_capturing() -> bool:
    """Return whether a CUDA graph is captured, during which the host may not wait for the device."""
    if is_dynamo_compiling():
        return False
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _under_vmap() -> bool:
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return any(each.key() == torch._C._functorch.TransformType.Vmap for each in stack)


def require_numbers(query: str) -> None:
    """Refuse what searches by numbers, or gives lists, where numbers are hidden."""
    if values_are_hidden():
        problem = f"{query} needs numbers that vmap, torch.export and torch.jit.trace hide"
        raise TrellisworkError(
            f"{problem}; call it outside of them, on a batch (sums, marginals of chains and viterbi work inside)"
        )


def any_seen(wrong: Tensor) -> bool:
    """Return whether any is True, as far as that can be seen: checks of numbers are left out where these are hidden."""
    return not values_are_hidden() and bool(wrong.any())
