"""Output layers with two levels: the class of a symbol, then the symbol within its class."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers.base import OutputLayer
from trelliswork.runtime.shapes import Float, Int


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
        losses = F.cross_entropy(self.classes(hidden), target_classes, reduction="none")
        for number in target_classes.unique().tolist():
            rows, (start, end) = (target_classes == number).nonzero().squeeze(1), self._bounds(number)
            scores = F.linear(hidden[rows], self.weight[start:end], self.bias[start:end])
            within = F.cross_entropy(scores, targets[rows] - start, reduction="none")
            losses = losses.index_add(0, rows, within)
        return losses

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        scores = F.linear(hidden, self.weight, self.bias)
        within = [part.log_softmax(-1) for part in scores.split(self.sizes, -1)]
        return torch.cat(within, -1) + self.classes(hidden).log_softmax(-1)[..., self.class_of]

    def _bounds(self, number: int) -> tuple[int, int]:
        start = sum(self.sizes[:number])
        return start, start + self.sizes[number]


class AdaptiveSoftmaxLayer(OutputLayer):
    """Frequent symbols in one softmax, rarer ones in clusters with narrower vectors.

    This wraps `torch.nn.AdaptiveLogSoftmaxWithLoss`. Symbols must be numbered by frequency.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols.
        cutoffs: The first symbol of each cluster; by default one cluster, of the 80% rarest symbols.

    Grave et al. (2017), Efficient softmax approximation for GPUs.
    """

    # [S4.408]

    def __init__(self, dim: int, n_symbols: int, *, cutoffs: list[int] | None = None) -> None:
        super().__init__()
        self.n_symbols = n_symbols
        cutoffs = cutoffs if cutoffs is not None else [max(1, n_symbols // 5)]
        if any(not 0 < cutoff < n_symbols for cutoff in cutoffs) or sorted(set(cutoffs)) != cutoffs:
            raise ScoreError(f"cutoffs must rise and lie in 1..{n_symbols - 1}; got {cutoffs}")
        narrower = min(4.0, dim ** (1 / len(cutoffs)))  # at most such that the last cluster keeps one dimension
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(dim, n_symbols, cutoffs, div_value=narrower, head_bias=True)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        return -self.layer(hidden, targets).output

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        return self.layer.log_prob(hidden.flatten(0, -2)).view(*hidden.shape[:-1], self.n_symbols)


def _even_sizes(n_symbols: int) -> list[int]:
    n_classes = max(1, round(math.sqrt(n_symbols)))
    small, rest = divmod(n_symbols, n_classes)
    return [small + (i < rest) for i in range(n_classes)]
