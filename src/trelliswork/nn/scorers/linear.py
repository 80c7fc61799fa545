"""The last linear layer: from the vector of a token to its tag scores."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.shapes import Bool, Float


class LinearScorer(nn.Module):
    """f = W h + b at each token.

    >>> import torch
    >>> LinearScorer(300, num_tags=9)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 9])
    """

    # [S3.13; S4.80]

    def __init__(self, dim: int, num_tags: int, *, initialization: FanInScheme = "uniform"):
        super().__init__()
        self.linear = nn.Linear(dim, num_tags)
        initialize_fan_in(self, initialization)

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Scores per token; every scorer takes a `mask`, this one has no use for it."""
        return self.linear(encoded)


# The context-window unary factors: a tag is scored by its token and by both neighbours.


class ContextScorer(nn.Module):
    """a_u(y_k) = b + W(0) x_k + 1[k>1] W(-1) x_(k-1) + 1[k<K] W(+1) x_(k+1).

    The indicators are border masks: a neighbour counts only where there is one, which in a ragged batch means
    that it is not masked either. `here`, `previous` and `following` hold W(0) with b, W(-1) and W(+1).

        >>> import torch
        >>> scorer = ContextScorer(300, num_tags=9)
        >>> scorer(torch.zeros(2, 7, 300)).shape
        torch.Size([2, 7, 9])
    """

    # [S1, context factors]

    def __init__(self, dim: int, num_tags: int, *, initialization: FanInScheme = "uniform"):
        super().__init__()
        self.here = nn.Linear(dim, num_tags)
        self.previous = nn.Linear(dim, num_tags, bias=False)
        self.following = nn.Linear(dim, num_tags, bias=False)
        initialize_fan_in(self, initialization)

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Scores per token; without a mask every sentence fills its row."""
        if mask is not None:
            encoded = encoded.masked_fill(~mask.unsqueeze(-1), 0.0)  # a masked neighbour adds nothing
        from_previous = F.pad(self.previous(encoded[:, :-1]), (0, 0, 1, 0))  # 1[k>1]: zero row in front
        from_following = F.pad(self.following(encoded[:, 1:]), (0, 0, 0, 1))  # 1[k<K]: zero row behind
        return self.here(encoded) + from_previous + from_following


# Transition scores that depend on the input: E_trans(x, t, y', y) of a neural CRF.


class TransitionScorer(nn.Module):
    """-E_trans = ⟨w^(y', y), Φ(x, t)⟩ for each pair of tags at tokens t - 1 and t, t ≥ 2.

    All weights begin at 0: at first the transitions are the same everywhere, and CRF(...).transitions holds that part.

    >>> import torch
    >>> TransitionScorer(200, num_tags=9)(torch.zeros(2, 7, 200)).shape
    torch.Size([2, 6, 9, 9])

    Do and Artières (2010), Neural conditional random fields.
    """

    # [S4.213-215]

    def __init__(self, dim: int, num_tags: int) -> None:
        super().__init__()
        self.num_tags = num_tags
        self.linear = nn.Linear(dim, num_tags * num_tags, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, encoded: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n-1 c c"]:
        scores = self.linear(encoded[:, 1:])
        return scores.view(*scores.shape[:-1], self.num_tags, self.num_tags)


# Neural tensor networks: how two vectors belong together, in several ways at once.


class NeuralTensor(nn.Module):
    """g(x, y) = u · tanh(x^T T^[1:k] y + V [x; y] + b) for each of `n_outputs` relations.

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
        """Scores of the pairs (x[i], y[i])."""
        products = torch.einsum("...d,kde,...e->...k", first, self.tensor, second)
        return self.output((products + self.of_first(first) + self.of_second(second)).tanh())

    def against(self, first: Float[Tensor, "*any d"], table: Float[Tensor, "c e"]) -> Float[Tensor, "*any c r"]:
        """Scores of each vector with each row of a table: T y is made once for each row."""
        turned = torch.einsum("kde,ce->dck", self.tensor, table).flatten(1)
        products = (first @ turned).unflatten(-1, (len(table), -1))
        return self.output((products + self.of_first(first).unsqueeze(-2) + self.of_second(table)).tanh())


def contrastive_margin(scores: Float[Tensor, " m"], corrupted: Float[Tensor, "m k"]) -> Float[Tensor, ""]:
    """Σ max(0, 1 - g + g') over true pairs and k corrupted ones of each; λ |Ω|² is left to the optimizer.

    >>> contrastive_margin(torch.tensor([2.0]), torch.tensor([[1.5, 0.0]]))
    tensor(0.5000)
    """
    # [S4.245]
    return (1 - scores.unsqueeze(1) + corrupted).clamp(min=0).sum()


class TensorScorer(nn.Module):
    """A token belongs to a tag as far as a neural tensor network says of its vector and that of the tag.

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
        self.scale = nn.Parameter(torch.ones(()))  # u · tanh is bounded; how sure a model may be is learned
        self.bias = nn.Parameter(torch.zeros(num_tags))

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Scores per token; every scorer takes a `mask`, this one has no use for it."""
        return self.bias + self.scale * self.network.against(encoded, self.tags).squeeze(-1)
