"""Encoders: a vector per token that knows its neighbours `[batch, n, d]`, or one per segment `[batch, n, k, d]`."""

from __future__ import annotations

from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.encoders.deep import DeepEncoder
from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.nn.encoders.window import WindowEncoder

__all__ = ["DeepEncoder", "GatedRecursiveConvolution", "RecurrentEncoder", "TokenEncoder", "WindowEncoder"]
