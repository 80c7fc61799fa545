"""Records that are a text and its labelled spans, as Prodigy and Label Studio write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trelliswork.data.json_checks import kind_of, require_list
from trelliswork.data.json_words import Piece, Record, Shape
from trelliswork.data.kept_lines import replaced_member
from trelliswork.data.raw_sentences import sentence_of_tokens
from trelliswork.data.sentence import Sentence
from trelliswork.tags.schemes import tags_of

SKIPPED = ("reject", "ignore")  # answers of Prodigy that are no annotations
SCHEME = "IOB2"
STUDIO = "annotations"


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    words: tuple[str, ...]


class Texts(Shape):
    """A text and its spans `{"start": 4, "end": 8, "label": "PER"}`; `tokens` with places are taken as they are."""

    def sentences(self, record: Record, with_tags: bool) -> list[Sentence]:
        if with_tags and record.get("answer") in SKIPPED:
            self.reading.n_skipped += 1
            return []
        text, groups = self.text(record), self._tokens(record)
        pieces = self.pieces(record) if with_tags else []
        if with_tags:
            groups = _whole(groups, pieces)
        extra = {name: value for name, value in record.items() if name not in self.members()}
        found = [
            sentence_of_tokens(text, tokens, line=self.place.line, file=self.place.file, extra=extra)
            for tokens in groups
            if tokens
        ]
        found = [replace(each, lines=(self.place.line,) * len(each)) for each in found]
        return self._tagged(text, found, pieces) if with_tags else found

    def members(self) -> tuple[str, ...]:
        """The members that are read."""
        return (self.fields.text or "text", "tokens", self.fields.spans or "spans")

    def text(self, record: Record) -> str:
        found: str = record[self.fields.text or "text"]
        return found

    def pieces(self, record: Record) -> list[Piece]:
        """The labelled pieces of the text."""
        key = self.fields.spans or "spans"
        if key not in record and "answer" not in record:
            raise self.place.error(f'expected the key "{key}", got {", ".join(record)}')
        return [self._piece(each, key) for each in require_list(record.get(key) or [], key, *self.place)]

    def _piece(self, span: Any, key: str) -> Piece:
        if isinstance(span, Mapping):
            start, end, label = (span.get(name) for name in ("start", "end", "label"))
            if type(start) is int and type(end) is int and isinstance(label, str) and 0 <= start < end and label:
                return Piece(start, end, label)
        wanted = '{"start": 4, "end": 8, "label": "PER"}'
        raise self.place.error(f'expected spans such as {wanted} in "{key}", got {kind_of(span)} {span!r}')

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
        left, tagged = list(pieces), []
        self.reading.n_spans += len(pieces)
        for sentence in sentences:
            starts = {start: i for i, (start, _) in reversed(list(enumerate(sentence.offsets)))}
            ends = {end: i + 1 for i, (_, end) in enumerate(sentence.offsets)}
            spans: list[tuple[int, int, str]] = []
            for piece in sorted(left):
                start, end = _trimmed(text, piece)
                span = (starts.get(start, -1), ends.get(end, -1), piece.label)
                if -1 < span[0] < span[1] and not any(span[0] < last and first < span[1] for first, last, _ in spans):
                    spans.append(span)
                    left.remove(piece)
            tagged.append(replace(sentence, tags=tuple(tags_of(spans, len(sentence), SCHEME))))
        for piece in left:
            shown = text if len(text) <= 80 else f"{text[max(0, piece.start - 30) : piece.end + 30]}"
            lost = f"{text[piece.start : piece.end]!r} ({piece.label}, {piece.start} to {piece.end})"
            self.reading.astray.append(f"{self.place.file}:{self.place.line}: {lost} in {shown!r}")
        return tagged

    def written(self, line: str, record: Record, tags: Sequence[Sequence[str]], found: Sequence[Piece]) -> str:
        spans = [
            {
                "start": piece.start,
                "end": piece.end,
                **self._token_places(record, piece),
                "label": piece.label,
                **piece.more,
            }
            for piece in found
        ]
        return replaced_member(line, self.fields.spans or "spans", spans)

    def _token_places(self, record: Record, piece: Piece) -> dict[str, int]:
        """The first and the last token, as Prodigy writes them, if the record has tokens."""
        given = record.get("tokens")
        if not (isinstance(given, list) and all(map(_is_place, given))):
            return {}
        inside = [i for i, each in enumerate(given) if piece.start <= each["start"] and each["end"] <= piece.end]
        return {"token_start": inside[0], "token_end": inside[-1]} if inside else {}


class StudioTexts(Texts):
    """A task of Label Studio: the text under `data`, spans under `annotations`; answers go to `predictions`."""

    def members(self) -> tuple[str, ...]:
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
        return [self._piece({**each, "label": each["labels"][0]}, STUDIO) for each in values if _is_labelled(each)]

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


def _whole(groups: list[list[Any]], pieces: Sequence[Piece]) -> list[list[Any]]:
    """Sentences put together where a labelled piece goes over their border."""
    joined: list[list[Any]] = []
    for tokens in filter(None, groups):
        border = joined[-1][-1].end if joined else 0
        if joined and any(piece.start < border and piece.end > tokens[0].start for piece in pieces):
            joined[-1] = [*joined[-1], *tokens]
        else:
            joined.append(list(tokens))
    return joined


def _trimmed(text: str, piece: Piece) -> tuple[int, int]:
    """Without white space at its ends."""
    inside = text[piece.start : piece.end]
    start = piece.start + len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())
