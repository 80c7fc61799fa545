"""Words of questions by their stems, so that what is learned about `river` is known of `rivers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from trelliswork.lazy import optional

StemLanguage = Literal[
    "none", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish", "french",
    "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian",
    "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip
Stemming = Callable[[Sequence[str]], tuple[str, ...]]


def stemming(language: str) -> Stemming:
    """Return a function that replaces words by their stems; with the language "none" it leaves them as they are.

    Porter (2001), Snowball: a language for stemming algorithms.

    >>> stemming("english")(("which", "rivers", "traverse", "state_name0"))
    ('which', 'river', 'travers', 'state_name0')
    """
    if language == "none":
        return tuple
    stemmer = optional("snowballstemmer", f"--stem {language}", "stems").stemmer(language)

    def stemmed(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(stemmer.stemWord(word) if word.isalpha() else word for word in words)

    return stemmed
