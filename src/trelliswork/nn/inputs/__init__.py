"""Inputs: layers from the indices of a batch of tokens to one vector per token `[batch, n, d]`."""

from __future__ import annotations

from trelliswork.nn.inputs.dropout import VariationalDropout, WordDropout
from trelliswork.nn.inputs.lookup import PADDING, UNKNOWN, LookupTables
from trelliswork.nn.inputs.token_inputs import (
    CharacterCNN,
    CharacterLSTM,
    DirectConnections,
    NgramBag,
    TokenBatch,
    TokenInputs,
)

__all__ = [
    "PADDING",
    "UNKNOWN",
    "CharacterCNN",
    "CharacterLSTM",
    "DirectConnections",
    "LookupTables",
    "NgramBag",
    "TokenBatch",
    "TokenInputs",
    "VariationalDropout",
    "WordDropout",
]
