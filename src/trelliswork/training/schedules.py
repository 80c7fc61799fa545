"""Schedules of learning rates: factors of the initial rate, by step.

Howard and Ruder (2018), Universal language model fine-tuning for text classification.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from trelliswork.nn.initialization import fan_in_parameter_groups
from trelliswork.training.config import TrainingConfig

Group = dict[str, Any]  # parameters and settings, as optimizers take them
RISE = 0.1  # of a slanted triangle, unless the settings say otherwise
RATIO = 32.0  # its highest rate over its lowest


class Schedule:
    """Multiplies every learning rate of an optimizer by `factor(step)`; `step` is all there is to remember."""

    def __init__(self, optimizer: torch.optim.Optimizer, factor: Callable[[int], float]) -> None:
        self.optimizer, self.factor = optimizer, factor
        self.initial_rates = [group["lr"] for group in optimizer.param_groups]
        self.go_to(0)

    def step(self) -> None:
        """Call after each step of the optimizer."""
        self.go_to(self.position + 1)

    def go_to(self, position: int) -> None:
        """Set the rates of a position, in steps."""
        self.position = position
        factor = self.factor(position)
        for group, rate in zip(self.optimizer.param_groups, self.initial_rates, strict=True):
            group["lr"] = rate * factor


def make_schedule(optimizer: torch.optim.Optimizer, config: TrainingConfig, n_steps: int) -> Schedule:
    """Return the schedule of a run of `n_steps`.

    Args:
        optimizer: The optimizer, with its initial rates.
        config: Settings of training.
        n_steps: The number of steps of the run.

    Returns:
        The schedule, at step 0.
    """
    n_steps = max(n_steps, 1)
    if config.decay == "triangular":
        return Schedule(optimizer, lambda step: slanted_triangle(step, n_steps, config.warmup or RISE))
    n_warmup = int(config.warmup * n_steps)
    if config.decay == "noam":
        return Schedule(optimizer, lambda step: noam(step, max(1, n_warmup)))
    steps_per_epoch = n_steps / config.epochs

    def factor(step: int) -> float:
        if step < n_warmup:
            return (step + 1) / (n_warmup + 1)
        if config.decay == "inverse":
            return 1 / (1 + config.decay_rate * (step // steps_per_epoch))
        if config.decay == "constant":
            return 1.0
        done = min(1.0, (step - n_warmup) / (n_steps - n_warmup))
        return 1 - done if config.decay == "linear" else (1 + math.cos(math.pi * done)) / 2

    return Schedule(optimizer, factor)


def slanted_triangle(step: int, n_steps: int, rise: float = RISE, ratio: float = RATIO) -> float:
    """Return a factor that rises to 1 within the share `rise` of the steps, then falls to 1 / ratio at the last.

    Howard and Ruder (2018), Universal language model fine-tuning for text classification.
    The printed slope divides by cut (1/rise - 1), which is n_steps - cut only where rise n_steps is a whole number:
    with 19 steps the last printed rate is negative, with 9 it divides by 0. The slope here ends at the last step.

    Args:
        step: The number of the step, from 0.
        n_steps: The number of steps of the run.
        rise: The share of steps in which the rate rises.
        ratio: The highest rate over the lowest.

    Returns:
        The factor of the rate.

    >>> slanted_triangle(10, 100), slanted_triangle(100, 100)
    (1.0, 0.03125)
    """
    cut = max(1, math.floor(n_steps * rise))  # [S4.478-479]
    share = step / cut if step < cut else max(0.0, 1 - (step - cut) / max(1, n_steps - cut))
    return (1 + share * (ratio - 1)) / ratio


def noam(step: int, n_warmup: int) -> float:
    """Return a linear rise to 1 in `n_warmup` steps, then a fall with the square root of the step.

    The rate is printed as d^(-1/2) min(s^(-1/2), s w^(-3/2)), steps s counted from 1; its highest value, (d w)^(-1/2)
    at s = w, is the learning rate of the settings. Vaswani et al. (2017), Attention is all you need.

    >>> noam(3, 4), noam(15, 4)
    (1.0, 0.5)
    """
    s = step + 1
    return math.sqrt(n_warmup) * min(s**-0.5, s * n_warmup**-1.5)  # [S4, learning rate]


# Optimizers by name, and the layer groups of a network.

LOWER_LAYERS = ("inputs", "encoder")  # children of a network from below; all others are its top


def layer_groups(model: nn.Module) -> list[list[nn.Parameter]]:
    """Return the trainable parameters in order of depth, in groups that are not empty.

    These are the layers of a pretrained encoder, the inputs, the encoder, and what stands on them.

    >>> network = nn.ModuleDict({"scorer": nn.Linear(4, 2), "inputs": nn.Embedding(9, 4)})
    >>> [sum(parameter.numel() for parameter in group) for group in layer_groups(network)]
    [36, 10]
    """
    groups: list[list[nn.Parameter]] = [[] for _ in range(len(LOWER_LAYERS) + 1)]
    pretrained = pretrained_layers(model)
    members = {id(parameter) for layer in pretrained for parameter in layer}
    for name, parameter in model.named_parameters():
        child = name.partition(".")[0]
        if parameter.requires_grad and id(parameter) not in members:
            groups[LOWER_LAYERS.index(child) if child in LOWER_LAYERS else -1].append(parameter)
    return [*pretrained, *(group for group in groups if group)]


def pretrained_layers(model: nn.Module) -> list[list[nn.Parameter]]:
    """Return the trainable parameters of pretrained encoders, which say what their layers are, from below."""
    layers: list[list[nn.Parameter]] = []
    for module in model.modules():
        if isinstance(module, LayeredEncoder):
            layers += module.layers_from_below()
    trainable = ([parameter for parameter in layer if parameter.requires_grad] for layer in layers)
    return [layer for layer in trainable if layer]


@runtime_checkable
class LayeredEncoder(Protocol):
    """A part of a network that has rates of its own, layer by layer."""

    def layers_from_below(self) -> list[list[nn.Parameter]]:
        """Return the parameters of each layer, the lowest first."""


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a run. For SGD, `l2` is the same as weight decay.

    Loshchilov and Hutter (2019), Decoupled weight decay regularization; Sutskever et al. (2013), On the importance of
    initialization and momentum in deep learning; Duchi, Hazan and Singer (2011), Adaptive subgradient methods for
    online learning and stochastic optimization; Tieleman and Hinton (2012), RMSProp.
    """
    # [S4, AdamW; S3, Initialization; S4.113, 714-715]
    rate, l2 = config.learning_rate, config.l2
    if config.optimizer == "sgd":
        groups = fan_in_parameter_groups(model, rate)
        return torch.optim.SGD(_by_layer(model, groups, config), lr=rate, weight_decay=l2)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = _by_layer(model, [{"params": parameters, "lr": rate}], config)
    if config.optimizer in ("momentum", "nesterov"):
        ahead = config.optimizer == "nesterov"
        return torch.optim.SGD(groups, lr=rate, weight_decay=l2, momentum=config.momentum, nesterov=ahead)
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(groups, lr=rate, weight_decay=l2)
    if config.optimizer == "rmsprop":
        return torch.optim.RMSprop(groups, lr=rate, weight_decay=l2, alpha=config.beta2)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=rate, weight_decay=l2, betas=(0.9, config.beta2), fused=True)


def _by_layer(model: nn.Module, groups: list[Group], config: TrainingConfig) -> list[Group]:
    """Split optimizer groups so that each layer group has a rate of its own: η^(l-1) = η^l / layer_decay.

    The layers of a pretrained encoder count from its top, which has the rate `encoder_lr`.
    """
    # [S4.477]
    layers, n_pretrained = layer_groups(model), len(pretrained_layers(model))
    if config.layer_decay == 1 and not n_pretrained:
        return groups
    by_depth = list[Group]()
    for depth, layer in enumerate(layers):
        members = {id(parameter) for parameter in layer}
        is_pretrained = depth < n_pretrained
        height = (n_pretrained if is_pretrained else len(layers)) - 1 - depth
        share = config.encoder_rate / config.learning_rate if is_pretrained else 1.0
        for group in groups:
            parameters = [parameter for parameter in group["params"] if id(parameter) in members]
            rate = group["lr"] * share / config.layer_decay**height
            if parameters:
                by_depth.append({**group, "params": parameters, "lr": rate})
    return by_depth


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
