"""The unit of a tagger, whose states another unit can read (stack-propagation)."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.runtime.shapes import Float


class TaggingUnit(nn.Module):
    """A feed-forward unit (`TBRU`) over the word at each position, all of whose states are computed at once.

    Both the scorers of tags and the next unit, for example of a parser, read its states.

    Args:
        dim: Width of the vectors of words.
        hidden: Number of units.
        dropout: Share of units that are dropped.

        >>> import torch
        >>> TaggingUnit(20, 8)(torch.zeros(2, 7, 20)).shape
        torch.Size([2, 7, 8])

    Zhang and Weiss (2016), Stack-propagation: Improved representation learning for syntax.
    """  # [S4, DRAGNN]

    def __init__(self, dim: int, hidden: int, *, dropout: float = 0.0):
        super().__init__()
        self.word, self.dropout = nn.Linear(dim, hidden), Dropout(dropout)
        initialize_fan_in(self)

    def forward(self, vectors: Float[Tensor, "*words d"]) -> Float[Tensor, "*words hidden"]:
        """Return h of each word."""
        hidden: Tensor = self.dropout(self.word(vectors).relu())
        return hidden
