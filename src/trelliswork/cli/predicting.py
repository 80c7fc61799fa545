"""From one file to its answers: what `predict` does, and what bulk annotation does to each shard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any

from trelliswork.cli.answering import BATCH, Question, answers, noting_uncertain, noting_unknown
from trelliswork.cli.inputs import choices_of, kind_of, open_new
from trelliswork.cli.tasks import bare, words_alone
from trelliswork.cli.writing_answers import Inputs, Output, keeps, writer_for
from trelliswork.data import Choices, Sentence, json_text
from trelliswork.data.kept_lines import KeptLines
from trelliswork.data.readers import InputKind
from trelliswork.errors import TrellisworkError
from trelliswork.models.expected_counts import ExpectedCount, total_counts
from trelliswork.reading import name_of

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


def write_expected(model: Any, file: str, job: Job, target: IO[Any]) -> None:
    """Write how many parts of each label to expect in a file, with the error bar; as JSON, in each of its sentences."""
    if not model.counts_parts:
        kind = type(model).__name__
        raise TrellisworkError(
            f"--expected needs a model with an exact distribution over its answers, such as a CRF; got a {kind}"
        )
    if job.output not in (None, Output.jsonl):
        raise TrellisworkError(f"--expected writes a line for each label, or --format jsonl; got {job.output}")
    _, sentences = opened(model, file, replace(job, output=Output.pretty))  # which needs none of the lines again
    totals: list[ExpectedCount] = []
    for sentence, counts in answers(model, sentences, job.question):
        if job.output is Output.jsonl:
            target.write(json_text(replace(sentence, tags=None), expected=[each.record() for each in counts]))
        totals = total_counts([totals, counts])
    if job.output is None:
        target.writelines(f"{each} in {name_of(file)}\n" for each in totals)
