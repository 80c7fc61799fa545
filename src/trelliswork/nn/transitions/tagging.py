"""The unit of a tagger whose states another unit reads."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.runtime.shapes import Float


class TaggingUnit(nn.Module):
    """A feed-forward unit (`TBRU`) over the word at each position, all of whose states are computed at once.

    What scores tags, one column or several, reads its states, and so does the unit that is chained to it. Zhang and
    Weiss (2016), Stack-propagation: Improved representation learning for syntax.

        >>> TaggingUnit(20, 8)(torch.zeros(2, 7, 20)).shape
        torch.Size([2, 7, 8])
    """  # [S4, DRAGNN]

    def __init__(self, dim: int, hidden: int, *, dropout: float = 0.0):
        super().__init__()
        self.word, self.dropout = nn.Linear(dim, hidden), Dropout(dropout)
        initialize_fan_in(self)

    def forward(self, vectors: Float[Tensor, "*words d"]) -> Float[Tensor, "*words hidden"]:
        """h of each word."""
        found: Tensor = self.dropout(self.word(vectors).relu())
        return found
