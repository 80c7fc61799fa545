"""Optimizers by name, and the layer groups of a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trelliswork.nn.initialization import fan_in_parameter_groups
from trelliswork.training.config import TrainingConfig

LOWER_LAYERS = ("inputs", "encoder")  # children of a network from below; all others are its top


def layer_groups(model: nn.Module) -> list[list[nn.Parameter]]:
    """The trainable parameters in order of depth: inputs, encoder, and what stands on them; none of them empty.

    >>> network = nn.ModuleDict({"scorer": nn.Linear(4, 2), "inputs": nn.Embedding(9, 4)})
    >>> [sum(parameter.numel() for parameter in group) for group in layer_groups(network)]
    [36, 10]
    """
    groups: list[list[nn.Parameter]] = [[] for _ in range(len(LOWER_LAYERS) + 1)]
    for name, parameter in model.named_parameters():
        child = name.partition(".")[0]
        if parameter.requires_grad:
            groups[LOWER_LAYERS.index(child) if child in LOWER_LAYERS else -1].append(parameter)
    return [group for group in groups if group]


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimizer of a run: AdamW, Adam, SGD with momentum, or SGD with rates by fan-in; for SGD, `l2` is the same as
    weight decay.

    Loshchilov and Hutter (2019), Decoupled weight decay regularization.
    """
    # [S4, AdamW; S3, Initialization; S4.113, 714-715]
    rate, l2 = config.learning_rate, config.l2
    if config.optimizer == "sgd":
        groups = fan_in_parameter_groups(model, rate)
        return torch.optim.SGD(_by_layer(model, groups, config), lr=rate, weight_decay=l2)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = _by_layer(model, [{"params": parameters, "lr": rate}], config)
    if config.optimizer == "momentum":
        return torch.optim.SGD(groups, lr=rate, weight_decay=l2, momentum=config.momentum)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=rate, weight_decay=l2, betas=(0.9, 0.99), fused=True)


def _by_layer(model: nn.Module, groups: list[dict[str, Any]], config: TrainingConfig) -> list[dict[str, Any]]:
    """Split optimizer groups so that each layer group has a rate of its own: η^(l-1) = η^l / layer_decay [S4.477]."""
    if config.layer_decay == 1:
        return groups
    layers = layer_groups(model)
    found = []
    for depth, layer in enumerate(layers):
        members = {id(parameter) for parameter in layer}
        for group in groups:
            parameters = [parameter for parameter in group["params"] if id(parameter) in members]
            rate = group["lr"] / config.layer_decay ** (len(layers) - 1 - depth)
            if parameters:
                found.append({**group, "params": parameters, "lr": rate})
    return found


class GradualUnfreezing:
    """Trains the top layer group alone in the first epoch, and one group more in each epoch after it.

    >>> network = nn.ModuleDict({"scorer": nn.Linear(4, 2), "inputs": nn.Embedding(9, 4)})
    >>> unfreezing = GradualUnfreezing(network)
    >>> unfreezing.begin_epoch(1), network["inputs"].weight.requires_grad
    (None, False)
    """

    def __init__(self, model: nn.Module) -> None:
        self._groups = layer_groups(model)

    def begin_epoch(self, epoch: int) -> None:
        """Freeze what is not to be trained in this epoch, counted from 1."""
        for height, group in enumerate(reversed(self._groups)):
            for parameter in group:
                parameter.requires_grad_(height < epoch)

    def end(self) -> None:
        """Leave every parameter as it was given."""
        self.begin_epoch(len(self._groups))
