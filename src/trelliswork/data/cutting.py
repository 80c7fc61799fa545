"""Tokens cut into smaller ones, their tags carried on: for data that was split more coarsely than what is tagged.

>>> cut = cut_tokens(Sentence(("@ann", "isn't"), ("B-PER", "O")), "IOB2")
>>> cut.words, cut.tags
(('@', 'ann', 'is', 'n', "'", 't'), ('B-PER', 'I-PER', 'O', 'O', 'O', 'O'))
"""

from __future__ import annotations

import re
from dataclasses import replace

from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.tags.schemes import canonical, spans_of, tags_of

# Links whole, words with their hyphens, the n of n't, runs of digits, any other character by itself.
FINE_TOKENS = r"(?:https?://|www\.)\S+|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:-[^\W\d_]*)*|\d+|[^\s]"


def cut_tokens(sentence: Sentence, scheme: str, pattern: str = FINE_TOKENS) -> Sentence:
    """The sentence with every token cut into all that `pattern` finds in it; a token without any stays whole.

    Spans keep their extent, plain tags and further columns are repeated. Only the first line number is kept, and no
    place in raw text.
    """
    pieces = [_pieces(word, _compiled(pattern)) for word in sentence.words]
    places = [i for i, found in enumerate(pieces) for _ in found]
    tags = sentence.tags
    if tags is not None and len(tags) != len(sentence):
        problem = f"expected {len(sentence)} tags, got {len(tags)}; give a file with a tag column"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return replace(
        sentence,
        words=tuple(word for found in pieces for word in found),
        tags=None if tags is None else _carried(tags, places, scheme),
        features=tuple(tuple(column[i] for i in places) for column in sentence.features),
        lines=(),
        offsets=(),
        multiword=(),
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise TrellisworkError(f"expected a regular expression, got {pattern!r} ({error}); correct it") from error


def _pieces(word: str, pattern: re.Pattern[str]) -> list[str]:
    return [found.group() for found in pattern.finditer(word) if found.group()] or [word]


def _carried(tags: tuple[str, ...], places: list[int], scheme: str) -> tuple[str, ...]:
    """The tags of the pieces, which came from the tokens at `places`."""
    if canonical(scheme) == "plain":
        return tuple(tags[i] for i in places)
    first = {i: place for place, i in reversed(list(enumerate(places)))}
    first[len(tags)] = len(places)
    spans = [(first[start], first[end], kind) for start, end, kind in spans_of(tags, scheme)]
    return tuple(tags_of(spans, len(places), scheme))
