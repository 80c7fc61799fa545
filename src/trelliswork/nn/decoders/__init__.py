"""Decoders: from an encoded input and the symbols so far to what the output layer reads."""

from trelliswork.nn.decoders.attention import AdditiveScore, DotScore, GeneralScore, LocalWindow
from trelliswork.nn.decoders.bahdanau import BahdanauDecoder
from trelliswork.nn.decoders.base import Decoder, Step, Unrolled
from trelliswork.nn.decoders.luong import LuongDecoder
from trelliswork.nn.decoders.transformer import TransformerDecoder

__all__ = [
    "AdditiveScore",
    "BahdanauDecoder",
    "Decoder",
    "DotScore",
    "GeneralScore",
    "LocalWindow",
    "LuongDecoder",
    "Step",
    "TransformerDecoder",
    "Unrolled",
]
