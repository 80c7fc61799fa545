"""The shapes of JSON records: words with tags, text with spans (Prodigy, doccano, spaCy), Label Studio.

A shape makes sentences of a record, and puts answers into the line that it came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import NamedTuple, Self

from trelliswork.data.json_values import Json, kind_of, require_list, string_list, strings
from trelliswork.data.kept_lines import replaced_member
from trelliswork.data.raw_sentences import RawToken, Tokeniser, sentence_of_tokens
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.tags.schemes import tags_of


@dataclass(frozen=True)
class JsonFields:
    """The members of records that hold words and tags, or text and spans; the usual ones where None.

    `names` are those of tags that are numbers, from 0.

    >>> JsonFields.parse(["tokens=words", "names=O,B-PER,I-PER"]).names
    ('O', 'B-PER', 'I-PER')
    """

    tokens: str | None = None
    tags: str | None = None
    text: str | None = None
    spans: str | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """Parse the arguments of --field: NAME=MEMBER."""
        known = [each.name for each in fields(cls)]
        members: dict[str, str] = {}
        for each in given:
            name, equals, member = each.partition("=")
            if name not in known or not equals or not member:
                problem = f"expected one of {', '.join(known)}, = and a member, as in tokens=words"
                raise TrellisworkError(f"--field: {problem}; got {each!r}")
            members[name] = member
        names = tuple(filter(None, (name.strip() for name in members.pop("names", "").split(","))))
        return cls(**members, names=names)

    def given(self) -> list[str]:
        """Return what `parse` reads."""
        members = {each.name: getattr(self, each.name) for each in fields(self)} | {"names": ",".join(self.names)}
        return [f"{name}={member}" for name, member in members.items() if member]

    def under(self, other: JsonFields) -> JsonFields:
        """Return the fields of `other`, and those of this where it has none."""
        both = {each.name: getattr(other, each.name) or getattr(self, each.name) for each in fields(self)}
        return JsonFields(**both)


Record = Mapping[str, Json]
Groups = Sequence[Sequence[RawToken]]  # tokens by sentence
TAGS = ("tags", "ner_tags")  # what tags are called, the first that there is


class LabelledPiece(NamedTuple):
    """A place in a text that has a label, and what else is known of it."""

    start: int
    end: int
    label: str
    more: Mapping[str, Json] = {}


class Place(NamedTuple):
    """File and line of a record."""

    file: str
    line: int

    def error(self, problem: str) -> DataError:
        return DataError(self.file, problem, line=self.line)


@dataclass
class Reading:
    """Settings for reading records, and a list of spans that could not be read."""

    fields: JsonFields = field(default_factory=JsonFields)
    tokeniser: Tokeniser | None = None
    astray: list[str] = field(default_factory=list)  # spans that do not fall on tokens, in words
    n_spans: int = 0
    n_skipped: int = 0


class Shape(ABC):
    """One way to write sentences in a record."""

    def __init__(self, reading: Reading, place: Place) -> None:
        self.reading, self.place, self.fields = reading, place, reading.fields

    @abstractmethod
    def sentences(self, record: Record, with_tags: bool) -> list[Sentence]:
        """Return the sentences of a record."""

    @abstractmethod
    def put_answers(
        self, line: str, record: Record, tags: Sequence[Sequence[str]], pieces: Sequence[LabelledPiece]
    ) -> str:
        """Return the line of a record with the tags of its sentences, or the labelled pieces of its text.

        Args:
            line: The line that the record came from.
            record: The record.
            tags: The tags of each sentence of the record.
            pieces: The labelled pieces of its text.

        Returns:
            The line, with nothing changed but the answers.
        """


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
        """Return the member that holds the tags, or would."""
        return self.fields.tags or next((name for name in TAGS if name in record), TAGS[0])

    def _tags(self, record: Record) -> tuple[str, ...]:
        key, names = self.tag_key(record), self.fields.names
        values = record.get(key)
        if not isinstance(values, list) or not any(type(each) is int for each in values):
            return strings(record, key, *self.place)
        if not names:
            problem = f'expected tags as text in "{key}", got numbers'
            raise self.place.error(
                f"{problem}; say what they mean: --field names=O,B-PER,I-PER, in the order of 0, 1, 2"
            )
        for each in values:
            if type(each) is not int or not 0 <= each < len(names):
                raise self.place.error(
                    f'expected numbers in 0..{len(names) - 1} in "{key}", as names has; got {each!r}'
                )
        return tuple(names[each] for each in values)

    def put_answers(
        self, line: str, record: Record, tags: Sequence[Sequence[str]], pieces: Sequence[LabelledPiece]
    ) -> str:
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


SKIPPED = ("reject", "ignore")  # answers of Prodigy that are not annotations
SCHEME = "IOB2"
SPANS = ("spans", "label", "labels", "entities")  # what spans are called, the first that there is
STUDIO = "annotations"


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    words: tuple[str, ...]


class Texts(Shape):
    """A text and its spans, `{"start": 4, "end": 8, "label": "PER"}` or `[4, 8, "PER"]`; places count code points.

    Spans are under `spans` (Prodigy), `label` or `labels` (doccano) or `entities` (doccano with relations, spaCy).
    `tokens` with places are taken as they are.
    """

    def sentences(self, record: Record, with_tags: bool) -> list[Sentence]:
        if with_tags and record.get("answer") in SKIPPED:
            self.reading.n_skipped += 1
            return []
        text, groups = self.text(record), self._tokens(record)
        pieces = self.pieces(record) if with_tags else []
        if with_tags:
            groups = _whole(groups, pieces)
        extra = {name: value for name, value in record.items() if name not in self.members(record)}
        sentences = [
            sentence_of_tokens(text, tokens, line=self.place.line, file=self.place.file, extra=extra)
            for tokens in groups
            if tokens
        ]
        sentences = [replace(each, lines=(self.place.line,) * len(each)) for each in sentences]
        return self._tagged(text, sentences, pieces) if with_tags else sentences

    def members(self, record: Record) -> tuple[str, ...]:
        """Return the members that are read."""
        return (self.fields.text or "text", "tokens", self.span_key(record))

    def span_key(self, record: Record) -> str:
        """Return the member that holds the spans, or would: lists first, since predictions add `spans` to them."""
        lists = (name for name in SPANS[1:] if _is_lists(record.get(name)))
        known = (name for name in SPANS if name in record and isinstance(record[name], list | None))
        return self.fields.spans or next(lists, None) or next(known, SPANS[0])

    def text(self, record: Record) -> str:
        text: str = record[self.fields.text or "text"]
        return text

    def pieces(self, record: Record) -> list[LabelledPiece]:
        """Return the labelled pieces of the text."""
        key, n = self.span_key(record), len(self.text(record))
        if key not in record and "answer" not in record:
            raise self.place.error(f'expected the key "{key}", got {", ".join(record)}')
        return [self._piece(each, key, n) for each in require_list(record.get(key) or [], key, *self.place)]

    def _piece(self, span: Json, key: str, n: int) -> LabelledPiece:
        """Return the piece that a span stands for in a text of `n` characters."""
        start, end, label = _parts(span)
        if not (type(start) is int and type(end) is int and isinstance(label, str) and 0 <= start < end and label):
            wanted = '{"start": 4, "end": 8, "label": "PER"} or [4, 8, "PER"]'
            raise self.place.error(f'expected spans such as {wanted} in "{key}", got {kind_of(span)} {span!r}')
        if end > n:
            problem = f'expected spans inside the text of {n} characters in "{key}", got {start} to {end} ({label})'
            raise self.place.error(f"{problem}; offsets count code points from 0")
        return LabelledPiece(start, end, label)

    def _tokens(self, record: Record) -> Groups:
        """Return the tokens by sentence: those of the record, or those that the tokeniser finds."""
        text, given = self.text(record), record.get(self.fields.tokens or "tokens")
        if isinstance(given, list) and given and all(map(_is_place, given)):
            return [
                [
                    _Token(text[each["start"] : each["end"]], each["start"], each["end"], (each["text"],))
                    for each in given
                ]
            ]
        if self.reading.tokeniser is None:
            raise self.place.error("expected words, got a text; give a tokeniser that finds them")
        groups: Groups = self.reading.tokeniser.tokenise(text)
        return groups

    def _tagged(self, text: str, sentences: list[Sentence], pieces: Sequence[LabelledPiece]) -> list[Sentence]:
        self.reading.n_spans += len(pieces)
        begins = [sentence.offsets[0][0] for sentence in sentences]
        inside: list[list[tuple[int, int, LabelledPiece]]] = [[] for _ in sentences]
        placed = [(*_trimmed(text, piece), piece) for piece in pieces]
        for start, end, piece in sorted(placed, key=lambda each: (*each[:2], each[2].label)):
            at = bisect_right(begins, start) - 1
            if at < 0:
                self._stray(text, piece)
            else:
                inside[at].append((start, end, piece))
        return [self._with_spans(text, *each) for each in zip(sentences, inside, strict=True)]

    def _with_spans(self, text: str, sentence: Sentence, pieces: Sequence[tuple[int, int, LabelledPiece]]) -> Sentence:
        """Return a sentence with the tags of the pieces, which are sorted, that begin and end with its tokens."""
        starts = {start: i for i, (start, _) in reversed(list(enumerate(sentence.offsets)))}
        ends = {end: i + 1 for i, (_, end) in enumerate(sentence.offsets)}
        spans: list[tuple[int, int, str]] = []
        for start, end, piece in pieces:
            first, last = starts.get(start, -1), ends.get(end, -1)
            if (spans[-1][1] if spans else 0) <= first < last:
                spans.append((first, last, piece.label))
            else:
                self._stray(text, piece)
        return replace(sentence, tags=tuple(tags_of(spans, len(sentence), SCHEME)))

    def _stray(self, text: str, piece: LabelledPiece) -> None:
        shown = text if len(text) <= 80 else f"{text[max(0, piece.start - 30) : piece.end + 30]}"
        lost = f"{text[piece.start : piece.end]!r} ({piece.label}, {piece.start} to {piece.end})"
        self.reading.astray.append(f"{self.place.file}:{piece.more.get('line', self.place.line)}: {lost} in {shown!r}")

    def put_answers(
        self, line: str, record: Record, tags: Sequence[Sequence[str]], pieces: Sequence[LabelledPiece]
    ) -> str:
        text, key = self.text(record), self.span_key(record)
        before = [each for each in record.get(key) or [] if isinstance(each, list | Mapping)]
        named = "start_offset" in before[0] if before else False
        first, last = ("start_offset", "end_offset") if named else ("start", "end")
        spans = [
            {
                first: piece.start,
                last: piece.end,
                **self._token_places(record, piece),
                "label": piece.label,
                "text": text[piece.start : piece.end],
                **piece.more,
            }
            for piece in pieces
        ]
        as_lists = isinstance(before[0], list) if before else self.fields.spans is None and key != SPANS[0]
        if not as_lists:
            return replaced_member(line, key, spans)
        line = replaced_member(line, key, [[piece.start, piece.end, piece.label] for piece in pieces])
        has_more = SPANS[0] in record or any(piece.more for piece in pieces)
        return replaced_member(line, SPANS[0], spans) if has_more else line

    def _token_places(self, record: Record, piece: LabelledPiece) -> dict[str, int]:
        """Return the first and the last token, as Prodigy writes them, if the record has tokens."""
        given = record.get("tokens")
        if not (isinstance(given, list) and all(map(_is_place, given))):
            return {}
        inside = [i for i, each in enumerate(given) if piece.start <= each["start"] and each["end"] <= piece.end]
        return {"token_start": inside[0], "token_end": inside[-1]} if inside else {}


class StudioTexts(Texts):
    """A task of Label Studio: the text under `data`, spans under `annotations`; answers go to `predictions`."""

    def members(self, record: Record) -> tuple[str, ...]:
        return ("data", STUDIO, "predictions")

    def text(self, record: Record) -> str:
        key = self.fields.text or "text"
        text = record["data"].get(key)
        if not isinstance(text, str):
            raise self.place.error(f'expected a string under "{key}" in "data", got {kind_of(text)}; --field text=NAME')
        return text

    def pieces(self, record: Record) -> list[LabelledPiece]:
        values: list[Json] = [each.get("value") for each in self._results(record)]
        labelled, n = filter(_is_labelled, values), len(self.text(record))
        return [self._piece({**each, "label": each["labels"][0]}, STUDIO, n) for each in labelled]

    def _results(self, record: Record) -> list[Mapping[str, Json]]:
        """Return the results of the last annotation that was not cancelled."""
        given = require_list(record.get(STUDIO) or [], STUDIO, *self.place)
        done = [each for each in given if isinstance(each, Mapping) and not each.get("was_cancelled")]
        results = require_list(done[-1].get("result") or [], "result", *self.place) if done else []
        return [each for each in results if isinstance(each, Mapping)]

    def put_answers(
        self, line: str, record: Record, tags: Sequence[Sequence[str]], pieces: Sequence[LabelledPiece]
    ) -> str:
        first = next(iter(self._results(record)), {})
        names = {
            "from_name": first.get("from_name", "label"),
            "to_name": first.get("to_name", "text"),
            "type": "labels",
        }
        text = self.text(record)
        result = [
            {**names, "value": {"start": piece.start, "end": piece.end, "text": text[piece.start : piece.end],
                                "labels": [piece.label]}, **piece.more}
            for piece in pieces
        ]  # fmt: skip
        return replaced_member(line, "predictions", [{"model_version": "trelliswork", "result": result}])


def _is_labelled(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("labels"), list) and bool(value["labels"])


def _is_place(token: Json) -> bool:
    wanted = {"text": str, "start": int, "end": int}
    return isinstance(token, Mapping) and all(type(token.get(name)) is kind for name, kind in wanted.items())


def _is_lists(spans: Json) -> bool:
    return isinstance(spans, list) and bool(spans) and all(isinstance(each, list) for each in spans)


def _parts(span: Json) -> tuple[Json, Json, Json]:
    """Return start, end and label of a span, as far as it has them."""
    if isinstance(span, list) and len(span) == 3:
        return span[0], span[1], span[2]
    if not isinstance(span, Mapping):
        return None, None, None
    start, end = (span.get(name, span.get(f"{name}_offset")) for name in ("start", "end"))
    return start, end, span.get("label")


def _whole(groups: Groups, pieces: Sequence[LabelledPiece]) -> Groups:
    """Return sentences put together where a labelled piece goes over their border."""
    joined: list[list[RawToken]] = []
    ordered = sorted(piece[:2] for piece in pieces)
    starts, reach = [start for start, _ in ordered], list(accumulate((end for _, end in ordered), max, initial=0))
    for tokens in filter(None, groups):
        border = joined[-1][-1].end if joined else 0
        if reach[bisect_left(starts, border)] > tokens[0].start and joined:
            joined[-1] += tokens
        else:
            joined.append(list(tokens))
    return joined


def _trimmed(text: str, piece: LabelledPiece) -> tuple[int, int]:
    """Return a piece without white space at its ends."""
    inside = text[piece.start : piece.end]
    start = piece.start + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


def shape_of(record: Record, place: Place, reading: Reading) -> Shape:
    """Return the shape of a record, by its members.

    Args:
        record: A record.
        place: File and line of it.
        reading: How records are read.

    Returns:
        The shape that its members say.
    """
    tokens = record.get(reading.fields.tokens or "tokens")
    if isinstance(record.get(reading.fields.text or "text"), str) and not _is_words(tokens):
        return Texts(reading, place)
    if isinstance(record.get("data"), Mapping) and tokens is None:
        return StudioTexts(reading, place)
    return Words(reading, place)


def _is_words(tokens: Json) -> bool:
    return isinstance(tokens, list) and not any(isinstance(each, Mapping) for each in tokens)
