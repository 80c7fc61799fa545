"""`trelliswork predict`: tag new text, with confidences and alternatives."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Annotated, Any

import typer
from rich.console import Console

from trelliswork.cli.answering import BATCH, Question, answers
from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, say, text_in_columns
from trelliswork.cli.kernels import prepare_kernels
from trelliswork.cli.options import Features, ModelFolder, Threads, Threshold, layout_in
from trelliswork.cli.panels import TO_READ, with_options
from trelliswork.cli.pins import parse_pins
from trelliswork.cli.tasks import bare, load_reader, words_alone
from trelliswork.cli.writers import Writer, conll_writer, jsonl_writer, pretty_writer
from trelliswork.data import ColumnFormat, atomic_write
from trelliswork.data.readers import open_untagged
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Model
from trelliswork.runtime.threads import use_threads


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


@with_options(TO_READ)
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
    threshold: Threshold = None,
    threads: Threads = 1,
    features: Features = None,
    **columns: Any,
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
    use_threads(threads)
    loaded = load_reader(model, given_function(features))
    several = any(loaded.heads)
    kind = kind_of(file, "text" if text else read_as.value if read_as is not None else None, loaded)
    question = Question(confidence, top_k, _pins(pin, loaded), threshold)
    choices = choices_of(loaded, layout_in(columns), kind)
    format_read, sentences = open_untagged(file, kind, words_alone(choices) if several else choices)
    if format_read is not None and read_as is None and (doubt := text_in_columns(format_read, loaded)):
        say(doubt)
    prepare_kernels(loaded)
    if top_k or pin or threshold is not None:
        prepare_kernels()  # these need chains, whatever the model
    batch = 1 if file == "-" and sys.stdin.isatty() else BATCH  # answer line by line to someone who types
    with _target(out) as target:
        write = _writer(format, format_read, loaded, target)
        for found in answers(loaded, map(bare, sentences) if several else sentences, question, batch=batch):
            target.write(write(*found))
            if batch == 1:
                target.flush()


def _pins(texts: list[str] | None, model: Any) -> Any:
    if not texts:
        return ()
    if any(model.heads):
        raise TrellisworkError("--pin is for models of one task, and this one has several; leave it out")
    return parse_pins(texts, model.labels)


@contextlib.contextmanager
def _target(out: str | None) -> Iterator[IO[Any]]:
    if out is None or out == "-":
        yield sys.stdout
    else:
        with atomic_write(out) as file:
            yield file


def _writer(format: Output, columns: ColumnFormat | None, model: Model, target: IO[Any]) -> Writer:
    """What turns answers into text."""
    if format is Output.jsonl:
        return jsonl_writer()
    if format is Output.conll:
        spaced = columns is not None and columns.n_columns > 1 and columns.delimiter == " "
        return conll_writer(" " if spaced else "\t")
    console = Console(file=target, soft_wrap=True, highlight=False)

    def render(text: Any) -> str:
        with console.capture() as captured:
            console.print(text, soft_wrap=True)
        return captured.get()

    return pretty_writer({name: head.scheme for name, head in model.heads.items()}, render)
