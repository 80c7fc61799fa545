"""Attributes of tokens that score labels directly, past the encoder."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.bags import sum_of_rows
from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.lookup import PADDING
from trelliswork.runtime.shapes import Float


class DirectConnections(nn.Module):
    """Scores that a token's attributes give to each label, to be added to the emissions.

    Attribute 0 means none. All weights start at 0, so that adding the layer does not change the network.

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
        found = sum_of_rows(self.table, batch.attributes)
        return found if batch.scales is None else found * batch.scales[..., -1:]
