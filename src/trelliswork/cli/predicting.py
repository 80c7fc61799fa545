"""From one file to its answers: what `predict` does, and what bulk annotation does to each shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

from trelliswork.cli.answering import BATCH, Question, answers
from trelliswork.cli.inputs import choices_of, kind_of, open_new
from trelliswork.cli.messages import say
from trelliswork.cli.tasks import bare, words_alone
from trelliswork.cli.writing_answers import Inputs, Output, keeps, writer_for
from trelliswork.data import Choices, Sentence
from trelliswork.data.kept_lines import KeptLines
from trelliswork.data.readers import InputKind
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer

Rename = Callable[[Sentence], Sentence]


@dataclass(frozen=True)
class Job:
    """How to read files, what to find out about each sentence, and what to write."""

    question: Question
    layout: Choices
    read_as: str | None = None  # what the files are; None goes by their names
    output: Output | None = None  # None is the format that is read
    by_line: bool = False  # of plain text: each line is a separate text
    unit: str | None = None  # of character offsets in plain text

    def how(self, kind: InputKind) -> dict[str, Any]:
        """The options of plain text."""
        if kind == "text":
            return {"by_line": self.by_line, "unit": self.unit or "code-points"}
        if self.unit is not None:
            raise TrellisworkError("--offsets is for plain text, whose words have places in the file; add --text")
        return {}


def opened(model: Any, file: str, job: Job) -> tuple[Inputs, Any]:
    """What is known about a file, and its sentences, which are read as they are asked for."""
    kind = kind_of(file, job.read_as, model)
    layout = replace(job.layout, are_columns=job.read_as is not None)
    choices, several = choices_of(model, layout, kind), any(model.heads)
    inputs = Inputs(file, kind, choices)
    if keeps(kind, job.output, job.question.top_k, model):
        inputs.kept = KeptLines(quoted=kind == "csv")
    keep = None if inputs.kept is None else inputs.kept.keep
    columns = words_alone(choices) if several else choices
    inputs.format, sentences = open_new(file, kind, columns, keep, **job.how(kind))
    return inputs, map(bare, sentences) if several else sentences


def write_answers(
    model: Any, file: str, job: Job, target: IO[Any], *, batch: int = BATCH, rename: Rename | None = None
) -> int:
    """Answer all sentences of a file; how many there were. Notes about a copy are about the file that `rename` says."""
    inputs, sentences = opened(model, file, job)
    if rename is not None and inputs.kept is None:  # lines that are kept have the places of the copy
        sentences = map(rename, sentences)
    writer, n = writer_for(job.output, inputs, model, job.question.top_k, target), 0
    target.write(writer.begin())
    found_all = answers(model, noting_unknown(model, sentences), job.question, batch=batch)
    for found in noting_uncertain(model, found_all):
        target.write(writer.write(*found))
        n += 1
        if batch == 1:
            target.flush()
    target.write(writer.end())
    return n


# What is worth knowing about new sources: symbols that a transducer has never seen, and searches that it gave up.


def noting_unknown(model: Any, pairs: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sources of a transducer as they are; after the last, a line about symbols that it does not know."""
    if model.learns_from != "pairs":
        yield from pairs
        return
    known: dict[str, bool] = {}
    unknown: Counter[str] = Counter()
    n_sources, n_affected, first = 0, 0, ""
    for pair in pairs:
        n_sources += 1
        strange = [word for word in set(pair.words) if not _looked_up(word, model, known)]
        if strange:
            unknown.update(strange)
            n_affected += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair
    if unknown:
        symbols = model.unknown_text([symbol for symbol, _ in unknown.most_common()])
        say(f"note: {n_affected:,} of {n_sources:,} sources have symbols that the model has never seen, "
            f"the first in {first}: {symbols}")  # fmt: skip


def _looked_up(word: str, model: Any, known: dict[str, bool]) -> bool:
    """Whether the model knows a symbol, asked once for each; one that cannot say knows all."""
    if word not in known:
        known[word] = model.knows(word) is not False
    return known[word]


def noting_uncertain(model: Any, answers: Iterable[tuple[Sentence, Answer]]) -> Iterator[tuple[Sentence, Answer]]:
    """The answers as they are; after the last, a line about those that may not be the best.

    Models that search with a beam anyway are never certain, and nothing is said.
    """
    total, uncertain, first = 0, 0, ""
    for pair, answer in answers:
        total += 1
        if model.search == "exact" and not answer.certain:
            uncertain += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair, answer
    if uncertain:
        say(f"note: {uncertain:,} of {total:,} answers are the best that was found, and others may be more probable: "
            f"the search was given up, first in {first}")  # fmt: skip
