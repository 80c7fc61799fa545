"""`trelliswork predict`: tag new text, with confidences and alternatives."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Annotated, Any

import typer

from trelliswork.cli.answering import BATCH, Question, answers
from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, open_new, say, text_in_columns
from trelliswork.cli.kernels import announce_compiling
from trelliswork.cli.options import Features, ModelFolder, Threads, Threshold, layout_in
from trelliswork.cli.pair_notes import noting_unknown
from trelliswork.cli.panels import TO_READ, with_options
from trelliswork.cli.pins import parse_pins
from trelliswork.cli.tasks import bare, load_reader, words_alone
from trelliswork.cli.writers import ConlluWriter
from trelliswork.cli.writing_answers import PAIRS, Inputs, Output, keeps, output_of, writer_for
from trelliswork.data import atomic_write, json_text
from trelliswork.data.kept_lines import KeptLines
from trelliswork.errors import TrellisworkError
from trelliswork.runtime.threads import use_threads
from trelliswork.text import read_text


class Input(StrEnum):
    """What to read."""

    conll = "conll"
    jsonl = "jsonl"
    csv = "csv"
    crfsuite = "crfsuite"
    brackets = "brackets"
    text = "text"
    pretokenised = "pretokenised"


class Unit(StrEnum):
    """How places in a text are counted."""

    code_points = "code-points"
    utf_16 = "utf-16"
    bytes = "bytes"


@with_options(TO_READ)
def predict(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to tag, or - for standard input.")],
    format: Annotated[
        Output | None,
        typer.Option(help="What to write.", show_default="by the name of --out, else as FILE is; text as conll"),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add exact probabilities of tags and spans.")
    ] = False,
    top_k: Annotated[int, typer.Option(metavar="K", min=0, help="List the K best analyses.", show_default=False)] = 0,
    lexicon: Annotated[
        bool, typer.Option("--lexicon", help="Write a dictionary: source, tab, target (--format lexicon).")
    ] = False,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN=TAG",
            help="A tag that is known: 3=B-PER for token 3 of every sentence, 2:3=B-PER for that of sentence 2. "
            "Of a parser a head, a head with its label, or a label: 3=2, 3=2:nsubj, 3=_:nsubj; 0 is the root. Of a "
            "constituency parser a bracket by its first and last word: 1=3, 1=3:NP, 2:1=3:NP.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write here instead of standard output.")] = None,
    read_as: Annotated[
        Input | None, typer.Option("--from", help="What FILE is.", show_default="by its suffix, conll for others")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="FILE is plain text (--from text).")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Plain text: each line is a text of its own.")] = False,
    pretokenised: Annotated[
        bool, typer.Option("--pretokenised", help="Plain text: one sentence a line, white space between tokens.")
    ] = False,
    offsets: Annotated[
        Unit | None,
        typer.Option(help="How the places of words in plain text are counted.", show_default=Unit.code_points.value),
    ] = None,
    threshold: Threshold = None,
    threads: Threads = 1,
    features: Features = None,
    **columns: Any,
) -> None:
    """Predict tags, trees or strings, with confidences and alternatives if wanted.

    FILE has the columns that the model was trained on (the tag column may
    be missing), or is CSV with a header, JSON lines or a JSON array. It
    comes back as it is, byte for byte, with only the tags replaced or added;
    --format, or the name of --out, writes something else. With --text it is
    plain text: the tokeniser of the model, or rules, find sentences and
    words, and answers have the places of words in the file. A blank line
    ends a paragraph, other line breaks are white space. A model over
    attributes (see convert) reads CRFsuite's data files. Everything is read
    as a stream. A model of several tasks writes the tags of each, and for
    --top-k one after another.

    --confidence adds the probability of each tag and of the span it is in:
    two columns, in CoNLL-U TagProb and SpanProb in MISC.
    --top-k lists the best analyses with theirs, --pin decodes again around
    tags that are known. All probabilities are exact. --threshold 0.2 also
    finds spans that are less likely than not, which raises F1 where many are
    missed. DIR may hold several models, as train --seeds leaves them: they
    answer together. A tokeniser (train --model tokeniser) writes tokens.

    A parser writes CoNLL-U: HEAD and DEPREL, and the tags that it predicts,
    into the file as it is, or a new file for plain text. --confidence adds
    HeadProb (of the head) and ArcProb (of head and label) to MISC, --top-k
    repeats a sentence with the comments "# analysis" and "# probability".
    JSON has heads and labels; pretty and html draw the trees.

    A transducer reads a source on each line, or a column of a table, and
    writes source, target and probability with tabs between them, with
    --top-k a line for each of the best targets. --lexicon leaves the
    probabilities out: a pronunciation dictionary. With --confidence JSON
    and HTML have the symbols with what they are aligned with.

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
    """
    use_threads(threads)
    loaded = load_reader(model, given_function(features))
    wanted = _read_as(read_as, text, lines, pretokenised)
    kind, typed = kind_of(file, wanted, loaded), file == "-" and sys.stdin.isatty()
    choices, output = choices_of(loaded, layout_in(columns), kind), output_of(_format(format, lexicon, loaded), out)
    how = _raw_options(kind, lines or typed, offsets)
    if loaded.reads == "text":
        _write_tokens(file, loaded, out, output, how, asked=bool(confidence or top_k or pin or threshold))
        return
    several, inputs = any(loaded.heads), Inputs(file, kind, choices)
    question = Question(confidence, top_k, _pins(pin, loaded), threshold)
    if keeps(kind, output, top_k, loaded):
        inputs.kept = KeptLines(quoted=kind == "csv")
    keep = None if inputs.kept is None else inputs.kept.keep
    inputs.format, sentences = open_new(file, kind, words_alone(choices) if several else choices, keep, **how)
    if inputs.format is not None and read_as is None and (doubt := text_in_columns(inputs.format, loaded)):
        say(doubt)
    sentences = noting_unknown(loaded, sentences)
    announce_compiling()
    batch = 1 if typed else BATCH  # answer line by line to someone who types
    with _target(out) as target:
        writer = writer_for(output, inputs, loaded, top_k, target)
        target.write(writer.begin())
        for found in answers(loaded, map(bare, sentences) if several else sentences, question, batch=batch):
            target.write(writer.write(*found))
            if batch == 1:
                target.flush()
        target.write(writer.end())


def _format(given: Output | None, lexicon: bool, model: Any) -> Output | None:
    """What to write, as far as the options say it."""
    wanted = Output.lexicon if lexicon else given
    if lexicon and given not in (None, Output.lexicon):
        raise TrellisworkError(f"--lexicon and --format {given} are two formats; leave one out")
    if wanted in (Output.lexicon, Output.tsv) and model.learns_from != PAIRS:
        option = "--lexicon" if lexicon else f"--format {wanted}"
        raise TrellisworkError(
            f"{option} is for models of pairs of strings, got a {type(model).__name__}; leave it out"
        )
    return wanted


def _read_as(read_as: Input | None, text: bool, lines: bool, pretokenised: bool) -> str | None:
    """What FILE is, as far as the options say it."""
    named = read_as.value if read_as is not None else None
    if pretokenised and lines:
        raise TrellisworkError("--pretokenised has a sentence on each line already; leave --lines out")
    if (text or lines or pretokenised) and named not in (None, "text", "pretokenised"):
        raise TrellisworkError(f"--from {named} and options of plain text do not go together; leave one out")
    if pretokenised or named == "pretokenised":
        return "pretokenised"
    return "text" if text or lines else named


def _raw_options(kind: str, by_line: bool, unit: Unit | None) -> dict[str, Any]:
    if kind == "text":
        return {"by_line": by_line, "unit": (unit or Unit.code_points).value}
    if unit is not None:
        raise TrellisworkError("--offsets is for plain text, whose words have places in the file; add --text")
    return {}


def _write_tokens(
    file: str, tokeniser: Any, out: str | None, output: Output | None, how: dict[str, Any], *, asked: bool
) -> None:
    """The tokens of plain text that a tokeniser finds."""
    if asked:
        raise TrellisworkError(
            "a tokeniser gives its best tokens only; leave out --confidence, --top-k, --pin and --threshold"
        )
    if output not in (None, Output.conllu, Output.jsonl):
        raise TrellisworkError(f"expected --format conllu or jsonl for tokens, got {output}")
    writer = ConlluWriter(None)
    announce_compiling()
    with _target(out) as target:
        for sentence in read_text(file, tokeniser, **how):
            target.write(json_text(sentence) if output is Output.jsonl else writer.sentence(sentence))
            if how["by_line"]:
                target.flush()


def _pins(texts: list[str] | None, model: Any) -> Any:
    if not texts:
        return ()
    if any(model.heads):
        raise TrellisworkError("--pin is for models of one task, and this one has several; leave it out")
    return parse_pins(texts, model)


@contextlib.contextmanager
def _target(out: str | None) -> Iterator[IO[Any]]:
    if out is None or out == "-":
        yield sys.stdout
    else:
        with atomic_write(out) as file:
            yield file
