"""What a tokeniser returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Token:
    """A token and its place text[start:end], counted in code points.

    `words` are the syntactic words of a multi-word token, such as "de" and "le" of French "du"; else the token alone.
    """

    text: str
    start: int
    end: int
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.words:
            object.__setattr__(self, "words", (self.text,))


class Tokeniser(Protocol):
    """Anything that finds the sentences of a text and their tokens."""

    def tokenise(self, text: str) -> list[list[Token]]:
        """The sentences of a text; tokens never overlap and keep their order."""
        ...
