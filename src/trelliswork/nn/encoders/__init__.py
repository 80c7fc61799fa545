"""Encoders: a vector per token that knows its neighbours `[batch, n, d]`, or one per segment `[batch, n, k, d]`.

base.py                                     what every encoder of tokens is, and the one that sees no neighbours
window.py, deep.py, sentence.py, dilated.py some neighbours, or all by convolution
recurrent.py, transformer.py                all neighbours, by recurrence or attention
grconv.py                                   vectors of segments: a pyramid over the tokens
pretrained.py                               encoders of Hugging Face
lstm_*.py, grconv_kernels.py                the same networks by kernel, on the CPU
"""

from __future__ import annotations

from trelliswork.nn.encoders.base import IdentityEncoder, TokenEncoder
from trelliswork.nn.encoders.deep import DeepEncoder
from trelliswork.nn.encoders.dilated import DilatedConvolution
from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
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
