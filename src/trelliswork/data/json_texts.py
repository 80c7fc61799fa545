"""Records that are a text and its labelled spans, as Prodigy, doccano, spaCy and Label Studio write them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from trelliswork.data.json_checks import kind_of, require_list
from trelliswork.data.json_words import Piece, Record, Shape
from trelliswork.data.kept_lines import replaced_member
from trelliswork.data.raw_sentences import sentence_of_tokens
from trelliswork.data.sentence import Sentence
from trelliswork.tags.schemes import tags_of

SKIPPED = ("reject", "ignore")  # answers of Prodigy that are no annotations
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
        found = [
            sentence_of_tokens(text, tokens, line=self.place.line, file=self.place.file, extra=extra)
            for tokens in groups
            if tokens
        ]
        found = [replace(each, lines=(self.place.line,) * len(each)) for each in found]
        return self._tagged(text, found, pieces) if with_tags else found

    def members(self, record: Record) -> tuple[str, ...]:
        """The members that are read."""
        return (self.fields.text or "text", "tokens", self.span_key(record))

    def span_key(self, record: Record) -> str:
        """The member that holds the spans, or would: lists first, since predictions add `spans` to them."""
        lists = (name for name in SPANS[1:] if _is_lists(record.get(name)))
        known = (name for name in SPANS if name in record and isinstance(record[name], list | None))
        return self.fields.spans or next(lists, None) or next(known, SPANS[0])

    def text(self, record: Record) -> str:
        found: str = record[self.fields.text or "text"]
        return found

    def pieces(self, record: Record) -> list[Piece]:
        """The labelled pieces of the text."""
        key, n = self.span_key(record), len(self.text(record))
        if key not in record and "answer" not in record:
            raise self.place.error(f'expected the key "{key}", got {", ".join(record)}')
        return [self._piece(each, key, n) for each in require_list(record.get(key) or [], key, *self.place)]

    def _piece(self, span: Any, key: str, n: int) -> Piece:
        """The piece that a span stands for in a text of `n` characters."""
        start, end, label = _parts(span)
        if not (type(start) is int and type(end) is int and isinstance(label, str) and 0 <= start < end and label):
            wanted = '{"start": 4, "end": 8, "label": "PER"} or [4, 8, "PER"]'
            raise self.place.error(f'expected spans such as {wanted} in "{key}", got {kind_of(span)} {span!r}')
        if end > n:
            problem = f'expected spans inside the text of {n} characters in "{key}", got {start} to {end} ({label})'
            raise self.place.error(f"{problem}; offsets count code points from 0")
        return Piece(start, end, label)

    def _tokens(self, record: Record) -> list[list[Any]]:
        """The tokens by sentence: those of the record, or those that the tokeniser finds."""
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
        found: list[list[Any]] = self.reading.tokeniser.tokenise(text)
        return found

    def _tagged(self, text: str, sentences: list[Sentence], pieces: Sequence[Piece]) -> list[Sentence]:
        self.reading.n_spans += len(pieces)
        begins = [sentence.offsets[0][0] for sentence in sentences]
        inside: list[list[tuple[int, int, Piece]]] = [[] for _ in sentences]
        placed = [(*_trimmed(text, piece), piece) for piece in pieces]
        for start, end, piece in sorted(placed, key=lambda each: (*each[:2], each[2].label)):
            at = bisect_right(begins, start) - 1
            if at < 0:
                self._stray(text, piece)
            else:
                inside[at].append((start, end, piece))
        return [self._with_spans(text, *each) for each in zip(sentences, inside, strict=True)]

    def _with_spans(self, text: str, sentence: Sentence, pieces: Sequence[tuple[int, int, Piece]]) -> Sentence:
        """A sentence with the tags of the pieces, which are sorted, that begin and end with its tokens."""
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

    def _stray(self, text: str, piece: Piece) -> None:
        shown = text if len(text) <= 80 else f"{text[max(0, piece.start - 30) : piece.end + 30]}"
        lost = f"{text[piece.start : piece.end]!r} ({piece.label}, {piece.start} to {piece.end})"
        self.reading.astray.append(f"{self.place.file}:{piece.more.get('line', self.place.line)}: {lost} in {shown!r}")

    def written(self, line: str, record: Record, tags: Sequence[Sequence[str]], found: Sequence[Piece]) -> str:
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
            for piece in found
        ]
        as_lists = isinstance(before[0], list) if before else self.fields.spans is None and key != SPANS[0]
        if not as_lists:
            return replaced_member(line, key, spans)
        line = replaced_member(line, key, [[piece.start, piece.end, piece.label] for piece in found])
        has_more = SPANS[0] in record or any(piece.more for piece in found)
        return replaced_member(line, SPANS[0], spans) if has_more else line

    def _token_places(self, record: Record, piece: Piece) -> dict[str, int]:
        """The first and the last token, as Prodigy writes them, if the record has tokens."""
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
        found = record["data"].get(key)
        if not isinstance(found, str):
            raise self.place.error(
                f'expected a string under "{key}" in "data", got {kind_of(found)}; --field text=NAME'
            )
        return found

    def pieces(self, record: Record) -> list[Piece]:
        values: list[Any] = [each.get("value") for each in self._results(record)]
        labelled, n = filter(_is_labelled, values), len(self.text(record))
        return [self._piece({**each, "label": each["labels"][0]}, STUDIO, n) for each in labelled]

    def _results(self, record: Record) -> list[Mapping[str, Any]]:
        """What the last annotation that was not cancelled has found."""
        given = require_list(record.get(STUDIO) or [], STUDIO, *self.place)
        done = [each for each in given if isinstance(each, Mapping) and not each.get("was_cancelled")]
        results = require_list(done[-1].get("result") or [], "result", *self.place) if done else []
        return [each for each in results if isinstance(each, Mapping)]

    def written(self, line: str, record: Record, tags: Sequence[Sequence[str]], found: Sequence[Piece]) -> str:
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
            for piece in found
        ]  # fmt: skip
        return replaced_member(line, "predictions", [{"model_version": "trelliswork", "result": result}])


def _is_labelled(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("labels"), list) and bool(value["labels"])


def _is_place(token: Any) -> bool:
    wanted = {"text": str, "start": int, "end": int}
    return isinstance(token, Mapping) and all(type(token.get(name)) is kind for name, kind in wanted.items())


def _is_lists(spans: Any) -> bool:
    return isinstance(spans, list) and bool(spans) and all(isinstance(each, list) for each in spans)


def _parts(span: Any) -> tuple[Any, Any, Any]:
    """Start, end and label of a span, as far as it has them."""
    if isinstance(span, list) and len(span) == 3:
        return span[0], span[1], span[2]
    if not isinstance(span, Mapping):
        return None, None, None
    start, end = (span.get(name, span.get(f"{name}_offset")) for name in ("start", "end"))
    return start, end, span.get("label")


def _whole(groups: list[list[Any]], pieces: Sequence[Piece]) -> list[list[Any]]:
    """Sentences put together where a labelled piece goes over their border."""
    joined: list[list[Any]] = []
    ordered = sorted(piece[:2] for piece in pieces)
    starts, reach = [start for start, _ in ordered], list(accumulate((end for _, end in ordered), max, initial=0))
    for tokens in filter(None, groups):
        border = joined[-1][-1].end if joined else 0
        if reach[bisect_left(starts, border)] > tokens[0].start and joined:
            joined[-1] += tokens
        else:
            joined.append(list(tokens))
    return joined


def _trimmed(text: str, piece: Piece) -> tuple[int, int]:
    """Without white space at its ends."""
    inside = text[piece.start : piece.end]
    start = piece.start + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())
