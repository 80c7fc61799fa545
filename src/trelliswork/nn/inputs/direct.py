"""Attributes of tokens that score labels directly, bypassing the encoder."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.lookup import PADDING, sum_of_rows
from trelliswork.runtime.shapes import Float


class DirectConnections(nn.Module):
    """Scores of each label from the attributes of a token, to be added to the emissions.

    Attribute 0 means none. All weights start at 0, so that adding the layer does not change a network.

    >>> import torch
    >>> attributes = torch.tensor([[[1, 2], [3, 0]]])  # two templates
    >>> batch = TokenBatch(torch.zeros(1, 2, 1), torch.ones(1, 2, dtype=torch.bool), attributes=attributes)
    >>> DirectConnections(4, num_labels=9)(batch).shape
    torch.Size([1, 2, 9])

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
        scores = sum_of_rows(self.table, batch.attributes)
        return scores if batch.scales is None else scores * batch.scales[..., -1:]
