"""Restricted Boltzmann machines: unsupervised pre-training of the layers of a deep network.

>>> layers = [nn.Linear(128, 200), nn.Linear(200, 200)]
>>> pretrain_layers(layers, torch.rand(500, 128).round(), epochs=2)          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float

Visible = Literal["binary", "gaussian"]


class RBM(nn.Module):
    """Restricted Boltzmann machine p(v, h) ∝ exp(-E(v, h)) with binary hidden units h.

    Binary v: E = -b·v - c·h - h·Wv. Gaussian v, of variance 1: E = |v - b|² / 2 - c·h - h·Wv. Training it trains
    `layer`, whose weight and bias are W and c.

    >>> RBM(nn.Linear(6, 4)).free_energy(torch.zeros(2, 6)).shape
    torch.Size([2])
    """

    def __init__(self, layer: nn.Linear, visible: Visible = "binary") -> None:
        super().__init__()
        if visible not in get_args(Visible):
            raise ScoreError(f"visible must be one of {', '.join(get_args(Visible))}; got {visible!r}")
        self.layer, self.visible = layer, visible
        self.visible_bias = nn.Parameter(torch.zeros(layer.in_features))

    def free_energy(self, v: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        """Return the free energy -ln Σ_h exp(-E(v, h))."""
        # The hidden units are independent given v: the sum over each is 1 + e^(c + Wv).
        hidden = F.softplus(self.layer(v)).sum(-1)
        if self.visible == "binary":
            return -(v @ self.visible_bias) - hidden
        return (v - self.visible_bias).square().sum(-1) / 2 - hidden

    def hidden_probabilities(self, v: Float[Tensor, "batch d"]) -> Float[Tensor, "batch h"]:
        """Return p(h = 1 | v)."""
        return torch.sigmoid(self.layer(v))

    def visible_means(self, h: Float[Tensor, "batch h"]) -> Float[Tensor, "batch d"]:
        """Return the expectation of v given h."""
        means = self.visible_bias + h @ self.layer.weight
        return torch.sigmoid(means) if self.visible == "binary" else means

    @torch.no_grad()
    def gibbs(self, v: Float[Tensor, "batch d"], steps: int = 1) -> Float[Tensor, "batch d"]:
        """Sample v by `steps` rounds of Gibbs sampling, h given v and v given h."""
        for _ in range(steps):
            means = self.visible_means(torch.bernoulli(self.hidden_probabilities(v)))
            v = torch.bernoulli(means) if self.visible == "binary" else means + torch.randn_like(means)
        return v

    def divergence(
        self, data: Float[Tensor, "batch d"], fantasy: Float[Tensor, "batch d"] | None = None, *, steps: int = 1
    ) -> Float[Tensor, ""]:
        """Return a loss with the gradient of contrastive divergence: free energy of the data minus that of `fantasy`.

        Args:
            data: Training data.
            fantasy: Samples of the model, which give the exact gradient if they follow its distribution; by default
                they are `steps` rounds of Gibbs sampling away from the data.
            steps: Number of these rounds.
        """
        fantasy = self.gibbs(data, steps) if fantasy is None else fantasy
        return self.free_energy(data).mean() - self.free_energy(fantasy).mean()

    @torch.no_grad()
    def reconstruction_error(self, v: Float[Tensor, "batch d"]) -> float:
        """Return the mean squared difference between v and its reconstruction from the hidden probabilities."""
        return F.mse_loss(self.visible_means(self.hidden_probabilities(v)), v).item()


@dataclass(frozen=True)
class PretrainingConfig:
    """Settings of the pre-training of each layer.

    Attributes:
        epochs: Passes through the data.
        batch: Rows per step.
        lr: Learning rate.
        momentum: Momentum of SGD.
        l2: Weight decay.
        seed: Seed of the random numbers.
    """

    epochs: int = 5
    batch: int = 100
    lr: float = 0.05
    momentum: float = 0.9
    l2: float = 2e-4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.lr <= 0:
            raise ScoreError(
                f"epochs and batch must be at least 1 and lr positive; got {self.epochs}, {self.batch}, {self.lr:g}"
            )


def pretrain_layers(
    layers: Sequence[nn.Linear],
    data: Float[Tensor, "rows d"],
    config: PretrainingConfig | None = None,
    *,
    visible: Visible = "binary",
) -> list[float]:
    """Train layers one by one as RBMs, each on the hidden probabilities of the one below.

    Args:
        layers: The layers of a network with sigmoid units, from the bottom up; trained in place.
        data: Inputs of the first layer.
        config: Settings of the training.
        visible: Distribution of `data`; binary data lies in [0, 1].

    Returns:
        The reconstruction error of each layer.

    Hinton, Osindero and Teh (2006), A fast learning algorithm for deep belief nets.
    """
    # [S4, RBM pre-training]
    config = config or PretrainingConfig()
    if data.dim() != 2 or not len(data) or data.shape[1] != layers[0].in_features:
        raise ScoreError(
            f"data must be (rows, {layers[0].in_features}) with at least one row; got {tuple(data.shape)}; "
            "give one row per token"
        )
    if visible == "binary" and not bool(((data >= 0) & (data <= 1)).all()):
        raise ScoreError('binary data must lie in 0..1; got values outside; scale them or use visible="gaussian"')
    errors = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        for i, layer in enumerate(layers):
            rbm = RBM(layer, visible if i == 0 else "binary").to(data)
            _fit(rbm, data, config)
            errors.append(rbm.reconstruction_error(data))
            data = rbm.hidden_probabilities(data).detach()
    return errors


def _fit(rbm: RBM, data: Float[Tensor, "rows d"], config: PretrainingConfig) -> None:
    """Train by contrastive divergence with one Gibbs step (CD-1) and SGD with momentum."""
    nn.init.normal_(rbm.layer.weight, std=0.01)
    nn.init.zeros_(rbm.layer.bias)
    groups = [
        {"params": [rbm.layer.weight], "weight_decay": config.l2},
        {"params": [rbm.layer.bias, rbm.visible_bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum)
    for _ in range(config.epochs):
        for rows in torch.randperm(len(data)).split(config.batch):
            optimizer.zero_grad()
            rbm.divergence(data[rows]).backward()
            optimizer.step()
