"""Tokenisers that are learned from text whose tokens are known, or from tokens alone.

base.py                 what they answer
config.py               their settings
tokeniser.py            the model: a CRF over the characters of a text
character_kernels.py    the numba code of these
learned_rules.py        rules with the habits of a file, learned from tokens alone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.tokenisers.learned_rules import LearnedRules
    from trelliswork.models.tokenisers.tokeniser import CharacterTokeniser

__all__ = ["CharacterTokeniser", "LearnedRules"]

__getattr__ = lazy_names(__name__, {"tokeniser": "CharacterTokeniser", "learned_rules": "LearnedRules"})
