"""The final linear layer, from the vector of a token to the scores of its tags."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.arrays import Bool, Float


class LinearScorer(nn.Module):
    """Scores f = W h + b at each token.

    Args:
        dim: Width of the vectors of tokens.
        num_tags: Number of tags.
        initialization: See `initialize_fan_in`.

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
        """Return the scores of tags at each token; `mask` is ignored."""
        return self.linear(encoded)


# Unary factors over a context window: a tag is scored by its token and both neighbours.


class ContextScorer(nn.Module):
    """Scores a_u(y_k) = b + W(0) x_k + 1[k>1] W(-1) x_(k-1) + 1[k<K] W(+1) x_(k+1).

    The indicators exclude neighbours outside the sentence, in a ragged batch also those that are masked. `here`,
    `previous` and `following` hold W(0) with b, W(-1) and W(+1).

    Args:
        dim: Width of the vectors of tokens.
        num_tags: Number of tags.
        initialization: See `initialize_fan_in`.

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
        """Return the scores of tags at each token; without a mask every sentence fills its row."""
        if mask is not None:
            encoded = encoded.masked_fill(~mask.unsqueeze(-1), 0.0)  # a masked neighbour adds nothing
        from_previous = F.pad(self.previous(encoded[:, :-1]), (0, 0, 1, 0))  # 1[k>1]: zeros for the first token
        from_following = F.pad(self.following(encoded[:, 1:]), (0, 0, 0, 1))  # 1[k<K]: zeros for the last token
        return self.here(encoded) + from_previous + from_following


# Transition scores that depend on the input, E_trans(x, t, y', y) of a neural CRF.


class TransitionScorer(nn.Module):
    """Scores -E_trans = ⟨w^(y', y), Φ(x, t)⟩ of each pair of tags at tokens t - 1 and t, t ≥ 2.

    All weights start at 0, so that transitions do not depend on the input at first; `CRF.transitions` is the part that
    never does.

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
