"""`trelliswork evaluate`: how good is a model on a tagged file?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, layout, say
from trelliswork.cli.kernels import announce_compiling
from trelliswork.cli.options import Features, ModelFolder, Quiet, Threads, Threshold, layout_in
from trelliswork.cli.panels import TO_COMPARE, with_options
from trelliswork.cli.tasks import load_reader
from trelliswork.cli.visible import visible
from trelliswork.data import atomic_write
from trelliswork.data.readers import open_tagged
from trelliswork.models.base import Report, count
from trelliswork.runtime.threads import use_threads
from trelliswork.text import read_documents


@with_options(TO_COMPARE)
def evaluate(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Tagged file, or - for standard input.")],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the scores as JSON.")] = None,
    threshold: Threshold = None,
    threads: Threads = 1,
    quiet: Quiet = False,
    features: Features = None,
    **columns: Any,
) -> None:
    """Score a model on a tagged file.

    Prints precision, recall and F1 of spans by type as conlleval counts
    them, strict F1 (only well-formed spans count), token accuracy, and how
    far the confidences are off. Plain tags get accuracy alone, each task of
    a model of several tasks a table of its own. --threshold scores what
    predict --threshold would write. A tokeniser gets the F1 of tokens, words
    and sentences on CoNLL-U, as the CoNLL 2018 shared task counts them.

    \b
    Examples:
      trelliswork evaluate ner test.conll
      trelliswork evaluate ner test.conll --json scores.json
    """
    use_threads(threads)
    loaded = load_reader(model, given_function(features))
    if loaded.reads == "text":
        _evaluate_tokeniser(loaded, file, json_file, quiet)
        return
    kind = kind_of(file, tagger=loaded)
    format, stream = open_tagged(file, choices_of(loaded, layout_in(columns), kind), kind)
    sentences, notes = loaded.readable_gold(list(stream), columns["scheme"])
    for note in [*notes, f"{file}: {layout(format, kind)}"]:
        say(note, quiet=quiet)
    announce_compiling(quiet=quiet)
    report = loaded.report(sentences, threshold=threshold)
    _tell(report, [sentence.words for sentence in sentences], json_file)


def _evaluate_tokeniser(tokeniser: Any, file: str, json_file: str | None, quiet: bool) -> None:
    """F1 of tokens, words and sentences on CoNLL-U."""
    gold = read_documents(file)
    announce_compiling(quiet=quiet)
    _tell(tokeniser.report(gold), [sentence for document in gold for sentence in document.sentences], json_file)


def _tell(report: Report, sentences: Sequence[Sequence[Any]], json_file: str | None) -> None:
    print(f"{count(len(sentences), 'sentence')}, {count(sum(map(len, sentences)), 'token')}\n")
    print(visible(report.text))
    if json_file is not None:
        with atomic_write(json_file) as target:
            target.write(json.dumps(report.record, indent=1) + "\n")
