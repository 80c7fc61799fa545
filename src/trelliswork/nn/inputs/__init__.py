"""Inputs: layers from the indices of a batch of tokens to one vector per token `[batch, n, d]`."""

from __future__ import annotations

from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.characters import CharacterCNN, CharacterLSTM
from trelliswork.nn.inputs.direct import DirectConnections
from trelliswork.nn.inputs.dropout import VariationalDropout, WordDropout
from trelliswork.nn.inputs.lookup import PADDING, UNKNOWN, LookupTables
from trelliswork.nn.inputs.ngrams import NgramBag
from trelliswork.nn.inputs.token_inputs import TokenInputs

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
