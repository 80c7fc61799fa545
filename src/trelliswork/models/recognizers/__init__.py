"""Recognizers: from recordings (vectors, images, sound) to strings.

config.py     settings of recordings, of the network, and of decoding
features.py   files as frames: log-mel filter banks, columns of images, vectors
network.py    strided convolutions, BiLSTMs and what distorts frames in training
language.py   n-grams in the beam, and their weight
ctc.py        `--model ctc`: connectionist temporal classification over symbols
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.recognizers.config import DecodingSettings, RecognizerConfig
    from trelliswork.models.recognizers.ctc import CTCRecognizer

__all__ = ["CTCRecognizer", "DecodingSettings", "RecognizerConfig"]

__getattr__ = lazy_names(__name__, {"config": "DecodingSettings RecognizerConfig", "ctc": "CTCRecognizer"})
