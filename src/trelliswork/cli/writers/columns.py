"""Answers in columns: CoNLL, CoNLL-U and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from trelliswork.cli.writers.base import NOTHING, Writer, answers_by_task, confidence_columns, one_line, place_columns
from trelliswork.data import Sentence
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.columns import columns_text
from trelliswork.data.raw_sentences import spaces_after
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer

MISC = CONLLU_NAMES.index("MISC")
PROBABILITIES = ("tag_probability", "span_probability")


class ConllWriter(Writer):
    """Word, the place in raw text, further columns, tag; then the probability of the tag and, in a span, of the span.

    With several analyses each is a block of its own under a comment with its probability; the probabilities of tags and
    spans are those of the first. Several tasks have a tag with its probabilities each, or blocks one after another.
    """

    def __init__(self, delimiter: str = "\t", *, places: bool = True) -> None:
        self.delimiter, self.places = delimiter, places

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not answer.tasks:
            return self._blocks(sentence, answer) if isinstance(answer.value, list) else one_line(sentence, answer)
        if any(each.alternatives for each in answer.tasks.values()):
            return "".join(self._blocks(sentence, each, f"{task}, ") for task, each in answer.tasks.items())
        columns: list[Sequence[str]] = [sentence.words, *self._places(sentence)]
        for each in answer.tasks.values():
            columns += [each.value, *confidence_columns(each)]
        return columns_text(columns, sentence, self.delimiter)

    def _places(self, sentence: Sentence) -> list[Sequence[str]]:
        return place_columns(sentence) if self.places else []

    def _blocks(self, sentence: Sentence, answer: Answer, title: str = "") -> str:
        sure = confidence_columns(answer)
        columns = [sentence.words, *self._places(sentence), *sentence.features]
        if not answer.alternatives:
            return columns_text([*columns, answer.value, *sure], sentence, self.delimiter)
        blocks, n, unsure = [], len(answer.alternatives), [(NOTHING,) * len(column) for column in sure]
        for i, each in enumerate(answer.alternatives, 1):
            heading = f"# {title}analysis {i} of {n}: probability {each.probability:.6f}\n"
            own = [*columns, each.value, *(sure if i == 1 else unsure)]
            blocks.append(heading + columns_text(own, sentence, self.delimiter))
        return "".join(blocks)


class ConlluWriter(Writer):
    """Ten columns, with the tags in `column`, or in MISC as Tag=... if it is None; `# text` where that is known."""

    def __init__(self, column: int | None) -> None:
        self.column, self.number = column, 0

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not answer.tasks and not isinstance(answer.value, list):
            raise TrellisworkError("the model gives no tags for CoNLL-U; add --format jsonl")
        return self.sentence(sentence, answer)

    def sentence(self, sentence: Sentence, answer: Answer | None) -> str:
        """A sentence with its answer, or the tokens alone."""
        self.number += 1
        written = " ".join(sentence.text.split()) or " ".join(sentence.words)
        lines = [f"# sent_id = {self.number}", f"# text = {written}"]
        closed = [*(not each for each in spaces_after(sentence)), False] if sentence.offsets else []
        opens = {first: (last, form) for first, last, form in sentence.multiword}
        inside = {i for first, last, _ in sentence.multiword for i in range(first, last)}
        entries = misc_entries(answer, with_tags=self.column is None) if answer is not None else []
        for i, word in enumerate(sentence.words):
            if i in opens:
                last, form = opens[i]
                misc = "SpaceAfter=No" if closed[last - 1] else NOTHING
                lines.append("\t".join([f"{i + 1}-{last}", form, *[NOTHING] * 7, misc]))
            row = [str(i + 1), word, *[NOTHING] * 8]
            if answer is not None and self.column is not None:
                row[self.column - 1] = answer.value[i]
            own = [each[i] for each in entries if each[i]]
            own += ["SpaceAfter=No"] if closed and closed[i] and i not in inside else []
            row[MISC] = "|".join(own) or NOTHING
            lines.append("\t".join(row))
        return "\n".join(lines) + "\n\n"


def misc_entries(answer: Answer, *, with_tags: bool) -> list[list[str]]:
    """The entries of MISC of each word: its tag, and the probabilities of tag and span."""
    found: list[list[str]] = []
    for task, each in answers_by_task(answer).items():
        title = task.capitalize()
        named = [(f"{title}Tag", each.value)] if with_tags else []
        named += list(zip((f"{title}TagProb", f"{title}SpanProb"), confidence_columns(each), strict=False))
        found += [["" if value == NOTHING else f"{name}={value}" for value in values] for name, values in named]
    return found


class CsvWriter(Writer):
    """A header, then a row for each token with the number of its sentence."""

    def __init__(self, names: Sequence[str] = (), *, places: bool = True) -> None:
        self.names, self.number, self.places = names, 0, places

    def write(self, sentence: Sentence, answer: Answer) -> str:
        columns = self._columns(sentence, answer)
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        if self.number == 0:
            rows.writerow(["sentence", *columns])
        self.number += 1
        rows.writerows([self.number, *row] for row in zip(*columns.values(), strict=True))
        return out.getvalue()

    def _columns(self, sentence: Sentence, answer: Answer) -> dict[str, Sequence[str]]:
        columns: dict[str, Sequence[str]] = {"word": sentence.words}
        places = place_columns(sentence) if self.places else []
        columns |= dict(zip(("start", "end"), places, strict=False))
        columns |= {self._name(i): column for i, column in enumerate(sentence.features)}
        for task, each in answers_by_task(answer).items():
            before = f"{task}_" if task else ""
            columns[task or "tag"] = each.value if isinstance(each.value, list) else [str(each.value)] * len(sentence)
            columns |= {
                before + name: column for name, column in zip(PROBABILITIES, confidence_columns(each), strict=False)
            }
        return columns

    def _name(self, i: int) -> str:
        return self.names[i] if i < len(self.names) else f"feature_{i + 1}"
