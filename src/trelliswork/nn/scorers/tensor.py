"""Neural tensor networks, which score pairs of vectors.

Socher et al. (2013), Reasoning with neural tensor networks for knowledge base completion.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.arrays import Bool, Float


class NeuralTensor(nn.Module):
    """Scores g(x, y) = u · tanh(x^T T^[1:k] y + V [x; y] + b) for each of `n_outputs` relations.

    Args:
        dim: Width of x.
        other_dim: Width of y.
        n_outputs: Number of relations.
        slices: k, the number of slices of T.
        initialization: See `initialize_fan_in`.

    >>> NeuralTensor(6, 4, slices=3)(torch.zeros(2, 7, 6), torch.zeros(2, 7, 4)).shape
    torch.Size([2, 7, 1])

    Socher et al. (2013), Reasoning with neural tensor networks for knowledge base completion.
    """

    # [S4.244]

    def __init__(
        self, dim: int, other_dim: int, n_outputs: int = 1, *, slices: int = 4, initialization: FanInScheme = "uniform"
    ) -> None:
        super().__init__()
        if min(dim, other_dim, n_outputs, slices) < 1:
            raise ScoreError(
                f"sizes must be at least 1; got dims {dim} and {other_dim}, {n_outputs} outputs, {slices} slices"
            )
        scale = (dim * other_dim) ** -0.5
        self.tensor = nn.Parameter(torch.empty(slices, dim, other_dim).uniform_(-scale, scale))  # T
        self.of_first, self.of_second = nn.Linear(dim, slices), nn.Linear(other_dim, slices, bias=False)  # V and b
        self.output = nn.Linear(slices, n_outputs, bias=False)  # u
        initialize_fan_in(self, initialization)

    def forward(self, first: Float[Tensor, "*any d"], second: Float[Tensor, "*any e"]) -> Float[Tensor, "*any r"]:
        """Return the scores of the pairs (x[i], y[i])."""
        products = torch.einsum("...d,kde,...e->...k", first, self.tensor, second)
        return self.output((products + self.of_first(first) + self.of_second(second)).tanh())

    def against(self, first: Float[Tensor, "*any d"], table: Float[Tensor, "c e"]) -> Float[Tensor, "*any c r"]:
        """Return the scores of each vector with each row of a table; T y is computed once for each row."""
        by_row = torch.einsum("kde,ce->dck", self.tensor, table).flatten(1)
        products = (first @ by_row).unflatten(-1, (len(table), -1))
        return self.output((products + self.of_first(first).unsqueeze(-2) + self.of_second(table)).tanh())


def contrastive_margin(scores: Float[Tensor, " m"], corrupted: Float[Tensor, "m k"]) -> Float[Tensor, ""]:
    """Return Σ max(0, 1 - g + g') over true pairs and the k corrupted ones of each.

    The regularizer λ |Ω|² of the paper is left to the optimizer.

    >>> contrastive_margin(torch.tensor([2.0]), torch.tensor([[1.5, 0.0]]))
    tensor(0.5000)
    """
    # [S4.245]
    return (1 - scores.unsqueeze(1) + corrupted).clamp(min=0).sum()


class TensorScorer(nn.Module):
    """Scores of tags by a neural tensor network over the vector of a token and that of a tag.

    Args:
        dim: Width of the vectors of tokens.
        num_tags: Number of tags.
        slices: Number of slices of the tensor.
        tag_dim: Width of the vectors of tags.
        initialization: See `initialize_fan_in`.

    >>> TensorScorer(300, num_tags=9)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 9])
    """

    # [S4.244]

    def __init__(
        self, dim: int, num_tags: int, *, slices: int = 4, tag_dim: int = 20, initialization: FanInScheme = "uniform"
    ) -> None:
        super().__init__()
        self.network = NeuralTensor(dim, tag_dim, slices=slices, initialization=initialization)
        self.tags = nn.Parameter(torch.randn(num_tags, tag_dim))
        self.scale = nn.Parameter(torch.ones(()))  # u · tanh is bounded: without a scale, so would be the confidence
        self.bias = nn.Parameter(torch.zeros(num_tags))

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Return the scores of tags at each token; `mask` is ignored."""
        return self.bias + self.scale * self.network.against(encoded, self.tags).squeeze(-1)
