"""Interfaces of other libraries over the distributions of this one: `torch_struct`.

>>> from trelliswork.compat import torch_struct  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trelliswork.compat import torch_struct

__all__ = ["torch_struct"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
