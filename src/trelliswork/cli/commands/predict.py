"""`trelliswork predict`: tag new text, with confidences and alternatives."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import IO, Annotated, Any

import torch
import typer
from rich.console import Console

from trelliswork.cli.answers import BATCH, Question, answers_of_tasks
from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, open_untagged, say, text_in_columns
from trelliswork.cli.kernels import prepare_kernels
from trelliswork.cli.options import (
    Delimiter,
    FeatureColumns,
    Features,
    ModelFolder,
    Threads,
    Threshold,
    WordColumn,
    parse_columns,
    parse_delimiter,
)
from trelliswork.cli.pins import parse_pins
from trelliswork.cli.task_writers import TasksWriter, conll_tasks_writer, jsonl_tasks_writer, pretty_tasks_writer
from trelliswork.cli.tasks import load_reader, words_alone
from trelliswork.cli.writers import Writer, conll_writer, jsonl_writer, pretty_writer
from trelliswork.data import Choices, ColumnFormat, atomic_write
from trelliswork.errors import TrellisworkError
from trelliswork.models import SentenceTagger


class Output(StrEnum):
    """What to write."""

    conll = "conll"
    jsonl = "jsonl"
    pretty = "pretty"


class Input(StrEnum):
    """What to read."""

    conll = "conll"
    jsonl = "jsonl"
    csv = "csv"
    crfsuite = "crfsuite"
    text = "text"


def predict(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to tag, or - for standard input.")],
    format: Annotated[Output, typer.Option(help="What to write.")] = Output.conll,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add exact probabilities of tags and spans.")
    ] = False,
    top_k: Annotated[int, typer.Option(metavar="K", min=0, help="List the K best analyses.", show_default=False)] = 0,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN=TAG",
            help="A tag that is known: 3=B-PER for token 3 of every sentence, 2:3=B-PER for that of sentence 2.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write here instead of standard output.")] = None,
    read_as: Annotated[
        Input | None, typer.Option("--from", help="What FILE is.", show_default="by its suffix, conll for others")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="FILE is plain text: one sentence a line (--from text).")
    ] = False,
    delimiter: Delimiter = None,
    word_column: WordColumn = None,
    feature_columns: FeatureColumns = None,
    threshold: Threshold = None,
    threads: Threads = 1,
    features: Features = None,
) -> None:
    """Tag new text, with confidences and alternatives if wanted.

    FILE has the columns that the model was trained on (the tag column may
    be missing), or is CSV with a header, or JSON lines, or with --text holds
    one sentence a line, white space between tokens. A model over attributes
    (see convert) reads CRFsuite's data files. It is read as a stream. A model
    of several tasks writes the tags of each, and for --top-k one after another.

    --confidence adds the probability of each tag and of the span it is in,
    --top-k lists the best analyses with theirs, --pin decodes again around
    tags that are known. All probabilities are exact. --threshold 0.2 also
    finds spans that are less likely than not, which raises F1 where many are
    missed. DIR may hold several models, as train --seeds leaves them: they
    answer together.

    \b
    Examples:
      trelliswork predict ner new.conll --confidence > tagged.conll
      echo "Jordan visited Paris ." > new.txt
      trelliswork predict ner new.txt --text --format pretty --top-k 3
      trelliswork predict ner new.txt --text --pin 1=B-LOC
    """
    torch.set_num_threads(threads)
    tagger = load_reader(model, given_function(features))
    heads = tagger.heads
    if pin and any(heads):
        raise TrellisworkError("--pin is for models of one task, and this one has several; leave it out")
    given = Choices(parse_delimiter(delimiter), word_column, None, parse_columns(feature_columns))
    kind = kind_of(file, "text" if text else read_as.value if read_as is not None else None, tagger)
    pins = parse_pins(pin, next(iter(heads.values())).labels) if pin else ()
    question = Question(confidence, top_k, pins, threshold)
    choices = choices_of(tagger, given, kind)
    columns, sentences = open_untagged(file, kind, words_alone(choices) if any(heads) else choices)
    if columns is not None and read_as is None and (doubt := text_in_columns(columns, tagger)):
        say(doubt)
    prepare_kernels(tagger)
    batch = 1 if file == "-" and sys.stdin.isatty() else BATCH  # answer line by line to someone who types
    with _target(out) as target:
        write = _writer(format, columns, heads, target)
        for found in answers_of_tasks(heads, sentences, question, batch=batch):
            target.write(write(found))
            if batch == 1:
                target.flush()


@contextlib.contextmanager
def _target(out: str | None) -> Iterator[IO[Any]]:
    if out is None or out == "-":
        yield sys.stdout
    else:
        with atomic_write(out) as file:
            yield file


def _writer(
    format: Output, columns: ColumnFormat | None, heads: Mapping[str, SentenceTagger], target: IO[Any]
) -> TasksWriter:
    """What turns the answers of all tasks about a sentence into text."""
    tasks = [name for name in heads if name]
    if format is Output.jsonl:
        return jsonl_tasks_writer(tasks) if tasks else _of_one(jsonl_writer())
    if format is Output.conll:
        spaced = columns is not None and columns.n_columns > 1 and columns.delimiter == " "
        delimiter = " " if spaced else "\t"
        return conll_tasks_writer(tasks, delimiter) if tasks else _of_one(conll_writer(delimiter))
    writers = [_pretty(head.labels.data_scheme, target) for head in heads.values()]
    return pretty_tasks_writer(tasks, writers) if tasks else _of_one(writers[0])


def _of_one(write: Writer) -> TasksWriter:
    return lambda answers: write(answers[0])


def _pretty(scheme: str, target: IO[Any]) -> Writer:
    console = Console(file=target, soft_wrap=True, highlight=False)

    def render(text: Any) -> str:
        with console.capture() as captured:
            console.print(text, soft_wrap=True)
        return captured.get()

    return pretty_writer(scheme, render)
