"""Encoders: a vector for each token in its context `[batch, n, d]`, or for each segment `[batch, n, k, d]`.

base.py                     the interface of encoders of tokens
window.py, deep.py, sentence.py    windows, dilated convolutions, convolutions over the sentence
recurrent.py, transformer.py    the sentence by recurrence or attention
grconv.py                   vectors of segments: a pyramid over the tokens
pretrained.py               pretrained transformers of Hugging Face; subwords.py, and encoding_cache.py for frozen ones
lstm_*.py, grconv_*.py    the same networks by kernels, on the CPU
"""

from __future__ import annotations

from trelliswork.nn.encoders.base import IdentityEncoder, TokenEncoder
from trelliswork.nn.encoders.deep import DeepEncoder
from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.nn.encoders.recurrent import RecurrentEncoder
from trelliswork.nn.encoders.sentence import SentenceConvolution
from trelliswork.nn.encoders.transformer import TransformerEncoder
from trelliswork.nn.encoders.window import DilatedConvolution, WindowEncoder

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
