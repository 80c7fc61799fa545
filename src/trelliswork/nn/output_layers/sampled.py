"""Softmaxes that are trained on a sample of the symbols, noise-contrastive estimation, and noise distributions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers.softmax import SoftmaxLayer
from trelliswork.runtime.arrays import Float, Int

Method = Literal["importance", "candidates"]


def log_uniform(n_symbols: int) -> Float[Tensor, " v"]:
    """Return P(k) = (ln(k + 2) - ln(k + 1)) / ln(v + 1), for symbols that are numbered by falling frequency.

    >>> log_uniform(3).sum()
    tensor(1.)
    """
    k = torch.arange(n_symbols, dtype=torch.float64)
    total = torch.log(torch.tensor(n_symbols + 1.0, dtype=torch.float64))
    return (torch.log((k + 2) / (k + 1)) / total).float()  # [S4.359]


def zipf(n_symbols: int, exponent: float = 1.0) -> Float[Tensor, " v"]:
    """Return P(k) ∝ 1 / k^s, with k counted from 1.

    >>> zipf(2)
    tensor([0.6667, 0.3333])
    """
    weights = torch.arange(1, n_symbols + 1, dtype=torch.float64) ** -exponent
    return (weights / weights.sum()).float()  # [S4.360]


def _noise_probabilities(noise: Float[Tensor, " v"] | None, n_symbols: int) -> Float[Tensor, " v"]:
    """Normalise counts or probabilities of all symbols; the default is log-uniform."""
    if noise is None:
        return log_uniform(n_symbols)
    if noise.shape != (n_symbols,) or not bool((noise > 0).all()):
        raise ScoreError(
            f"noise must be positive numbers for {n_symbols} symbols; got {tuple(noise.shape)}; add 1 to zero counts"
        )
    return (noise.double() / noise.double().sum()).float()


LEAST_COUNT = 1e-3  # of a symbol that is no target: practically never drawn, and its score stays finite


class SamplingLayer(SoftmaxLayer):
    """Base class of softmax layers that draw symbols from `noise` (counts or probabilities) in training.

    Args:
        dim: Size of the hidden vectors.
        n_symbols: Number of symbols.
        n_samples: Number of symbols to draw for a batch.
        noise: Counts or probabilities [n_symbols] to draw by; None for log-uniform ones.
    """

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
        self.register_buffer("noise", _noise_probabilities(noise, n_symbols))

    def draw_by_counts(self, counts: Int[Tensor, " v"]) -> None:
        """Draw symbols as often as they are targets; one that never is, such as the begin, is hardly ever drawn."""
        counted = counts.to(self.noise.device, torch.float64).clamp(min=LEAST_COUNT)
        self.noise.copy_(_noise_probabilities(counted, len(self.noise)))

    def draw(self) -> Int[Tensor, " s"]:
        """Draw symbols with replacement, the same for all rows."""
        return torch.multinomial(self.noise, self.n_samples, replacement=True)

    def _scores_of(self, hidden: Float[Tensor, "m d"], symbols: Int[Tensor, " s"]) -> Float[Tensor, "m s"]:
        return F.linear(hidden, self.weight[symbols], self.bias[symbols])

    def _target_scores(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        return (hidden * self.weight[targets]).sum(-1) + self.bias[targets]


class SampledSoftmaxLayer(SamplingLayer):
    """A softmax that is trained on a sample of the symbols; `log_probs` is normalised over all.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols.
        n_samples: Number of draws.
        method: `"importance"` has the target y in V' for sure and draws the others from Q with replacement. It
            estimates Z by exp(E_y) + Σ_{k ∈ V', k ≠ y} exp(E_k - ln Q_k) / n, whose gradient weights ∇E_k by
            ω_k / Σ ω; the estimate has no bias, and the loss is never negative. `"candidates"` includes each symbol
            with probability Q_k = 1 - (1 - p_k)^n, adds the target, and predicts which of these candidates is the
            target: a softmax over F - ln Q.
        noise: Counts or probabilities of the symbols; log-uniform by default.

    Jean et al. (2015), On using very large target vocabulary for neural machine translation.
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
        """Return Q_k, the probability that a symbol is among n draws."""  # [S4.39]
        return -torch.expm1(self.n_samples * torch.log1p(-self.noise.double())).to(self.noise.dtype)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        if self.method == "importance":
            return self._by_importance(hidden, targets)
        return self._by_candidates(hidden, targets)

    def _by_importance(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        drawn = self.draw()
        log_omega = self._scores_of(hidden, drawn) - (len(drawn) * self.noise[drawn]).log()  # [S4.32-34, 358]
        log_omega = log_omega.masked_fill(drawn == targets[:, None], -torch.inf)  # it is there once, for sure
        target = self._target_scores(hidden, targets)
        log_z = torch.cat([target[:, None], log_omega], 1).logsumexp(-1)
        return log_z - target  # its gradient is [S4.29, 31, 35-36, 357]

    def _by_candidates(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        inclusion = self.inclusion
        drawn = (torch.rand_like(inclusion) < inclusion).nonzero().squeeze(1)
        log_q = inclusion.log()
        negatives = self._scores_of(hidden, drawn) - log_q[drawn]  # [S4.43]
        negatives = negatives.masked_fill(drawn == targets[:, None], -torch.inf)  # C = S ∪ {y} has the target once
        target = self._target_scores(hidden, targets) - log_q[targets]
        return torch.cat([target[:, None], negatives], 1).logsumexp(-1) - target  # [S4.37-38]


class NCELayer(SamplingLayer):
    """Noise-contrastive estimation: logistic regression between each target and `n_samples` symbols of noise.

    Scores are trained to be log probabilities themselves, with Z = 1, so that biases start at ln(1 / v). `log_probs`
    normalises nevertheless.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols, v.
        n_samples: Number of noise symbols for each target, shared by all rows.
        noise: Counts or probabilities of the symbols; log-uniform by default.

    Gutmann and Hyvärinen (2010), Noise-contrastive estimation; Mnih and Teh (2012), A fast and simple algorithm for
    training neural probabilistic language models.
    """

    def __init__(
        self, dim: int, n_symbols: int, *, n_samples: int = 100, noise: Float[Tensor, " v"] | None = None
    ) -> None:
        super().__init__(dim, n_symbols, n_samples=n_samples, noise=noise)
        with torch.no_grad():
            self.bias.fill_(-torch.tensor(float(n_symbols)).log())

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """Return -ln h(target) - Σ_k ln(1 - h(n_k)) for each target, with h = σ(s - ln(k p_n))."""
        drawn = self.draw()
        log_kp = (self.n_samples * self.noise).log()
        target = self._target_scores(hidden, targets) - log_kp[targets]  # [S4.363, 390-391]
        noise = self._scores_of(hidden, drawn) - log_kp[drawn]
        return -F.logsigmoid(target) - F.logsigmoid(-noise).sum(-1)  # [S4.371, 389]
