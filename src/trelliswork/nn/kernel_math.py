"""For kernels of networks: where they can replace torch, and an exponential in the precision of its argument."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.lazy import lazy_module
from trelliswork.runtime.bridge import out_of_reach
from trelliswork.runtime.compilation import ORDERED, intrinsic, kernel, overload
from trelliswork.runtime.kernel_math import exp

ir, types = lazy_module("llvmlite.ir"), lazy_module("numba.types")

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST = np.float32(-87.0)  # below, e^x is taken as 0
_ONE, _HALF = np.float32(1.0), np.float32(0.5)
_C3, _C4, _C5 = np.float32(1.6666665459e-1), np.float32(4.1665795894e-2), np.float32(8.3334519073e-3)
_C6, _C7 = np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)


def can_fuse(*tensors: Tensor) -> bool:
    """Return True if kernels can read these tensors.

    They cannot where operations are only recorded, say for an export, or where torch chooses the precision of each.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled("cpu"):
        return False
    kinds = {(tensor.device.type, tensor.dtype) for tensor in tensors}
    fits = kinds in ({("cpu", torch.float32)}, {("cpu", torch.float64)})
    return fits and not out_of_reach()


@intrinsic
def _bits_as_single(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@kernel(ORDERED, inline=True)
def _single_exp(x):
    """Return e^x for x <= 0 in single precision, to about 1 ulp.

    A vector register holds twice as many of these as of `runtime.kernel_math.exp`, which computes in double.
    """
    # e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln 2 / 2: a polynomial for e^r, and n put into the exponent.
    # ln 2 is subtracted in two parts, so that r keeps all its bits.
    clipped = max(x, _LOWEST)
    n = np.floor(clipped * _LOG2_E + _HALF)
    r = clipped - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _HALF
    p = p * r * r + r + _ONE
    y = p * _bits_as_single(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))
    return y if x >= _LOWEST else np.float32(0.0)


@overload(ORDERED, inline=True)
def exp_of(x):
    """Return e^x for x <= 0, in single precision for a float32 and in double for a float64; for kernels only."""
    return (lambda x: _single_exp(x)) if x == types.float32 else (lambda x: exp(x))
