"""Sentences of raw text: words with their places, from the tokens that a tokeniser finds.

>>> cut = cut_tokens(Sentence(("@ann", "isn't"), ("B-PER", "O")), "IOB2")
>>> cut.words, cut.tags
(('@', 'ann', 'is', 'n', "'", 't'), ('B-PER', 'I-PER', 'O', 'O', 'O', 'O'))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

from trelliswork.data.json_values import JsonObject
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.tags.schemes import canonical, spans_of, tags_of

Offsets = tuple[int, int]


class RawToken(Protocol):
    """A token of raw text [start, end), and the words that it is; `trelliswork.text.Token` is one."""

    @property
    def text(self) -> str:
        """The token as it is written."""

    @property
    def start(self) -> int:
        """Place of its first character."""

    @property
    def end(self) -> int:
        """Place after its last character."""

    @property
    def words(self) -> tuple[str, ...]:
        """Its words, mostly one."""


class Tokeniser(Protocol):
    """Finds the tokens of raw text."""

    def tokenise(self, text: str) -> Sequence[Sequence[RawToken]]:
        """Return the tokens of a text, by sentence."""


def sentence_of_tokens(
    text: str,
    tokens: Sequence[RawToken],
    place: Callable[[int], int] = int,
    *,
    line: int = 1,
    file: str = "",
    lines: tuple[int, ...] = (),
    extra: JsonObject | None = None,
) -> Sentence:
    """Return the sentence of `tokens` (see `trelliswork.text.Token`) in `text`.

    A token of several words becomes these, each with its own place if together they are spelled like the token, else
    with that of the whole token. `place` turns a place in `text` into the one to tell.

    Args:
        text: Raw text.
        tokens: The tokens of a sentence of it.
        place: Turns a place in `text` into the one to report.
        line: The line of the sentence.
        file: The file that it is from.
        lines: The line of each word.
        extra: Further members of a JSON record.

    Returns:
        The sentence with its text, the places of its words, and its multi-word tokens.
    """
    words: list[str] = []
    offsets: list[Offsets] = []
    multiword: list[tuple[int, int, str]] = []
    for token in tokens:
        if len(token.words) > 1:
            multiword.append((len(words), len(words) + len(token.words), token.text))
        words += token.words
        offsets += [(place(start), place(end)) for start, end in _places(token)]
    written = text[tokens[0].start : tokens[-1].end] if tokens else ""
    return Sentence(
        tuple(words), line=line, file=file, lines=lines, extra=extra or {}, text=written, offsets=tuple(offsets),
        multiword=tuple(multiword),
    )  # fmt: skip


class _Token(NamedTuple):
    text: str
    start: int
    end: int
    words: tuple[str, ...]


def place_words(sentence: Sentence, text: str, multiword: Mapping[int, tuple[int, str]]) -> Sentence:
    """Return a sentence with its text and the places of its words in that; as it is if the text has other words.

    `multiword` has the tokens of several words: by the first, one after the last, and how they are written.

    Args:
        sentence: A sentence without places.
        text: The text that it may be written as.
        multiword: Tokens of several words: by the first word, the one after the last, and how the token is written.

    Returns:
        The sentence with text and places.

    >>> place_words(Sentence(("do", "n't", "!")), "don't!", {0: (2, "don't")}).offsets
    ((0, 2), (2, 5), (5, 6))
    """
    words, n = sentence.words, len(sentence.words)
    offsets: list[Offsets] = []
    several: list[tuple[int, int, str]] = []
    i = place = 0
    while i < n:
        last, form = multiword.get(i, (i + 1, words[i])) if multiword else (i + 1, words[i])
        start = text.find(form, place)
        if start < 0 or (start > place and text[place:start].strip()) or not i < last <= n:
            return sentence
        place = start + len(form)
        if last == i + 1:
            offsets.append((start, place))
        else:
            offsets += _places(_Token(form, start, place, words[i:last]))
            several.append((i, last, form))
        i = last
    return replace(sentence, text=text, offsets=tuple(offsets), multiword=tuple(several))


def _places(token: RawToken) -> list[Offsets]:
    if "".join(token.words) != token.text:
        return [(token.start, token.end)] * len(token.words)
    return list(pairwise(accumulate(map(len, token.words), initial=token.start)))


def spaces_after(sentence: Sentence) -> list[bool]:
    """Return for each word but the last whether white space follows it, in a sentence with offsets."""
    return [end < start for (_, end), (start, _) in pairwise(sentence.offsets)]


# Tokens cut into smaller ones, their tags carried on: for data that was split more coarsely than what is tagged.

# Links whole, words with their hyphens, the n of n't, runs of digits, any other character by itself.
FINE_TOKENS = r"(?:https?://|www\.)\S+|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:-[^\W\d_]*)*|\d+|[^\s]"


def cut_tokens(sentence: Sentence, scheme: str, pattern: str = FINE_TOKENS) -> Sentence:
    """Return the sentence with every token cut into all that `pattern` finds in it; a token without any stays whole.

    Spans keep their extent, plain tags and further columns are repeated. Only the first line number is kept, and no
    place in raw text.

    Args:
        sentence: A sentence, tagged or not.
        scheme: The scheme of its tags, such as IOB2.
        pattern: A regular expression; each of its matches in a word becomes a token.

    Returns:
        The sentence of the smaller tokens.
    """
    pieces = [_pieces(word, _compiled(pattern)) for word in sentence.words]
    places = [i for i, parts in enumerate(pieces) for _ in parts]
    tags = sentence.tags
    if tags is not None and len(tags) != len(sentence):
        problem = f"expected {len(sentence)} tags, got {len(tags)}; give a file with a tag column"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return replace(
        sentence,
        words=tuple(word for parts in pieces for word in parts),
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
    return [match.group() for match in pattern.finditer(word) if match.group()] or [word]


def _carried(tags: tuple[str, ...], places: list[int], scheme: str) -> tuple[str, ...]:
    """Return the tags of the pieces, which came from the tokens at `places`."""
    if canonical(scheme) == "plain":
        return tuple(tags[i] for i in places)
    first = {i: place for place, i in reversed(list(enumerate(places)))}
    first[len(tags)] = len(places)
    spans = [(first[start], first[end], kind) for start, end, kind in spans_of(tags, scheme)]
    return tuple(tags_of(spans, len(places), scheme))
