"""A device that is not the CPU, made of the CPU: tensors of torch's PrivateUse1 whose operations Python does.

Nothing in them can be read by numpy or a kernel, an operation on tensors of both devices is an error, and each copy
between the two is counted. To be switched on before the first backward pass of a process: autograd starts a thread for
each device then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "far"
COPIES: Counter[str] = Counter()
"""How often something was copied `to_host` and `to_far`, and how often a number was `read`."""
_KEPT: list[torch.library.Library] = []
_INDEXING = ("aten::index", "aten::_index_put_impl_", "aten::index_put")  # these take indices of the CPU


class FarTensor(Tensor):
    """A tensor of the device; `near` has its numbers."""

    near: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, near: Tensor) -> FarTensor:
        far: FarTensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, near.shape, near.stride(), near.storage_offset(), dtype=near.dtype, device=f"{NAME}:0"
        )
        far.near = near
        return far

    def __repr__(self) -> str:  # type: ignore[override]
        return f"far({self.near!r})"

    def tolist(self) -> Any:
        COPIES["to_host"] += 1
        return self.near.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(f"can't convert a tensor on {self.device} to numpy; use Tensor.cpu() first")
        COPIES["to_host"] += 1
        return self.near.detach().numpy()

    def __getitem__(self, index: Any) -> Any:
        """Lists among the indices are moved to the device, which C++ would do unseen."""
        places = index if isinstance(index, tuple) else (index,)
        moved = tuple(
            FarTensor(torch.tensor(place, dtype=torch.long)) if isinstance(place, list) else place for place in places
        )
        return super().__getitem__(moved)

    def new_tensor(self, data: Any, **options: Any) -> FarTensor:  # type: ignore[override]
        return FarTensor(self.near.new_tensor(data, **options))

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(op, *args, **(kwargs or {}))


def run(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Do an operation of the device on the CPU."""
    name = op.name().split(".")[0]
    given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    if name == "aten::_to_copy":
        return _converted(args[0], kwargs)
    if name in ("aten::copy_", "aten::_copy_from"):
        source, target = (args[1], args[0]) if name == "aten::copy_" else args
        _count(source.device, target.device)
    elif name not in _INDEXING and any(not isinstance(value, FarTensor) and value.dim() for value in given):
        raise RuntimeError(f"{name}: expected all tensors on one device, got {[str(each.device) for each in given]}")
    if name == "aten::_local_scalar_dense":
        COPIES["read"] += 1
    results = op(*tree_map(_near, args), **tree_map(_near, kwargs))
    known = {id(_near(value)): value for value in given}  # what an operation has changed, it returns
    return tree_map(lambda value: known[id(value)] if id(value) in known else _far(value), results)


def _converted(tensor: Tensor, options: dict[str, Any]) -> Tensor:
    device = torch.device(options.get("device") or tensor.device)
    _count(tensor.device, device)
    near: Tensor = torch.ops.aten._to_copy(_near(tensor), **{**options, "device": torch.device("cpu")})
    return near if device.type == "cpu" else FarTensor(near)


def _count(source: torch.device, target: torch.device) -> None:
    if source.type != target.type:
        COPIES["to_host" if target.type == "cpu" else "to_far"] += 1


def _near(value: Any) -> Any:
    if isinstance(value, FarTensor):
        return value.near
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _far(value: Any) -> Any:
    return FarTensor(value) if isinstance(value, Tensor) else value


def _made_near(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def made(*bounds: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        return FarTensor(make(*bounds, dtype=dtype))

    return made


def switch_on() -> None:
    """Make `tensor.to("far")` work in this process."""
    _setup_privateuseone_for_python_backend(NAME)
    factories = torch.library.Library("_", "IMPL")
    factories.fallback(run, "PrivateUse1")
    resizing = torch.library.Library("aten", "IMPL")  # torch's own fill a tensor that they first make empty
    for overload in ("arange", "arange.start", "arange.start_step", "eye", "eye.m"):
        resizing.impl(overload, _made_near(getattr(torch, overload.split(".")[0])), "PrivateUse1")
    _KEPT.extend([factories, resizing])
    torch.tensor, torch.as_tensor = _made_far(torch.tensor), _made_far(torch.as_tensor)


def _made_far(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """torch's own ways from Python's numbers to a device pass by what Python could do about them."""

    def made(data: Any, *, device: Any = None, **options: Any) -> Tensor:
        if device is None or torch.device(device).type != NAME or isinstance(data, Tensor):
            return make(data, device=device, **options)
        return FarTensor(make(data, **options))

    return made
