"""Attributes of tokens that score labels directly, past the encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.bags import sum_of_rows
from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.lookup import PADDING

if TYPE_CHECKING:
    from jaxtyping import Float


class DirectConnections(nn.Module):
    """The weights of the attributes of a token, summed by label: to be added to emissions.

    Attribute 0 stands for none. All weights begin at 0, so that the network is what it was without them.

    Huang, Xu and Yu (2015), Bidirectional LSTM-CRF models for sequence tagging.
    """

    # [S4, direct connections]

    def __init__(self, n_attributes: int, num_labels: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(n_attributes, num_labels, mode="sum", padding_idx=PADDING)
        nn.init.zeros_(self.table.weight)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        if batch.attributes is None:
            raise ScoreError("a batch for a network with direct connections must have attributes; got none")
        return sum_of_rows(self.table, batch.attributes)
