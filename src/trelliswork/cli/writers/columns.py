"""Answers in columns: CoNLL, CoNLL-U and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

from trelliswork.cli.writers.base import (
    NOTHING,
    Writer,
    answers_by_task,
    confidence_columns,
    one_line,
    place_columns,
    word_columns,
)
from trelliswork.data import FileFormat, Sentence
from trelliswork.data.brackets import bracket_text
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.columns import columns_text
from trelliswork.data.raw_sentences import spaces_after
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Alternative, Answer

MISC, LEMMA = CONLLU_NAMES.index("MISC"), CONLLU_NAMES.index("LEMMA")


class ConllWriter(Writer):
    """Word, the place in raw text, further columns, tag; then the probability of the tag and, in a span, of the span.

    Of a tree, head and label are in the place of the tag, and then the probability of both.

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
            columns += [each.value, *confidence_columns(each).values()]
        return columns_text(columns, sentence, self.delimiter)

    def _places(self, sentence: Sentence) -> list[Sequence[str]]:
        return place_columns(sentence) if self.places else []

    def _blocks(self, sentence: Sentence, answer: Answer, title: str = "") -> str:
        sure = list(confidence_columns(answer).values())
        columns = [sentence.words, *self._places(sentence), *sentence.features]
        if not answer.alternatives:
            return columns_text([*columns, *word_columns(answer).values(), *sure], sentence, self.delimiter)
        blocks, n, unsure = [], len(answer.alternatives), [(NOTHING,) * len(column) for column in sure]
        values = [word_columns(each).values() for each in answer.analyses]
        for i, each in enumerate(answer.alternatives, 1):
            heading = f"# {title}analysis {i} of {n}: probability {each.probability:.6f}\n"
            own = [*columns, *values[i - 1], *(sure if i == 1 else unsure)]
            blocks.append(heading + columns_text(own, sentence, self.delimiter))
        return "".join(blocks)


class ConlluWriter(Writer):
    """Ten columns, with the tags in `column`, or in MISC as Tag=... if it is None; `# text` where that is known.

    Answers that name columns, such as trees, are written into these; several trees are sentences one after another.
    """

    def __init__(self, column: int | None) -> None:
        self.column, self.number = column, 0

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not answer.tasks and not isinstance(answer.value, list):
            raise TrellisworkError("the model gives no tags for CoNLL-U; add --format jsonl")
        self.number += 1
        analyses = answer.analyses if answer.has_arcs else []
        blocks = [
            self._block(sentence, each, analysis_comments(i, len(analyses), each)) for i, each in enumerate(analyses, 1)
        ]
        return "".join(blocks) or self._block(sentence, answer)

    def sentence(self, sentence: Sentence) -> str:
        """Return the tokens alone."""
        self.number += 1
        return self._block(sentence, None)

    def _block(self, sentence: Sentence, answer: Answer | None, comments: Sequence[str] = ()) -> str:
        written = " ".join(sentence.text.split()) or " ".join(sentence.words)
        lines = [f"# sent_id = {self.number}", f"# text = {written}", *comments]
        closed = [*(not each for each in spaces_after(sentence)), False] if sentence.offsets else []
        opens = {first: (last, form) for first, last, form in sentence.multiword}
        inside = {i for first, last, _ in sentence.multiword for i in range(first, last)}
        entries = misc_entries(answer, with_tags=self.column is None) if answer is not None else []
        cells = {} if answer is None else conllu_cells(answer, [self.column])
        for i, word in enumerate(sentence.words):
            if i in opens:
                last, form = opens[i]
                misc = "SpaceAfter=No" if closed[last - 1] else NOTHING
                lines.append("\t".join([f"{i + 1}-{last}", form, *[NOTHING] * 7, misc]))
            row = [str(i + 1), word, *[NOTHING] * 8]
            for place, values in cells.items():
                row[place] = values[i]
            own = [each[i] for each in entries if each[i]]
            own += ["SpaceAfter=No"] if closed and closed[i] and i not in inside else []
            row[MISC] = "|".join(own) or NOTHING
            lines.append("\t".join(row))
        return "\n".join(lines) + "\n\n"


