"""The file that was read, given back as it is but for what is predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trelliswork.cli.writers.base import (
    Marked,
    Writer,
    answers_by_task,
    confidence_columns,
    marked_spans,
    one_line,
    word_columns,
)
from trelliswork.cli.writers.columns import LEMMA, MISC, analysis_comments, conllu_cells, misc_entries
from trelliswork.cli.writers.json_lines import json_extras, tree_members, whole_members
from trelliswork.data import ColumnFormat, CsvFormat, Sentence
from trelliswork.data.csv_files import is_blank
from trelliswork.data.json_shapes import LabelledPiece, Place, Reading, Record, Shape, Texts, shape_of
from trelliswork.data.jsonl import pair_parts, parse_record
from trelliswork.data.kept_lines import (
    Change,
    KeptLines,
    replaced_cell,
    replaced_column,
    replaced_last,
    replaced_member,
)
from trelliswork.models.base import Answer

LAST = 10**9  # a column behind all others


@dataclass
class KeptColumns(Writer):
    """Lines of CoNLL columns with the tags of each task in its column; probabilities are further columns."""

    kept: KeptLines
    format: ColumnFormat
    columns: Sequence[int | None]

    def write(self, sentence: Sentence, answer: Answer) -> str:
        answers = list(answers_by_task(answer).values())
        if not isinstance(answers[0].value, list):
            self.kept.forget()  # a value of the whole sentence has no column
            return one_line(sentence, answer)
        values = [
            (LAST if column is None or each.columns else column, cells)
            for column, each in zip(self.columns, answers, strict=True)
            for cells in word_columns(each).values()
        ]
        values += [(LAST, column) for each in answers for column in confidence_columns(each).values()]
        spaced = self.format.delimiter == " " and self.format.n_columns > 1
        delimiter = None if spaced else "\t" if self.format.n_columns == 1 else self.format.delimiter

        def changed(i: int, line: str) -> str:
            for column, cells in values:
                line = replaced_column(line, delimiter, column, cells[i])
            return line

        if len(values) == 1 and (between := " " if spaced else delimiter) is not None:
            column, tags = values[0]
            fast = self.kept.changed_together(
                sentence, lambda lines: replaced_last(lines, between, self.format.n_columns, column, tags)
            )
            if fast is not None:
                return fast
        return self.kept.changed(sentence, changed)

    def end(self) -> str:
        return self.kept.rest()


class KeptConllu(KeptColumns):
    """CoNLL-U: probabilities, and tags that have no column, are entries of MISC.

    Several trees of a sentence are its lines again and again, with comments that say which it is.
    """

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not isinstance(next(iter(answers_by_task(answer).values())).value, list):
            return super().write(sentence, answer)
        if not (answer.has_arcs and answer.alternatives):
            fast = self.kept.changed_together(sentence, lambda lines: self._change_lines(lines, answer))
            return self.kept.changed(sentence, self._change(answer)) if fast is None else fast
        before, block = self.kept.whole(sentence)
        analyses = answer.analyses
        return before + "".join(
            self._again(block, each, analysis_comments(i, len(analyses), each)) for i, each in enumerate(analyses, 1)
        )

    def _change_lines(self, lines: list[str], answer: Answer) -> str | None:
        """Return the lines of all words with an answer; None unless they have all cells, and MISC stays as it is."""
        if misc_entries(answer, with_tags=self.columns[0] is None):
            return None
        rows = [line.split("\t") for line in lines]
        if any(len(row) != MISC + 1 for row in rows):
            return None
        for place, values in conllu_cells(answer, self.columns).items():
            if place == MISC:
                return None  # its cell has the end of the line
            for row, value in zip(rows, values, strict=True):
                row[place] = fill_cell(place, row[place], value)
        return "".join(["\t".join(row) for row in rows])

    def _change(self, answer: Answer) -> Change:
        """Return a function that puts an answer into the lines of its words."""
        places = conllu_cells(answer, self.columns)
        entries = misc_entries(answer, with_tags=self.columns[0] is None)
        n_cells = max([*places, MISC if entries else 0]) + 1

        def changed(i: int, line: str) -> str:
            body = line.rstrip("\r\n")
            cells = body.split("\t")
            cells += ["_"] * (n_cells - len(cells))
            for place, values in places.items():
                cells[place] = fill_cell(place, cells[place], values[i])
            if entries:
                cells[MISC] = add_entries(cells[MISC], [each[i] for each in entries])
            return "\t".join(cells) + line[len(body) :]

        return changed

    def _again(self, block: Sequence[tuple[int | None, str]], answer: Answer, comments: Sequence[str]) -> str:
        change, said = self._change(answer), "".join(f"{each}\n" for each in comments)
        first = next(at for at, (_, line) in enumerate(block) if not line.startswith("#"))
        lines = [line if i is None else change(i, line) for i, line in block]
        text = "".join([*lines[:first], said, *lines[first:]]).rstrip("\r\n")
        return f"{text}\n\n"


def fill_cell(place: int, given: str, predicted: str) -> str:
    """Return a cell of CoNLL-U: what is predicted replaces what is given, but a lemma that is given stays.

    Args:
        place: Number of the column.
        given: What is there.
        predicted: What is predicted.

    Returns:
        The new text.
    """
    return given if place == LEMMA and given != "_" else predicted


def add_entries(misc: str, entries: Sequence[str]) -> str:
    """Return the column MISC with further entries, which take the place of those of the same name.

    >>> add_entries("SpaceAfter=No|TagProb=0.1", ["TagProb=0.9312", ""])
    'SpaceAfter=No|TagProb=0.9312'
    """
    if misc == "_":
        return "|".join(filter(None, entries)) or misc
    names = {each.partition("=")[0] for each in entries}
    before = [each for each in misc.split("|") if each != "_" and each.partition("=")[0] not in names]
    return "|".join([*before, *filter(None, entries)]) or "_"


@dataclass
class KeptCsv(Writer):
    """Rows of CSV with the tags of each task in its cell; new columns have names in the header."""

    kept: KeptLines
    format: CsvFormat
    columns: Sequence[int | None]
    names: Sequence[str]
    _headed: bool = False

    def write(self, sentence: Sentence, answer: Answer) -> str:
        answers = answers_by_task(answer)
        values, new = [], []
        for column, name, each in zip(self.columns, self.names, answers.values(), strict=True):
            own = {title.lower(): cells for title, cells in word_columns(each).items()} if each.columns else None
            for title, cells in (own or {name: each.value}).items():
                at = self._place(title) if own else column
                values.append((at or LAST, cells))
                new += [] if at else [title]
        for task, each in answers.items():
            for name, cells in confidence_columns(each).items():
                values.append((LAST, cells))
                new.append(f"{task}_{name}" if task else name)

        def changed(i: int, row: str) -> str:
            for column, cells in values:
                row = replaced_cell(row, self.format.delimiter or ",", column, cells[i])
            return row

        def other(line: str) -> str:
            if self._headed or is_blank(line):
                return line
            self._headed = True
            for name in new:
                line = replaced_cell(line, self.format.delimiter or ",", LAST, name)
            return line

        return self.kept.changed(sentence, changed, other)

    def _place(self, title: str) -> int | None:
        """Return the column with this name, if the file has it."""
        known = [name.lower() for name in self.format.names]
        return known.index(title) + 1 if title in known else None

    def end(self) -> str:
        return self.kept.rest()


@dataclass
class KeptRecords(Writer):
    """JSON lines with the tags or spans of each record replaced; a record may be several sentences."""

    kept: KeptLines
    reading: Reading
    scheme: str
    waiting: list[tuple[Sentence, Answer]] = field(default_factory=list)

    def write(self, sentence: Sentence, answer: Answer) -> str:
        done = self._done() if self.waiting and self.waiting[0][0].line != sentence.line else ""
        self.waiting.append((sentence, answer))
        return done

    def end(self) -> str:
        return self._done() + self.kept.rest()

    def _done(self) -> str:
        """Return the lines up to the record whose answers are all there."""
        if not self.waiting:
            return ""
        sentence = self.waiting[0][0]
        lines = self.kept.changed(
            sentence, lambda i, line: self._change_line(line, Place(sentence.file, sentence.line))
        )
        self.waiting = []
        return lines

    def _change_line(self, line: str, place: Place) -> str:
        record = parse_record(line.removeprefix("\ufeff"), *place)
        before, line, behind = pair_parts(line)
        return f"{before}{self._change_object(line, record, shape_of(record, place, self.reading))}{behind}"

    def _change_object(self, line: str, record: Record, shape: Shape) -> str:
        first = self.waiting[0][1]
        if not isinstance(first.value, list | Mapping):
            return replaced_member(line, "value", first.value)
        if isinstance(first.value, Mapping) or first.has_arcs:
            members = tree_members if first.has_arcs else whole_members
            for name, value in self._members(members, isinstance(shape, Texts)).items():
                line = replaced_member(line, name, value)
            return line
        pieces = [piece for sentence, answer in self.waiting for piece in self._pieces(sentence, answer)]
        line = shape.put_answers(line, record, [answer.value for _, answer in self.waiting], pieces)
        more = (
            self._analyses(shape.text(record))
            if isinstance(shape, Texts)
            else json_extras(*self.waiting[0], self.scheme)
        )
        for name, value in more.items():
            line = replaced_member(line, name, value)
        return line

    def _members(self, members: Callable[[Answer], dict[str, object]], of_text: bool) -> dict[str, object]:
        """Return the members of a record of words, or of a text whose sentences have them."""
        if not of_text:
            return members(self.waiting[0][1])
        sentences = [
            {"tokens": sentence.words, "offsets": sentence.offsets, **members(answer)}
            for sentence, answer in self.waiting
        ]
        return {"sentences": sentences}

    def _pieces(self, sentence: Sentence, answer: Answer) -> Iterator[LabelledPiece]:
        """Yield the labelled pieces of a text: its spans, or all words if tags are plain."""
        marked = marked_spans(sentence, answer, self.scheme)
        if self.scheme == "plain":
            sure: list[float | None] = [part.probability for part in answer.parts] or [None] * len(sentence)
            words = enumerate(zip(answer.value, sentence.offsets, sure, strict=True))
            marked = (
                [Marked(i, i + 1, tag, sentence.words[i], place, share) for i, (tag, place, share) in words]
                if sentence.offsets
                else []
            )
        for each in marked:
            more = {} if each.probability is None else {"probability": round(each.probability, 6)}
            if each.place is not None:
                yield LabelledPiece(*each.place, each.label, more)

    def _analyses(self, text: str) -> dict[str, object]:
        """Return the best analyses of each sentence of a text."""
        if not any(answer.alternatives for _, answer in self.waiting):
            return {}
        analyses = [
            [
                {
                    "probability": round(other.probability, 6),
                    "spans": [
                        {"start": start, "end": end, "label": label, "text": text[start:end]}
                        for start, end, label, _ in self._pieces(sentence, Answer(other.value, None))
                    ],
                }
                for other in answer.alternatives
            ]
            for sentence, answer in self.waiting
        ]
        return {"analyses": analyses}
