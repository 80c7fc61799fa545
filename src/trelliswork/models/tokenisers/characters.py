"""A text as the characters that a tokeniser labels, and the attributes that it sees of each."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.models.tokenisers.character_kernels import (
    N_ATTRIBUTES,
    Characters,
    attribute_keys,
    count_visible,
    lay_out,
)

Array = np.ndarray[Any, Any]
# Coarse kinds of characters; what is outside the text is 0 like white space, and so are controls.
SPACE = 0
_KINDS = {"Lu": 1, "Ll": 2, "Lt": 1, "Lm": 3, "Lo": 3, "Nd": 4, "Nl": 4, "No": 4, "Mn": 5, "Mc": 5, "Me": 5}
_MARKS = {".": 6, "!": 7, "?": 7, ",": 8, ";": 9, ":": 9, "'": 10, "’": 10, '"': 11, "-": 12, "/": 13, "@": 13}
_OTHERS = {"Ps": 14, "Pi": 14, "Pe": 15, "Pf": 15, "Pd": 12, "Po": 16, "Pc": 12, "Sc": 17, "So": 18}
_SCRIPTS = (("HIRAGANA", 20), ("KATAKANA", 21), ("CJK", 22), ("THAI", 23), ("LAO", 23), ("KHMER", 23), ("MYANMAR", 23))
_REST = 19
_UNKNOWN = -1
# Of every code point that was ever met: its kind, and the first code point of its lower case.
_kinds = np.full(0x110000, _UNKNOWN, np.int8)
_lower = np.zeros(0x110000, np.int32)


def kind_of(character: str) -> int:
    """The coarse kind of a character."""
    if character.isspace():
        return SPACE
    if character in _MARKS:
        return _MARKS[character]
    category = unicodedata.category(character)
    if category == "Lo":
        name = unicodedata.name(character, "")
        return next((kind for script, kind in _SCRIPTS if name.startswith(script)), _KINDS["Lo"])
    return _KINDS.get(category, _OTHERS.get(category, _REST))


@dataclass(frozen=True)
class Paragraphs:
    """The visible characters of a text, paragraph by paragraph; a blank line ends one."""

    places: Array  # [m] of each visible character, in the text
    before_space: Array  # [m] whether white space or the end follows
    lengths: Array  # [paragraphs] in visible characters
    characters: Characters

    @classmethod
    def of(cls, text: str) -> Paragraphs:
        codes = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), np.int32)
        for code in np.unique(codes[_kinds[codes] == _UNKNOWN]).tolist():
            _kinds[code], _lower[code] = kind_of(chr(code)), ord(chr(code).lower()[0])
        kinds = _kinds[codes]
        m, n_paragraphs = count_visible(codes, kinds)
        places, before_space = np.empty(m, np.int64), np.empty(m, np.bool_)
        characters = Characters.empty(m, n_paragraphs)
        lengths = np.empty(n_paragraphs, np.int64)
        lay_out(codes, kinds, _lower, characters, places, before_space, lengths)
        return cls(places, before_space, lengths, characters)

    def __len__(self) -> int:
        """The number of visible characters."""
        return len(self.places)

    def keys(self) -> Array:
        """The keys of the attributes of each visible character [m * N_ATTRIBUTES]."""
        keys = np.empty((len(self), N_ATTRIBUTES), np.uint64)
        attribute_keys(self.characters, self.lengths, keys)
        return keys.reshape(-1)
