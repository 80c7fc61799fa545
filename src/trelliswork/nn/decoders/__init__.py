"""Decoders: from an encoded input and the symbols so far to what the output layer reads.

base.py                   what every decoder is
attention.py              scores of positions, local windows, contexts
bahdanau.py, luong.py     recurrent decoders
transformer.py, cache.py  a transformer, and the keys and values of its beams
pointer.py                copying from the source, and the loss of coverage
generation.py             strings symbol by symbol, for the searches of structures/beam
constraints.py            which symbols may follow a prefix
truncation.py             temperature, the best symbols, the nucleus
grammar_constraint.py     which words may follow a prefix of a grammar
tree.py                   trees, bracket by bracket
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
