"""Building a network from settings that somebody may have changed: never larger than the weights it is built for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from trelliswork.errors import ModelError

_MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
_SPARE_VALUES = 1 << 22  # masks and tables that are not among the weights
_SPARE_TENSORS = 1000


class SizeGuard(TorchFunctionMode):
    """Inside, tensors are made until they hold clearly more than `weights` do; then it is a `ModelError`.

    The sizes are compared before memory is taken, so that a wrong setting costs neither gigabytes nor minutes.

    >>> with SizeGuard({"weight": torch.zeros(3, 4)}):
    ...     torch.nn.Linear(100_000, 100_000)
    Traceback (most recent call last):
    trelliswork.errors.ModelError: the settings ask for a network of more than 4,194,328 values, the weights have 12
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.n_weights = sum(each.numel() for each in weights.values())
        self.most_values = 2 * self.n_weights + _SPARE_VALUES
        self.most_tensors = 10 * len(weights) + _SPARE_TENSORS
        self.n_values = self.n_tensors = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _MAKERS:
            self._count(kwargs["size"] if "size" in kwargs else args[0] if _is_shape(args[0]) else args)
        return func(*args, **kwargs)

    def _count(self, shape: Sequence[int]) -> None:
        self.n_values += math.prod(shape)
        self.n_tensors += 1
        if self.n_values > self.most_values:
            asked = f"a network of more than {self.most_values:,} values, the weights have {self.n_weights:,}"
            raise ModelError(f"the settings ask for {asked}")
        if self.n_tensors > self.most_tensors:
            raise ModelError(f"the settings ask for a network of more than {self.most_tensors:,} parts")


def _is_shape(argument: Any) -> bool:
    return isinstance(argument, tuple | list)  # torch.Size is a tuple
