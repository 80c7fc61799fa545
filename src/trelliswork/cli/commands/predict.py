"""`trelliswork predict`: tag new text, with confidences and alternatives."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from trelliswork.cli.answering import BATCH, Job, Pin, Question, input_of, parse_pins, write_answers, write_expected
from trelliswork.cli.bulk.local import annotate_all, annotate_locally
from trelliswork.cli.bulk.shards import is_bulk, shards_of
from trelliswork.cli.early import check_paths
from trelliswork.cli.inputs import announce_compiling, given_function, load_reader
from trelliswork.cli.options import (
    TO_READ,
    Device,
    DeviceName,
    Features,
    ModelFolder,
    Threads,
    Threshold,
    layout_in,
    panel_of,
    with_options,
)
from trelliswork.cli.writers import ConlluWriter
from trelliswork.cli.writers.base import Target
from trelliswork.cli.writing_answers import STRINGS, Output, is_binary, output_of
from trelliswork.data import json_text
from trelliswork.data.readers import foreign_formats
from trelliswork.data.recordings import RECORDINGS
from trelliswork.data.settings import settings_given
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.models.language.config import PLAIN_TEXT, WORD_PAIRS, GenerationSettings
from trelliswork.models.recognizers.config import DecodingSettings
from trelliswork.runtime.threads import use_threads
from trelliswork.text import read_text
from trelliswork.writing import write_packed

if TYPE_CHECKING:
    from trelliswork.models.recognizers.ctc import CTCRecognizer

LANGUAGE = {
    PLAIN_TEXT: "trelliswork.cli.language:answer_lines", WORD_PAIRS: "trelliswork.cli.language:vector_answers"
}  # fmt: skip
RAY = "trelliswork.cli.bulk.ray_engine:annotate_by_ray"


INPUTS = (
    "conll", "jsonl", "csv", "parquet", "crfsuite", "brackets", "text", "pretokenised", *foreign_formats(),
)  # fmt: skip


def _input(name: str) -> str:
    """Check the name of an input format, one of `INPUTS`."""
    if name not in INPUTS:
        raise typer.BadParameter(f"expected one of {', '.join(INPUTS)}, got {name!r}")
    return name


class Unit(StrEnum):
    """Unit in which places in a text are counted."""

    code_points = "code-points"
    utf_16 = "utf-16"
    bytes = "bytes"


class Engine(StrEnum):
    """Engine that annotates many files."""

    local = "local"
    ray = "ray"


@with_options(TO_READ, panel_of(GenerationSettings), panel_of(DecodingSettings))
def predict(
    model: ModelFolder,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Input file, - for standard input; many files, or a quoted pattern."),
    ],
    format: Annotated[
        Output | None,
        typer.Option(help="Output format.", show_default="by the suffix of --out, else as FILE; conll for text"),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add the exact probability of each tag, span, arc or symbol.")
    ] = False,
    top_k: Annotated[int, typer.Option(metavar="K", min=0, help="Output the K best analyses.", show_default=False)] = 0,
    lexicon: Annotated[
        bool,
        typer.Option(
            "--lexicon",
            help="Write a dictionary with one line per entry: source, tab, target (same as --format lexicon).",
        ),
    ] = False,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN=TAG",
            help="Fix a tag: 3=B-PER for token 3 of every sentence, 2:3=B-PER for token 3 of sentence 2. "
            "For dependency parsers a head, a head with a label, or a label: 3=2, 3=2:nsubj, 3=_:nsubj; 0 is the root. "
            "For constituency parsers a bracket by its first and last word: 1=3, 1=3:NP, 2:1=3:NP. "
            "For transducers the target of a source span: 1=K, 2-3=F, 4=(nothing).",
        ),
    ] = None,
    expected: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Print how many spans (tags, arcs, constituents) with this label to expect in FILE, with the exact "
            "standard deviation. Repeat it for several labels; --format jsonl counts in each sentence.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Output file (packed if it ends with .gz), or directory (many files). Defaults to standard output.",
        ),
    ] = None,
    read_as: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar=f"[{'|'.join(INPUTS)}]",
            parser=_input,
            help="Format of FILE.",
            show_default="by its suffix, else conll",
        ),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Read FILE as plain text (same as --from text).")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Plain text: treat each line as a separate text.")] = False,
    pretokenised: Annotated[
        bool, typer.Option("--pretokenised", help="Plain text: one sentence per line, tokens separated by white space.")
    ] = False,
    offsets: Annotated[
        Unit | None,
        typer.Option(help="Unit of character offsets in plain text.", show_default=Unit.code_points.value),
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Word vectors: write each word of FILE once, with its vector.")
    ] = False,
    engine: Annotated[
        Engine | None,
        typer.Option(help="Many files: this machine, or a Ray cluster (extra \\[ray]).", show_default="local"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Many files: number of processes.", show_default="one per core")
    ] = None,
    threshold: Threshold = None,
    threads: Threads = 1,
    device: Device = DeviceName.auto,
    features: Features = None,
    **columns: object,
) -> None:
    """Predict tags, trees or strings, optionally with confidences and alternatives.

    FILE has the same columns as the training data (the tag column is
    optional), or is CSV with a header, JSON lines or a JSON array. It is
    written back byte for byte with only the predictions replaced or added,
    unless --format or the suffix of --out asks for another format. Rows of
    Parquet (extra \\[arrow]) are read like JSON records and written with all
    their columns and those of the answers; see docs/bulk.md. With
    --text, FILE is plain text: the model's tokeniser, or rules, find
    sentences and words, and the output has character offsets. A blank line
    ends a paragraph; other line breaks are white space. Converted CRFsuite
    models read CRFsuite data files. Input is processed as a stream.

    --confidence adds exact probabilities: of each tag and span (TagProb and
    SpanProb in CoNLL-U), of each head and arc (HeadProb and ArcProb), or of
    each symbol. --top-k outputs the K best analyses with their
    probabilities. --pin fixes parts of the answer; everything else is
    decoded again around them. --threshold 0.2 also reports spans that are
    less likely than not, which helps recall. If DIR contains several models
    (train --seeds), they predict as an ensemble.

    --expected PER prints "12.3 +- 1.1 PER in new.conll": the number of PER
    spans averaged over all analyses by their probability, and the standard
    deviation of that number, both exact. Counting the best tags instead
    counts unlikely spans fully and likely alternatives not at all.

    Parsers write CoNLL-U or brackets; pretty and html draw the trees.
    Transducers read one source per line, or a column of a table, and write
    source, target and probability separated by tabs; --lexicon omits the
    probabilities, as in a pronunciation dictionary. Tokenisers write tokens.
    Language models write the log probability of each token and sentence, or
    with --sample, --beam or --constraint text. Word vectors write the
    nearest words of each word of FILE, or its vector (--vectors).

    Many files: name them all or quote a pattern, and give a directory as
    --out. Each file is written under its own name once it is complete; run
    the same command again to continue after an interruption. Records that
    cannot be read are set aside in DIR/quarantine with the reason, and the
    job goes on.

    \b
    Examples:
      trelliswork predict ner new.conll --confidence > tagged.conll
      echo "Jordan visited Paris." > new.txt
      trelliswork predict ner new.txt --text --format pretty --top-k 3
      trelliswork predict ner new.txt --text --pin 1=B-LOC
      trelliswork predict ner new.txt --text --confidence --out new.html
      trelliswork predict ner new.txt --text --offsets utf-16 --out new.jsonl
      trelliswork predict parser new.txt --text --confidence > new.conllu
      trelliswork predict parser new.conllu --pin 3=2:nsubj --format pretty
      trelliswork predict pronounce words.txt --top-k 3
      trelliswork predict pronounce --lexicon words.txt > words.dict
      trelliswork predict ner new.conll --expected PER --expected LOC
      trelliswork predict ner in/*.jsonl.gz --out annotated/ --workers 8
      trelliswork predict lm new.txt --score
      echo "the market" | trelliswork predict lm - --sample 5 --nucleus 0.9
      trelliswork predict lm - --constraint "the (cat|dog) .*" --sample 5
    """
    use_threads(threads)
    bulk, file = is_bulk(files, out), files[0]
    if bulk:
        shards_of(files, out, format)  # whatever is wrong with them is said before a model is loaded
        device = device if engine is Engine.ray else _shared_device(device)
    else:
        check_paths(read=[file], write=[out])
    loaded = _decoding(load_reader(model, given_function(features), device), columns, engine)
    kind, typed = _read_as(read_as, text, lines, pretokenised), file == "-" and sys.stdin.isatty()
    layout, wanted = layout_in(columns), _format(format, lexicon, loaded)
    given = None if bulk else input_of(loaded, file, layout, kind)
    output = wanted if given is None else output_of(wanted, out, file, given.kind)
    question = Question(confidence, top_k, _pins(pin, loaded), threshold, expected or ())
    unit = None if offsets is None else offsets.value
    job = Job(question, layout, kind, output, lines or typed, unit)
    announce_compiling()
    if expected and bulk:
        raise TrellisworkError("--expected counts in one FILE, got several; run it for each")
    if vectors and loaded.learns_from != WORD_PAIRS:
        raise TrellisworkError(f"--vectors is for word vectors, got a {type(loaded).__name__}; leave it out")
    if loaded.learns_from in LANGUAGE and not expected:
        if bulk or pin or threshold is not None:
            raise TrellisworkError("a language model reads one FILE, without --pin and --threshold; leave them out")
        as_json = format is Output.jsonl or str(out).endswith(".jsonl")
        asked = {**columns, "top_k": top_k, "confidence": confidence, "json": as_json, "vectors": vectors}
        with _target(out) as target:
            target.writelines(f"{line}\n" for line in named(LANGUAGE[loaded.learns_from])(loaded, file, asked))
    elif loaded.reads == "text" and not expected:
        _refuse_bulk_options(engine, workers)
        if bulk:
            raise TrellisworkError(
                f"expected one FILE and a file as --out: {model} is a tokeniser; give them one by one"
            )
        _write_tokens(file, loaded, out, job)
    elif given is None:
        shards = shards_of(files, out, output)
        n_workers = workers or os.cpu_count() or 1
        by_ray = partial(named(RAY), folder=model, features=features) if engine is Engine.ray else None
        answer = by_ray or partial(annotate_locally, model=loaded)
        annotate_all(shards, Path(str(out)), partial(answer, job=job, n_workers=n_workers))
    else:
        _refuse_bulk_options(engine, workers)
        with _target(out, binary=not expected and is_binary(output, given.kind)) as target:
            if expected:
                write_expected(loaded, given, job, target)
            else:  # answers line by line to someone who types
                write_answers(loaded, given, job, target, batch=1 if typed else BATCH)


def _decoding(model: Model, options: Mapping[str, object], engine: Engine | None) -> Model:
    """Return a recognizer that finds strings as the options say; other models have no such options."""
    given = settings_given(options, DecodingSettings)
    if model.learns_from == RECORDINGS:
        if engine is Engine.ray:
            raise TrellisworkError("--engine ray is not for recognizers; leave it out")
        recognizer = cast("CTCRecognizer", model)
        return recognizer.decoded_by(DecodingSettings(**given), cast(int, options.get("beam") or 0))
    defaults = DecodingSettings()
    for name, value in given.items():
        if value != getattr(defaults, name):
            raise TrellisworkError(
                f"--{name.replace('_', '-')} is for recognizers, got a {type(model).__name__}; leave it out"
            )
    return model


def _shared_device(device: DeviceName) -> DeviceName:
    """Return the device of processes that share the memory of a model."""
    if device not in (DeviceName.auto, DeviceName.cpu):
        problem = f"--device {device}: processes that share a model in memory compute on the CPU"
        raise TrellisworkError(f"{problem}; leave it out, give one file, or --engine ray")
    return DeviceName.cpu


def _refuse_bulk_options(engine: Engine | None, workers: int | None) -> None:
    for option, given in (("--engine", engine), ("--workers", workers)):
        if given is not None:
            raise TrellisworkError(f"{option} is for many files; give a pattern such as 'in/*.jsonl', or leave it out")


def _format(given: Output | None, lexicon: bool, model: Model) -> Output | None:
    """Return the output format, as far as the options say it."""
    wanted = Output.lexicon if lexicon else given
    if wanted is None and model.learns_from == RECORDINGS:
        return Output.tsv
    if lexicon and given not in (None, Output.lexicon):
        raise TrellisworkError(f"--lexicon and --format {given} are two formats; leave one out")
    if wanted in (Output.lexicon, Output.tsv) and model.learns_from not in STRINGS:
        option = "--lexicon" if lexicon else f"--format {wanted}"
        raise TrellisworkError(
            f"{option} is for models of pairs of strings, got a {type(model).__name__}; leave it out"
        )
    return wanted


def _read_as(named: str | None, text: bool, lines: bool, pretokenised: bool) -> str | None:
    """Return the kind of FILE, as far as the options say it."""
    if pretokenised and lines:
        raise TrellisworkError("--pretokenised has a sentence on each line already; leave --lines out")
    if (text or lines or pretokenised) and named not in (None, "text", "pretokenised"):
        raise TrellisworkError(f"--from {named} and options of plain text do not go together; leave one out")
    if pretokenised or named == "pretokenised":
        return "pretokenised"
    return "text" if text or lines else named


def _write_tokens(file: str, tokeniser: Any, out: str | None, job: Job) -> None:
    """The tokens of plain text that a tokeniser finds."""
    if job.question != Question():
        raise TrellisworkError(
            "a tokeniser gives its best tokens only; leave out --confidence, --top-k, --pin and --threshold"
        )
    if job.output not in (None, Output.conllu, Output.jsonl):
        raise TrellisworkError(f"expected --format conllu or jsonl for tokens, got {job.output}")
    writer = ConlluWriter(None)
    with _target(out) as target:
        for sentence in read_text(file, tokeniser, **job.text_options("text")):
            target.write(json_text(sentence) if job.output is Output.jsonl else writer.sentence(sentence))
            if job.by_line:
                target.flush()


def _pins(texts: list[str] | None, model: Model) -> Sequence[Pin]:
    if not texts:
        return ()
    if any(model.heads):
        raise TrellisworkError("--pin is for models of one task, and this one has several; leave it out")
    return parse_pins(texts, model)


@contextlib.contextmanager
def _target(out: str | None, *, binary: bool = False) -> Iterator[Target]:
    if out is None or out == "-":
        if binary and sys.stdout.isatty():
            raise TrellisworkError("Parquet cannot be shown on a terminal; add --out FILE.parquet or --format pretty")
        yield sys.stdout.buffer if binary else sys.stdout
    else:
        if binary and out.lower().endswith(".gz"):
            raise TrellisworkError(f"--out {out}: Parquet files are compressed already; leave out .gz")
        with write_packed(out, binary=binary) as file:
            yield file
