"""Softmaxes whose normaliser is estimated from drawn symbols, and noise-contrastive estimation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers.noise import checked
from trelliswork.nn.output_layers.softmax import SoftmaxLayer
from trelliswork.runtime.shapes import Float, Int

Method = Literal["importance", "candidates"]


class _Drawing(SoftmaxLayer):
    """A softmax layer that draws symbols from `noise` (counts or probabilities) to learn from."""

    noise: Tensor

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        return self.loss(hidden, targets).sum()

    def __init__(
        self, dim: int, n_symbols: int, *, n_samples: int = 100, noise: Float[Tensor, " v"] | None = None
    ) -> None:
        super().__init__(dim, n_symbols)
        if n_samples < 1:
            raise ScoreError(f"n_samples must be at least 1; got {n_samples}; a third of the symbols works well")
        self.n_samples = n_samples
        self.register_buffer("noise", checked(noise, n_symbols))

    def draw(self) -> Int[Tensor, " s"]:
        """Symbols drawn with replacement, the same for all rows."""
        return torch.multinomial(self.noise, self.n_samples, replacement=True)

    def _scores_of(self, hidden: Float[Tensor, "m d"], symbols: Int[Tensor, " s"]) -> Float[Tensor, "m s"]:
        return F.linear(hidden, self.weight[symbols], self.bias[symbols])

    def _target_scores(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        return (hidden * self.weight[targets]).sum(-1) + self.bias[targets]


class SampledSoftmaxLayer(_Drawing):
    """A softmax that is learned from a sample of the symbols and normalised over all when it answers.

    `method="importance"` draws V' from Q with replacement and estimates Z by Σ_{k ∈ V'} exp(E_k - ln Q_k) / |V'|, whose
    gradient weighs ∇E_k by ω_k / Σ ω: Jean et al. (2015), On using very large target vocabulary for neural machine
    translation. `"candidates"` includes each symbol with its own probability Q_k = 1 - (1 - p_k)^n, adds the target,
    and asks which of these candidates is the target: a softmax over F - ln Q.
    """

    def __init__(
        self,
        dim: int,
        n_symbols: int,
        *,
        n_samples: int = 100,
        method: Method = "candidates",
        noise: Float[Tensor, " v"] | None = None,
    ) -> None:
        super().__init__(dim, n_symbols, n_samples=n_samples, noise=noise)
        if method not in ("importance", "candidates"):
            raise ScoreError(f"method must be importance or candidates; got {method!r}")
        self.method = method

    @property
    def inclusion(self) -> Float[Tensor, " v"]:
        """Q_k: the probability that a symbol is among n draws."""  # [S4.39]
        return -torch.expm1(self.n_samples * torch.log1p(-self.noise.double())).to(self.noise.dtype)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        if self.method == "importance":
            return self._by_importance(hidden, targets)
        return self._by_candidates(hidden, targets)

    def _by_importance(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        drawn = self.draw()
        log_omega = self._scores_of(hidden, drawn) - self.noise[drawn].log()  # [S4.32-34, 358]
        log_z = log_omega.logsumexp(-1) - torch.tensor(float(len(drawn))).log()
        return log_z - self._target_scores(hidden, targets)  # its gradient is [S4.29, 31, 35-36, 357]

    def _by_candidates(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        inclusion = self.inclusion
        drawn = (torch.rand_like(inclusion) < inclusion).nonzero().squeeze(1)
        log_q = inclusion.log()
        negatives = self._scores_of(hidden, drawn) - log_q[drawn]  # [S4.43]
        negatives = negatives.masked_fill(drawn == targets[:, None], -torch.inf)  # C = S ∪ {y} has the target once
        target = self._target_scores(hidden, targets) - log_q[targets]
        return torch.cat([target[:, None], negatives], 1).logsumexp(-1) - target  # [S4.37-38]


class NCELayer(_Drawing):
    """Noise-contrastive estimation: each target against `n_samples` symbols of noise, by logistic regression.

    Scores are trained to be log probabilities themselves, Z = 1 (Mnih and Teh 2012, A fast and simple algorithm for
    training neural probabilistic language models); the biases begin at ln(1 / v). `log_probs` normalises all the same.

    Gutmann and Hyvärinen (2010), Noise-contrastive estimation.
    """

    def __init__(
        self, dim: int, n_symbols: int, *, n_samples: int = 100, noise: Float[Tensor, " v"] | None = None
    ) -> None:
        super().__init__(dim, n_symbols, n_samples=n_samples, noise=noise)
        with torch.no_grad():
            self.bias.fill_(-torch.tensor(float(n_symbols)).log())

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """-ln h(target) - Σ_k ln(1 - h(n_k)), h = σ(s - ln(k p_n))."""
        drawn = self.draw()
        log_kp = (self.n_samples * self.noise).log()
        target = self._target_scores(hidden, targets) - log_kp[targets]  # [S4.363, 390-391]
        noise = self._scores_of(hidden, drawn) - log_kp[drawn]
        return -F.logsigmoid(target) - F.logsigmoid(-noise).sum(-1)  # [S4.371, 389]
