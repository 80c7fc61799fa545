"""Tokenisers that are learned from text whose tokens are known.

config.py               their settings
tokeniser.py            the model: a CRF over the characters of a text
characters.py           a text as characters with attributes, in bulk
character_kernels.py    the numba code of these
multiword.py            tokens that stand for several words
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.tokenisers.tokeniser import CharacterTokeniser

__all__ = ["CharacterTokeniser"]

__getattr__ = lazy_names(__name__, {"CharacterTokeniser": "tokeniser"})
