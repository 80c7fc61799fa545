"""A record of JSON and what is made of it, and the plainest shape: a list of words and a list of tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trelliswork.data.json_checks import kind_of, string_list, strings
from trelliswork.data.json_fields import JsonFields
from trelliswork.data.kept_lines import replaced_member
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError

Record = Mapping[str, Any]
TAGS = ("tags", "ner_tags")  # what tags are called, the first that there is


class Piece(NamedTuple):
    """A place in a text that has a label, and what else is known of it."""

    start: int
    end: int
    label: str
    more: Mapping[str, Any] = {}


class Place(NamedTuple):
    """Where a record is from."""

    file: str
    line: int

    def error(self, problem: str) -> DataError:
        return DataError(self.file, problem, line=self.line)


@dataclass
class Reading:
    """How records are read, and what could not be."""

    fields: JsonFields = field(default_factory=JsonFields)
    tokeniser: Any = None
    astray: list[str] = field(default_factory=list)  # spans that do not fall on tokens, in words
    n_spans: int = 0
    n_skipped: int = 0


class Shape(ABC):
    """One way to write sentences in a record."""

    def __init__(self, reading: Reading, place: Place) -> None:
        self.reading, self.place, self.fields = reading, place, reading.fields

    @abstractmethod
    def sentences(self, record: Record, with_tags: bool) -> list[Sentence]:
        """The sentences of a record."""

    @abstractmethod
    def written(self, line: str, record: Record, tags: Sequence[Sequence[str]], found: Sequence[Piece]) -> str:
        """The line of a record with the tags of its sentences, or the labelled pieces of its text."""


class Words(Shape):
    """A list of words and a list of tags; numbers as tags are those of `names`."""

    def sentences(self, record: Record, with_tags: bool) -> list[Sentence]:
        key, file, line = self.fields.tokens or "tokens", *self.place
        words = strings(record, key, file, line)
        if not words:
            raise self.place.error(f'expected at least one token in "{key}", got none')
        tags = self._tags(record) if with_tags else None
        if tags is not None and len(tags) != len(words):
            raise self.place.error(f"expected {len(words)} tags, one per token; got {len(tags)}")
        features = _features(record, len(words), file, line)
        extra = {name: value for name, value in record.items() if name not in (key, self.tag_key(record), "features")}
        return [Sentence(words, tags, features, line=line, file=file, lines=(line,) * len(words), extra=extra)]

    def tag_key(self, record: Record) -> str:
        """The member that holds the tags, or would."""
        return self.fields.tags or next((name for name in TAGS if name in record), TAGS[0])

    def _tags(self, record: Record) -> tuple[str, ...]:
        key, names = self.tag_key(record), self.fields.names
        found = record.get(key)
        if not isinstance(found, list) or not any(type(each) is int for each in found):
            return strings(record, key, *self.place)
        if not names:
            problem = f'expected tags as text in "{key}", got numbers'
            raise self.place.error(
                f"{problem}; say what they mean: --field names=O,B-PER,I-PER, in the order of 0, 1, 2"
            )
        for each in found:
            if type(each) is not int or not 0 <= each < len(names):
                raise self.place.error(
                    f'expected numbers in 0..{len(names) - 1} in "{key}", as names has; got {each!r}'
                )
        return tuple(names[each] for each in found)

    def written(self, line: str, record: Record, tags: Sequence[Sequence[str]], found: Sequence[Piece]) -> str:
        key, numbers = self.tag_key(record), {name: i for i, name in enumerate(self.fields.names)}
        before = record.get(key)
        was_numbers = isinstance(before, list) and any(type(each) is int for each in before)
        if was_numbers or (before is None and numbers):
            return replaced_member(line, key, [numbers.get(tag, tag) for tag in tags[0]])
        return replaced_member(line, key, list(tags[0]))


def _features(record: Record, n: int, file: str, line: int) -> tuple[tuple[str, ...], ...]:
    columns = record.get("features", [])
    if not isinstance(columns, list):
        raise DataError(file, f'expected a list of columns in "features", got {kind_of(columns)}', line=line)
    read = tuple(string_list(column, "features", file, line) for column in columns)
    for i, column in enumerate(read):
        if len(column) != n:
            raise DataError(
                file, f'expected {n} values at "features"[{i}], one per token; got {len(column)}', line=line
            )
    return read
