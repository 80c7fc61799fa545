"""The device that a network computes on, as users name it."""

from __future__ import annotations

import os
from functools import cache

import torch

from trelliswork.errors import TrellisworkError


def device_for(wanted: str, *, on_cpu_alone: str = "") -> str:
    """Return a device that torch can use here, `auto` being the first GPU of CUDA if there is one; others are an error.

    Of several processes on one machine each takes a GPU of its own. Apple's mps lacks float64 and is used only if it is
    asked for. `on_cpu_alone` names a model that computes nowhere else.
    """
    if on_cpu_alone and wanted not in ("auto", "cpu"):
        raise TrellisworkError(f"--device {wanted}: a {on_cpu_alone} computes on the CPU; leave it out")
    if wanted == "cpu" or on_cpu_alone or (wanted == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if wanted == "mps":
        is_available = torch.backends.mps.is_available()
    else:
        wanted, is_available = "cuda", torch.cuda.is_available()
    if not is_available:
        raise TrellisworkError(
            f"--device {wanted}: torch {torch.__version__} finds no such device here; leave it out for the CPU, or "
            "install a torch that is built for it"
        )
    n = torch.cuda.device_count() if wanted == "cuda" else 1
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % n}" if n > 1 else wanted


@cache
def multiplies_bf16() -> bool:
    """Return whether this processor multiplies matrices of bf16, which takes a fifth of the time of float32.

    A virtual machine may announce it and refuse, so it is tried.
    """
    capabilities = torch.cpu.get_capabilities()
    if not capabilities.get("avx512_bf16") and not capabilities.get("amx_bf16"):
        return False
    try:
        square = torch.ones(64, 64, dtype=torch.bfloat16)
        return bool((square @ square)[0, 0] == 64)
    except RuntimeError:
        return False
