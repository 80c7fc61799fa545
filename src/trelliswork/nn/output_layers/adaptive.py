"""Adaptive softmax and adaptive input: wide vectors for frequent symbols, narrower ones for rarer clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers.softmax import OutputLayer, summed_loss
from trelliswork.runtime.arrays import Float, Int

NARROWER = 4.0  # a vector of a cluster than one of the cluster before
SHARES = (30, 6)  # of the symbols in the head, and in it and the first cluster: one in so many


def clusters_of(n_symbols: int) -> list[int]:
    """Return cutoffs for a large vocabulary: 1/30 of the symbols in the head, 1/6 with the first of two clusters.

    >>> clusters_of(60_000)
    [2000, 10000]
    """
    return sorted({max(1, n_symbols // share) for share in SHARES} - {n_symbols})


class AdaptiveSoftmaxLayer(OutputLayer):
    """Frequent symbols in one softmax, rarer ones in clusters with narrower vectors.

    This wraps `torch.nn.AdaptiveLogSoftmaxWithLoss`. Symbols must be numbered by frequency.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols.
        cutoffs: The first symbol of each cluster; by default one cluster, of the rarest four fifths. `clusters_of`
            returns cutoffs for large vocabularies.

    Grave et al. (2017), Efficient softmax approximation for GPUs.
    """

    # [S4.408]

    def __init__(self, dim: int, n_symbols: int, *, cutoffs: Sequence[int] | None = None) -> None:
        super().__init__()
        self.n_symbols = n_symbols
        cutoffs = _checked(cutoffs if cutoffs is not None else [max(1, n_symbols // 5)], n_symbols)
        narrower = min(NARROWER, dim ** (1 / len(cutoffs)))  # at most such that the last cluster keeps one dimension
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(dim, n_symbols, cutoffs, div_value=narrower, head_bias=True)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        return -self.layer(hidden, targets).output

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        """Return the sum of `loss`: a softmax of the head for all targets, and one of each cluster for its own."""
        if torch.is_autocast_enabled(hidden.device.type):
            return super().total_loss(hidden, targets)
        cutoffs, head = self.layer.cutoffs, self.layer.head
        cluster = torch.bucketize(targets, torch.tensor(cutoffs[:-1], device=targets.device), right=True)
        chosen = torch.where(cluster == 0, targets, cutoffs[0] + cluster - 1)
        total = summed_loss(hidden, head.weight, head.bias, chosen, 0.0)
        for number, (low, _) in enumerate(pairwise(cutoffs), 1):
            rows = (cluster == number).nonzero().squeeze(1)
            if len(rows):
                narrow, last = self.layer.tail[number - 1]  # type: ignore[misc]
                bias = hidden.new_zeros(last.out_features)  # type: ignore[has-type]
                reduced, weight = narrow(hidden[rows]), last.weight  # type: ignore[has-type]
                total = total + summed_loss(reduced, weight, bias, targets[rows] - low, 0.0)
        return total

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        return self.layer.log_prob(hidden.flatten(0, -2)).view(*hidden.shape[:-1], self.n_symbols)


class AdaptiveInput(nn.Module):
    """A lookup table whose rarer symbols have narrower vectors, each cluster with a projection to the full width.

    Args:
        dim: Width of the vectors that it returns.
        n_symbols: Number of symbols, numbered by frequency.
        cutoffs: The first symbol of each cluster; by default those of `clusters_of`.
        tied: An adaptive softmax of the same width and cutoffs, whose vectors of symbols are used.

        >>> AdaptiveInput(32, 100, cutoffs=[10, 40])(torch.tensor([[0, 20, 99]])).shape
        torch.Size([1, 3, 32])

    Baevski and Auli (2019), Adaptive input representations for neural language modeling.
    """

    # [S4.409]

    def __init__(
        self,
        dim: int,
        n_symbols: int,
        *,
        cutoffs: Sequence[int] | None = None,
        tied: AdaptiveSoftmaxLayer | None = None,
    ) -> None:
        super().__init__()
        cutoffs = _checked(clusters_of(n_symbols) if cutoffs is None else cutoffs, n_symbols)
        self.dim, self.bounds = dim, [0, *cutoffs, n_symbols]
        widths = [max(1, int(dim // NARROWER**i)) for i in range(len(cutoffs) + 1)]
        if tied is not None:
            widths = [dim, *(part[0].out_features for part in tied.layer.tail)]  # type: ignore[index]
            if tied.layer.cutoffs != self.bounds[1:] or tied.layer.in_features != dim:
                got = f"width {tied.layer.in_features} and cutoffs {tied.layer.cutoffs[:-1]}"
                raise ScoreError(f"a tied adaptive softmax must have width {dim} and cutoffs {cutoffs}; got {got}")
        self._tied = () if tied is None else (tied,)  # a tuple, so that its parameters are not counted twice
        sizes = [high - low for low, high in pairwise(self.bounds)]
        self.tables = nn.ParameterList(
            [] if tied else [torch.randn(size, width) * width**-0.5 for size, width in zip(sizes, widths, strict=True)]
        )
        self.projections = nn.ModuleList(nn.Linear(width, dim, bias=False) for width in widths)

    def forward(self, symbols: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Return the vector of each symbol."""
        flat, tables = symbols.flatten(), self._vectors()
        vectors = tables[0].new_zeros(len(flat), self.dim)
        for (low, high), table, project in zip(pairwise(self.bounds), tables, self.projections, strict=True):
            rows = ((flat >= low) & (flat < high)).nonzero().squeeze(1)
            vectors = vectors.index_add(0, rows, project(table[flat[rows] - low]))
        return vectors.view(*symbols.shape, self.dim)

    def _vectors(self) -> list[Tensor]:
        """Return the table of each cluster."""
        if not self._tied:
            return list(self.tables)
        layer = self._tied[0].layer
        return [layer.head.weight[: self.bounds[1]], *(part[1].weight for part in layer.tail)]  # type: ignore[index]


def _checked(cutoffs: Sequence[int], n_symbols: int) -> list[int]:
    given = list(cutoffs)
    if not given or any(not 0 < cutoff < n_symbols for cutoff in given) or sorted(set(given)) != given:
        raise ScoreError(f"cutoffs must rise and lie in 1..{n_symbols - 1}; got {given}")
    return given
