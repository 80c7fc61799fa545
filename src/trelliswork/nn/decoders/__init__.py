"""Decoders: from an encoded input and the symbols so far to the vectors that the output layer reads.

base.py                             the interface
bahdanau.py, luong.py               recurrent decoders, with attention.py
transformer.py                      self-attention
tree.py             trees in brackets, each bracket a sequence of its own
pointer.py              copying from the source
generation.py        greedy search, beams and samples
constraints.py    restrictions of the generated strings
"""

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
