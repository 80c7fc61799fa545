"""Initial values and learning rates that follow the fan-in of each layer.

Collobert et al. (2011), Natural language processing (almost) from scratch.

The fan-in of a layer is the number of inputs of one of its outputs: `|f^(l-1)|` for a linear layer, the kernel volume
for a convolution, 1 for a lookup table. A parameter of no such layer (a transition matrix, say) has fan-in 1 too.

    >>> layer = nn.Linear(400, 300)
    >>> initialize_fan_in(layer)                       # weights in U(-1/20, 1/20), bias 0
    >>> optimizer = torch.optim.SGD(fan_in_parameter_groups(layer, lr=0.4))    # learning rate 0.4 / 400
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from trelliswork.errors import TrellisworkError

FanInScheme = Literal["uniform", "normal", "literal"]


def fan_in(layer: nn.Module) -> int:
    """Return the number of inputs of one output of `layer`; 1 for a lookup table and for unknown layers.

    >>> fan_in(nn.Linear(400, 300)), fan_in(nn.Embedding(5000, 50))
    (400, 1)
    """
    # [S3, Initialization]
    weight = getattr(layer, "weight", None)
    if isinstance(layer, nn.Embedding) or not isinstance(weight, Tensor) or weight.dim() < 2:
        return 1
    return weight[0].numel()


@torch.no_grad()
def initialize_fan_in(module: nn.Module, scheme: FanInScheme = "uniform") -> None:
    """Redraw, in place, every linear, convolution and lookup weight in `module`, and set biases to 0.

    Args:
        module: The network; its layers are visited recursively.
        scheme: Distribution of the weights of a layer with fan-in F.

            - `"uniform"`: U(-F^(-1/2), F^(-1/2)), which leaves about 8% of HardTanh units saturated;
            - `"normal"`: standard deviation F^(-1/2), about 32% saturated;
            - `"literal"`: centred uniform of *variance* F^(-1/2), the words of the paper taken literally: 70% and more
              saturated, so that most units pass no gradient (erratum 17). It is meant for comparisons only.

    >>> layer = nn.Linear(400, 300)
    >>> initialize_fan_in(layer)
    >>> bool((layer.weight.abs() <= 1 / 20).all()), bool((layer.bias == 0).all())
    (True, True)
    """
    # [S3, Initialization]
    if scheme not in get_args(FanInScheme):
        raise TrellisworkError(
            f"initialization must be one of {', '.join(get_args(FanInScheme))}; got {scheme!r}; "
            'use "uniform" unless you are comparing'
        )
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Embedding | nn.Conv1d):
            _draw(layer.weight, fan_in(layer), scheme)
            bias = getattr(layer, "bias", None)
            if bias is not None:
                bias.zero_()


def _draw(weight: Tensor, fan: int, scheme: FanInScheme) -> None:
    """Fill `weight` in place."""
    if scheme == "normal":
        weight.normal_(std=fan**-0.5)
        return
    # A uniform distribution of half-width a has variance a^2 / 3.
    half_width = fan**-0.5 if scheme == "uniform" else math.sqrt(3 * fan**-0.5)
    weight.uniform_(-half_width, half_width)


def fan_in_parameter_groups(module: nn.Module, lr: float) -> list[dict[str, Any]]:
    """Group the parameters by fan-in for a torch optimizer, with learning rates `lr` / fan-in.

    Returns:
        One dictionary per fan-in, in rising order, with `params`, `lr` and `fan_in`.

    >>> network = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    >>> [(group["fan_in"], group["lr"]) for group in fan_in_parameter_groups(network, lr=0.1)]
    [(1, 0.1), (4, 0.025)]
    """
    # [S3, Initialization]
    groups: dict[int, list[nn.Parameter]] = {}
    for parameter, fan in _parameters_with_fan_in(module):
        groups.setdefault(fan, []).append(parameter)
    return [{"params": groups[fan], "lr": lr / fan, "fan_in": fan} for fan in sorted(groups)]


def _parameters_with_fan_in(module: nn.Module) -> Iterator[tuple[nn.Parameter, int]]:
    """Yield each trainable parameter once, with the fan-in of the layer that owns it."""
    seen: set[int] = set()  # tied weights belong to several layers
    for layer in module.modules():
        for parameter in layer.parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter, fan_in(layer)
