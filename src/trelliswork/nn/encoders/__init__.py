"""Encoders: from the features of tokens to one vector per token `[batch, n, d]`, or per segment `[batch, n, k, d]`."""

from __future__ import annotations

from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.nn.encoders.lookup import PADDING, UNKNOWN, LookupTables
from trelliswork.nn.encoders.window import WindowEncoder

__all__ = ["PADDING", "UNKNOWN", "GatedRecursiveConvolution", "LookupTables", "WindowEncoder"]
