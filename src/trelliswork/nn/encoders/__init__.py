"""Encoders: a vector per token that knows its neighbours `[batch, n, d]`, or one per segment `[batch, n, k, d]`.

base.py                     what every encoder of tokens is
identity.py, window.py, deep.py, sentence.py, dilated.py    no neighbours, some, all by convolution
recurrent.py, transformer.py    all neighbours, by recurrence or attention
grconv.py                   vectors of segments: a pyramid over the tokens
pretrained.py, subwords.py  encoders of Hugging Face
fusing.py, packing.py, lstm_*.py, grconv_*.py    the same networks by kernel, on the CPU
"""

from __future__ import annotations

from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.encoders.deep import DeepEncoder
from trelliswork.nn.encoders.dilated import DilatedConvolution
from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.nn.encoders.identity import IdentityEncoder
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.nn.encoders.sentence import SentenceConvolution
from trelliswork.nn.encoders.transformer import TransformerEncoder
from trelliswork.nn.encoders.window import WindowEncoder

__all__ = [
    "DeepEncoder",
    "DilatedConvolution",
    "GatedRecursiveConvolution",
    "IdentityEncoder",
    "RecurrentEncoder",
    "SentenceConvolution",
    "TokenEncoder",
    "TransformerEncoder",
    "WindowEncoder",
]
