"""The context-window unary factors: a tag is scored by its token and by both neighbours."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.shapes import Bool, Float


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
