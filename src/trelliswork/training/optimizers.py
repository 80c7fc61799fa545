"""Optimizers by name, and the decay of their learning rate."""

from __future__ import annotations

import torch
from torch import nn

from trelliswork.nn.initialization import fan_in_parameter_groups
from trelliswork.training.config import TrainingConfig


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimizer of a run: AdamW, Adam, or SGD with the fan-in rates of [S3, Initialization]; l2 as in [S4.113]."""
    if config.optimizer == "sgd":
        groups = fan_in_parameter_groups(model, config.learning_rate)
        return torch.optim.SGD(groups, lr=config.learning_rate, weight_decay=config.l2)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return kind(parameters, lr=config.learning_rate, weight_decay=config.l2, betas=(0.9, 0.99), fused=True)


def make_schedule(
    optimizer: torch.optim.Optimizer, config: TrainingConfig, n_steps: int
) -> torch.optim.lr_scheduler.LRScheduler:
    """Multiplies every learning rate by 1, or by what is left of the run."""

    def factor(step: int) -> float:
        return 1.0 if config.decay == "constant" else max(0.0, 1 - step / max(n_steps, 1))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
