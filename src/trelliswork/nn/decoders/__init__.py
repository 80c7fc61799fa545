"""Decoders: from an encoded input and the symbols so far to what the output layer reads.

base.py                             what every decoder is
bahdanau.py, luong.py               recurrent, with attention.py
transformer.py, cache.py            self-attention
tree.py, tree_levels.py             brackets, each a sequence of its own
pointer.py, copynet.py              copying from the source
coverage.py                         what attention has been at
generation.py, truncation.py        greedy, beams and samples
constraints.py, grammar_constraint.py    what may be generated
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
