"""Where a network may leave torch for a kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.bridge import out_of_reach


def can_fuse(*tensors: Tensor) -> bool:
    """Whether kernels can read these tensors: not where operations are only recorded, say for an export, and not where
    torch chooses the precision of each."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return False
    kinds = {(tensor.device.type, tensor.dtype) for tensor in tensors}
    fits = kinds in ({("cpu", torch.float32)}, {("cpu", torch.float64)})
    return fits and not out_of_reach()
