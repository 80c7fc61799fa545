"""A sentence as the readers give it and the taggers take it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words, their tags if known, further columns, and where the sentence was read.

    `features` holds one tuple per extra column (part of speech, ...), each as long as `words`; `line` is the
    1-based line of the first token.

    >>> len(Sentence(("Ann", "sings"), ("B-PER", "O"), (("NNP", "VBZ"),)))
    2
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    features: tuple[tuple[str, ...], ...] = ()
    line: int = 1
    file: str = ""

    def __len__(self) -> int:
        return len(self.words)