def conllu_cells(answer: Answer, columns: Sequence[int | None]) -> dict[int, Sequence[str]]:
    """Return the values to write by the cell of each word's line, counted from 0; `columns` are those of the tags."""
    lemmas = {LEMMA: answer.lemmas} if answer.lemmas else {}
    if answer.columns:
        return lemmas | {CONLLU_NAMES.index(name): values for name, values in answer.columns.items()}
    answers = answers_by_task(answer).values()
    return lemmas | {c - 1: each.value for c, each in zip(columns, answers, strict=False) if c is not None}


def analysis_comments(i: int, n: int, analysis: Answer) -> list[str]:
    """Return the comments of one of several trees of a sentence.

    Args:
        i: Number of the tree, counted from 1.
        n: Number of trees.
        analysis: The tree.

    Returns:
        Lines of CoNLL-U.
    """
    return [f"# analysis = {i} of {n}", f"# probability = {analysis.probability:.6f}"]


def misc_entries(answer: Answer, *, with_tags: bool) -> list[list[str]]:
    """Return the entries of MISC of each word: its tag unless that has a column, and the probabilities.

    TagProb and SpanProb are those of tag and span; HeadProb and ArcProb those of a head and of head and label together.
    """
    entries: list[list[str]] = []
    for task, each in answers_by_task(answer).items():
        title = task.capitalize()
        named = [(f"{title}Tag", each.value)] if with_tags and not each.columns else []
        sure = confidence_columns(each)
        named += [(f"{title}{name.partition('_')[0].capitalize()}Prob", values) for name, values in sure.items()]
        entries += [["" if value == NOTHING else f"{name}={value}" for value in values] for name, values in named]
    return entries


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
            if each.columns:
                columns |= {before + name.lower(): values for name, values in word_columns(each).items()}
            else:
                is_list = isinstance(each.value, list)
                columns[task or "tag"] = each.value if is_list else [str(each.value)] * len(sentence)
            columns |= {before + name: column for name, column in confidence_columns(each).items()}
        return columns

    def _name(self, i: int) -> str:
        return self.names[i] if i < len(self.names) else f"feature_{i + 1}"


# Tags in a format that another package brings.


class ForeignWriter(Writer):
    """Sentences with the tags of the answers, as the format writes them."""

    def __init__(self, name: str, format: FileFormat) -> None:
        self.name, self.format = name, format

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if answer.parts or answer.alternatives or answer.columns or not isinstance(answer.value, list):
            raise TrellisworkError(
                f"the format {self.name} holds one tag for each word and no more; add --format jsonl"
            )
        return self.format.text(replace(sentence, tags=tuple(answer.value))) or ""


# Answers of transducers as TSV: the source, the target and its probability; a line for each of the best targets.


class PairWriter(Writer):
    """A line for each source; with alternatives one for each of them. A lexicon has no probabilities."""

    def __init__(self, *, probabilities: bool = True) -> None:
        self.probabilities = probabilities

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not isinstance(answer.value, str):
            raise TrellisworkError(
                "--format tsv is for models of pairs of strings; leave it out, or add --format conll"
            )
        source = (sentence.text or "".join(sentence.words)).strip()
        targets: Sequence[Answer | Alternative] = answer.alternatives or [answer]
        shown = ((each.value, each.probability if self.probabilities else None) for each in targets)
        return "".join(_line(source, target, probability) for target, probability in shown)


def _line(source: str, target: str, probability: float | None) -> str:
    known = "" if probability is None else f"\t{probability:.6f}"
    return f"{source}\t{target}{known}\n"


class BracketWriter(Writer):
    """A line for each tree; several trees of a sentence stand one below the other, with an empty line behind them."""

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if not sentence.words:
            return ""
        if not answer.has_brackets:
            raise TrellisworkError("the model gives no trees to write in brackets; add --format conll or jsonl")
        if answer.parts:
            raise TrellisworkError(
                "--confidence cannot be written in brackets; add --format jsonl, pretty or html, or leave it out"
            )
        trees = [each.value for each in answer.alternatives] or [answer.value]
        return "".join(f"{bracket_text(tree)}\n" for tree in trees) + ("\n" if answer.alternatives else "")
