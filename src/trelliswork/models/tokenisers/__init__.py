"""Tokenisers that are learned from text whose tokens are known.

tokeniser.py            the model: a CRF over the characters of a text
characters.py           a text as characters with attributes, in bulk
character_kernels.py    the numba code of these
multiword.py            tokens that stand for several words
"""

from trelliswork.models.tokenisers.tokeniser import CharacterTokeniser

__all__ = ["CharacterTokeniser"]
