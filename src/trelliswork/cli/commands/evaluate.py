"""`trelliswork evaluate`: how good is a model on a tagged file?"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from trelliswork.cli.from_text import report_from_text
from trelliswork.cli.given_function import given_function
from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.cli.inputs import choices_of, kind_of, layout
from trelliswork.cli.judging import Compared, Judged, compared, comparison_record, comparison_text
from trelliswork.cli.kernels import announce_compiling
from trelliswork.cli.messages import say
from trelliswork.cli.options import Device, DeviceName, Features, ModelFolder, Quiet, Threads, Threshold, layout_in
from trelliswork.cli.panels import TO_COMPARE, with_options
from trelliswork.cli.report.evaluation import evaluation_page
from trelliswork.cli.tasks import load_reader
from trelliswork.cli.tokenising import known_texts
from trelliswork.cli.visible import visible
from trelliswork.data import atomic_write
from trelliswork.data.files import name_of
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import count
from trelliswork.runtime.threads import use_threads
from trelliswork.text import read_documents


@with_options(TO_COMPARE)
def evaluate(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File with gold answers, or - for standard input.")],
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the scores to this JSON file.")
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write an HTML report: scores, confusions, calibration, worst sentences."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Compare with the model in this directory (paired bootstrap test)."),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For tokenisers: the raw text that the tokens of FILE come from. Not needed for CoNLL-U.",
        ),
    ] = None,
    from_text: Annotated[
        bool,
        typer.Option(
            "--from-text",
            help="Start from the raw text of FILE (CoNLL-U) and evaluate sentence splitting and tokenisation, too.",
        ),
    ] = False,
    threshold: Threshold = None,
    threads: Threads = 1,
    device: Device = DeviceName.auto,
    quiet: Quiet = False,
    features: Features = None,
    **columns: Any,
) -> None:
    """Evaluate a model on a file with gold answers.

    Taggers: precision, recall and F1 by span type as in conlleval, strict
    F1 (well-formed spans only), token accuracy and calibration error; only
    accuracy for plain tags. --threshold evaluates the output of
    predict --threshold.
    Parsers: unlabelled and labelled attachment score (UAS, LAS) over all
    words, or labelled bracket F1; labels unseen in training count as errors.
    With --from-text, sentences and words are found by the model's own
    tokeniser and aligned with the gold words as in the CoNLL 2018 shared
    task.
    Transducers: word and symbol error rate, exact match or BLEU.
    Tokenisers: F1 of tokens, words and sentences.

    --html writes a report with charts: scores by label, confusions, known
    and unknown words, calibration, and the worst sentences. --against tests
    whether the difference to another model is significant (paired bootstrap
    over sentences).

    \b
    Examples:
      trelliswork evaluate ner test.conll
      trelliswork evaluate ner test.conll --json scores.json
      trelliswork evaluate ner test.conll --against older --html report.html
      trelliswork evaluate parser test.conllu --from-text
    """
    use_threads(threads)
    if against is not None and file == "-":
        raise TrellisworkError("--against reads FILE twice, and standard input can be read once; give a file")
    function = given_function(features)
    columns |= {"raw": raw, "from_text": from_text, "device": device}
    judged, sizes = _judge(model, file, threshold, function, columns, quiet)
    print(f"{sizes}\n\n{visible(judged.report.text)}")
    both: list[Compared] = []
    record = judged.report.record
    if against is not None:
        both = compared(judged, _judge(against, file, threshold, function, columns, quiet)[0])
        print("\n" + visible(comparison_text(both, model, against)))
        record = {**record, "against": comparison_record(both, against)}
    if json_file is not None:
        with atomic_write(json_file) as target:
            target.write(json.dumps(record, indent=1) + "\n")
    if html is not None:
        with atomic_write(html) as target:
            target.write(evaluation_page(judged, Path(name_of(file)).name, sizes, both, against or ""))
        say(f"written: {html}", quiet=quiet)


def _judge(
    folder: str, file: str, threshold: float | None, function: Any, columns: dict[str, Any], quiet: bool
) -> tuple[Judged, str]:
    """The report of a model on a file, and how large that is."""
    loaded = load_reader(folder, function, columns["device"])
    if columns["from_text"] and (threshold is not None or file == "-" or loaded.reads != "words"):
        problem = "--from-text is for models that read words and for files, without --threshold"
        raise TrellisworkError(f"{problem}; leave one of them out")
    if loaded.reads == "text":
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a tokeniser gives its best tokens; leave it out")
        raw, choices = columns["raw"], layout_in(columns)
        gold: Any = read_documents(file) if raw is None else known_texts(file, raw, choices, partial(say, quiet=quiet))
        units: list[Any] = [sentence for document in gold for sentence in document.sentences]
    else:
        if columns["raw"] is not None:
            raise TrellisworkError(f"--raw is for tokenisers, and {folder} reads words; leave it out")
        kind = kind_of(file, tagger=loaded)
        choices = choices_of(loaded, layout_in(columns), kind)
        format, stream = GOLD_FILES[loaded.learns_from].open(file, choices, kind)
        gold, notes = loaded.readable_gold(list(stream), columns["scheme"])
        for note in [*notes, f"{file}: {layout(format, kind)}"]:
            say(note, quiet=quiet)
        units = [sentence.words for sentence in gold]
    announce_compiling(quiet=quiet)
    if columns["from_text"]:
        if format is None or not format.conllu:
            raise TrellisworkError(f"--from-text needs CoNLL-U, which says where words touch, got {file}; leave it out")
        report = report_from_text(loaded, file, gold, format.tag_column or 0)
    else:
        report = loaded.report(gold, threshold=threshold)
    sizes = f"{count(len(units), 'sentence')}, {count(sum(map(len, units)), 'token')}"
    if loaded.learns_from == "pairs":
        sizes = GOLD_FILES["pairs"].size(gold)
    return Judged(folder, report, loaded.knows), sizes
