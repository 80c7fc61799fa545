"""The full softmax, which scores every symbol.

The scores of all rows, [m, v], are never in memory at once. The gradient is computed together with the loss, since both
need the same probabilities.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float, Int
from trelliswork.runtime.autograd import fused


class OutputLayer(nn.Module):
    """Base class: `loss` is minimised in training, and may be an estimate; `log_probs` is exact and normalised."""

    n_symbols: int

    @abstractmethod
    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """Return the loss of each target; layers that sample draw new symbols at each call."""

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        """Return the sum of `loss` over all targets; layers may override it with a faster way."""
        return self.loss(hidden, targets).sum()

    @abstractmethod
    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """Return ln p(symbol | hidden) for every symbol."""


class SoftmaxLayer(OutputLayer):
    """p(k | h) = exp(w_k · h + b_k) / Z.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols, v.
        smoothing: ε of label smoothing, which trains towards 1 - ε on the target and ε spread over all symbols.
        tied: Table of symbol vectors [v, d] to share as w.

        >>> SoftmaxLayer(16, 100).log_probs(torch.zeros(2, 5, 16)).shape
        torch.Size([2, 5, 100])

    Szegedy et al. (2016), Rethinking the inception architecture for computer vision; Press and Wolf (2017), Using the
    output embedding to improve language models.
    """

    # [S4.14, 27-28, 49, 51]

    def __init__(self, dim: int, n_symbols: int, *, smoothing: float = 0.0, tied: Tensor | None = None) -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ScoreError(f"smoothing must lie in [0, 1); got {smoothing}; try 0.1")
        if tied is not None and tied.shape != (n_symbols, dim):
            raise ScoreError(f"a tied table must be {(n_symbols, dim)}; got {tuple(tied.shape)}")
        self.n_symbols, self.smoothing = n_symbols, smoothing
        self.weight: Tensor = nn.Parameter(torch.randn(n_symbols, dim) * dim**-0.5) if tied is None else tied
        self.bias = nn.Parameter(torch.zeros(n_symbols))

    def scores(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """Return w_k · h + b_k."""  # [S4.30]
        return F.linear(hidden, self.weight, self.bias)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        smoothing = self.smoothing if self.training else 0.0
        return F.cross_entropy(self.scores(hidden), targets, reduction="none", label_smoothing=smoothing)

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        smoothing, device = self.smoothing if self.training else 0.0, hidden.device.type
        half = torch.is_autocast_enabled(device)
        if half and (device != "cpu" or torch.get_autocast_dtype(device) != torch.bfloat16):
            return super().total_loss(hidden, targets)
        return summed_loss(hidden, self.weight, self.bias, targets, smoothing, half=half)

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        return self.scores(hidden).log_softmax(-1)  # [S4.40-42]


# The summed loss of a softmax and its gradient in one pass, some rows at a time.

ROWS = 512  # at a time


def summed_loss(
    hidden: Float[Tensor, "m d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    targets: Int[Tensor, " m"],
    smoothing: float,
    *,
    half: bool = False,
) -> Float[Tensor, ""]:
    """Return Σ_i -ln p(target_i | hidden_i) of a softmax layer.

    Args:
        hidden: Input of the layer.
        weight: Weight of the layer.
        bias: Bias of the layer.
        targets: The symbols.
        smoothing: Share of each target that is spread over all symbols (label smoothing).
        half: Whether matrix products are in bf16; everything else is in float32.

    >>> summed_loss(torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4), torch.tensor([1, 2]), 0.0)  # 2 ln 4
    tensor(2.7726)
    """
    total: Tensor = fused(SoftmaxLoss(targets, smoothing, half), hidden, weight, bias)
    return total


class SoftmaxLoss(NamedTuple):
    """`summed_loss` as one step of autograd; the forward pass keeps the gradient."""

    targets: Int[Tensor, " m"]
    smoothing: float
    half: bool = False

    def forward(
        self, hidden: Float[Tensor, "m d"], weight: Float[Tensor, "v d"], bias: Float[Tensor, " v"]
    ) -> tuple[Float[Tensor, ""], tuple[Tensor, ...]]:
        """Compute the loss, summed over all positions.

        Args:
            hidden: Vectors of the positions [m, d].
            weight: Of the output layer [v, d].
            bias: Of the output layer [v].

        Returns:
            A scalar, and the gradient for `backward`.
        """
        grads = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        total = weight.new_zeros(())
        if self.half:
            hidden, weight = hidden.bfloat16(), weight.bfloat16()
        for start in range(0, len(hidden), ROWS):
            rows = slice(start, start + ROWS)
            if self.half:
                scores = torch.mm(hidden[rows], weight.t()).float().add_(bias)
                loss, errors = _errors(scores, self.targets[rows, None], self.smoothing)
                grads[2].add_(errors.sum(0))
                errors = errors.bfloat16()
                grads[0][rows] = torch.mm(errors, weight)
                grads[1].add_(torch.mm(errors.t(), hidden[rows]))
                total += loss
                continue
            scores = torch.addmm(bias, hidden[rows], weight.t())
            loss, errors = _errors(scores, self.targets[rows, None], self.smoothing)
            total += loss
            torch.mm(errors, weight, out=grads[0][rows])
            grads[1].addmm_(errors.t(), hidden[rows])
            grads[2].add_(errors.sum(0))
        return total, grads

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Float[Tensor, ""]]
    ) -> tuple[Tensor, ...]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Hidden, weight, bias, as `forward` was given them.
            kept: The gradient by hidden vectors, weight and bias.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        return tuple(gradient * grads[0] for gradient in kept)

    def reference(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> Float[Tensor, ""]:
        """Compute the results of `forward` with torch operations.

        Args:
            hidden: Vectors of the positions [m, d].
            weight: Of the output layer [v, d].
            bias: Of the output layer [v].

        Returns:
            The results, differentiable by autograd.
        """
        scores = F.linear(hidden, weight, bias)
        return F.cross_entropy(scores, self.targets, reduction="sum", label_smoothing=self.smoothing)


def _errors(
    scores: Float[Tensor, "m v"], targets: Int[Tensor, "m 1"], smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "m v"]]:
    """Return the summed loss and its gradient by the scores, p - target; `scores` are overwritten."""  # [S4.388]
    scores.sub_(scores.amax(1, keepdim=True))
    wanted = (1 - smoothing) * scores.gather(1, targets)
    if smoothing:
        wanted = wanted + smoothing * scores.mean(1, keepdim=True)
    odds = scores.exp_()
    sums = odds.sum(1, keepdim=True)
    errors = odds.div_(sums)
    if smoothing:
        errors.sub_(smoothing / errors.shape[1])
    errors.scatter_add_(1, targets, errors.new_full(targets.shape, smoothing - 1))
    return (sums.log() - wanted).sum(), errors


# Output layers with two levels: the class of a symbol, then the symbol within its class.


class HierarchicalSoftmaxLayer(OutputLayer):
    """p(w | h) = p(class of w | h) p(w | class of w, h), with classes of consecutive symbols.

    Symbols should be numbered by frequency.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols, v.
        sizes: Number of symbols in each class; by default √v classes of about √v symbols, so that a target costs about
            2 √v scores instead of v.

    Mikolov et al. (2011), Extensions of recurrent neural network language model.
    """

    # [S4, Hierarchical Softmax]

    def __init__(self, dim: int, n_symbols: int, *, sizes: list[int] | None = None) -> None:
        super().__init__()
        self.n_symbols = n_symbols
        self.sizes = sizes if sizes is not None else _even_sizes(n_symbols)
        if sum(self.sizes) != n_symbols or min(self.sizes) < 1:
            raise ScoreError(f"the classes must have {n_symbols} symbols in all, each at least 1; got {self.sizes}")
        self.classes = nn.Linear(dim, len(self.sizes))
        self.weight = nn.Parameter(torch.randn(n_symbols, dim) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(n_symbols))
        numbers = torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes))
        self.register_buffer("class_of", numbers, persistent=False)

    class_of: Tensor

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """Return the loss of each target, which scores only the symbols in the classes of the targets."""
        target_classes = self.class_of[targets]
        of_class = F.cross_entropy(self.classes(hidden), target_classes, reduction="none")
        order, within = target_classes.argsort(), []
        numbers, sizes = target_classes.unique(return_counts=True)
        # Split once: the gradient of each slice of its own would be as large as all weights.
        weights, biases, starts = self.weight.split(self.sizes), self.bias.split(self.sizes), self._starts()
        parts = (each[order].split(sizes.tolist()) for each in (hidden, targets))
        for number, vectors, symbols in zip(numbers.tolist(), *parts, strict=True):
            scores = F.linear(vectors, weights[number], biases[number])
            within.append(F.cross_entropy(scores, symbols - starts[number], reduction="none"))
        return of_class.index_add(0, order, torch.cat(within)) if within else of_class

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        scores = F.linear(hidden, self.weight, self.bias)
        within = [part.log_softmax(-1) for part in scores.split(self.sizes, -1)]
        return torch.cat(within, -1) + self.classes(hidden).log_softmax(-1)[..., self.class_of]

    def _starts(self) -> list[int]:
        """Return the first symbol of each class."""
        return list(accumulate(self.sizes, initial=0))[:-1]


def _even_sizes(n_symbols: int) -> list[int]:
    n_classes = max(1, round(math.sqrt(n_symbols)))
    small, rest = divmod(n_symbols, n_classes)
    return [small + (i < rest) for i in range(n_classes)]
