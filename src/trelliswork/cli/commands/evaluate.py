"""`trelliswork evaluate`: how good is a model on a tagged file?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trelliswork.cli.answering import note_unknown
from trelliswork.cli.early import check_paths
from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.cli.inputs import (
    announce_compiling,
    choices_of,
    expanded,
    given_function,
    kind_of,
    layout,
    load_reader,
    require_different,
)
from trelliswork.cli.messages import say, visible
from trelliswork.cli.options import (
    TO_COMPARE,
    Device,
    DeviceName,
    Features,
    ModelFolder,
    Quiet,
    Threads,
    Threshold,
    layout_in,
    with_options,
)
from trelliswork.cli.report.evaluation import (
    Comparison,
    EvaluatedModel,
    compare_models,
    comparison_record,
    comparison_text,
    evaluation_page,
    report_from_text,
)
from trelliswork.cli.writing_answers import STRINGS
from trelliswork.data import ColumnFormat, Sentence, atomic_write
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.base import Model
from trelliswork.models.language.config import WORD_PAIRS
from trelliswork.models.loading import known_kind
from trelliswork.reading import name_of
from trelliswork.runtime.threads import use_threads
from trelliswork.text import Document, read_documents

if TYPE_CHECKING:
    from trelliswork.data.attributes import FeatureFunction
    from trelliswork.models.recipe import Options

SHOWN = 10  # names of many files


@with_options(TO_COMPARE)
def evaluate(
    model: ModelFolder,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files with gold answers, quoted patterns, or - for standard input."),
    ],
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
    """Evaluate a model on files with gold answers.

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
    Tokenisers: F1 of tokens, words and sentences. Language models:
    perplexity. Word vectors: Spearman's correlation with the similarities
    in files of word pairs.
    Several files are evaluated together, as if they were one.

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
      trelliswork evaluate ner test/*.conll
    """
    use_threads(threads)
    files = expanded(files)
    require_different(files)
    if against is not None:
        if "-" in files:
            raise TrellisworkError("--against reads FILE twice, and standard input can be read once; give a file")
        known_kind(against)
    check_paths(read=[*files, raw], write=[json_file, html])
    function = given_function(features)
    columns |= {"raw": raw, "from_text": from_text, "device": device}
    evaluated, sizes = _evaluate_model(model, files, threshold, function, columns, quiet)
    about = "" if len(files) == 1 else f"{_names_of(files)}\n"
    print(f"{visible(about)}{sizes}\n\n{visible(evaluated.report.text)}")
    both: list[Comparison] = []
    record = (
        evaluated.report.record if len(files) == 1 else {**evaluated.report.record, "files": list(map(name_of, files))}
    )
    if against is not None:
        both = compare_models(evaluated, _evaluate_model(against, files, threshold, function, columns, quiet)[0])
        print("\n" + visible(comparison_text(both, model, against)))
        record = {**record, "against": comparison_record(both, against)}
    if json_file is not None:
        with atomic_write(json_file) as target:
            target.write(json.dumps(record, indent=1) + "\n")
    if html is not None:
        with atomic_write(html) as target:
            names = [Path(name_of(file)).name for file in files]
            target.write(evaluation_page(evaluated, _names_of(names), sizes, both, against or ""))
        say(f"written: {html}", quiet=quiet)


def _names_of(files: Sequence[str]) -> str:
    """Return the names of some files, the first of many."""
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    names = ", ".join(map(name_of, files[:SHOWN])) + more
    return names if len(files) == 1 else f"{count(len(files), 'file')}: {names}"


def _evaluate_model(
    folder: str,
    files: Sequence[str],
    threshold: float | None,
    function: FeatureFunction | None,
    columns: Options,
    quiet: bool,
) -> tuple[EvaluatedModel, str]:
    """Return the report of a model on all files together, and how large they are."""
    loaded = load_reader(folder, function, columns["device"])
    if columns["from_text"] and (threshold is not None or "-" in files or loaded.reads != "words"):
        problem = "--from-text is for models that read words and for files, without --threshold"
        raise TrellisworkError(f"{problem}; leave one of them out")
    if loaded.reads == "text":
        if threshold is not None:
            raise TrellisworkError("--threshold is for spans, and a tokeniser gives its best tokens; leave it out")
        gold: Any = _known_documents(files, columns, quiet)
        units: list[Any] = [sentence for document in gold for sentence in document.sentences]
    else:
        if columns["raw"] is not None:
            raise TrellisworkError(f"--raw is for tokenisers, and {folder} reads words; leave it out")
        sentences, formats = _gold_sentences(loaded, files, columns)
        gold, notes = loaded.readable_gold(list(note_unknown(loaded, sentences)), columns["scheme"])
        described = [
            f"{file}: {layout(format, kind_of(file, tagger=loaded))}"
            for file, format in zip(files, formats, strict=True)
        ]
        for note in [*notes, *described]:
            say(note, quiet=quiet)
        units = [sentence.words for sentence in gold]
    announce_compiling(quiet=quiet)
    if columns["from_text"]:
        for file, format in zip(files, formats, strict=True):
            if format is None or not format.conllu:
                problem = f"--from-text needs CoNLL-U, which says where words touch, got {file}"
                raise TrellisworkError(f"{problem}; leave it out")
            tag_column = format.tag_column or 0
        report = report_from_text(loaded, files, gold, tag_column)
    else:
        report = loaded.report(gold, threshold=threshold)
    sizes = f"{count(len(units), 'sentence')}, {count(sum(map(len, units)), 'token')}"
    if loaded.learns_from in (*STRINGS, WORD_PAIRS):
        sizes = GOLD_FILES[loaded.learns_from].size(gold)
    return EvaluatedModel(folder, report, loaded.knows), sizes


def _gold_sentences(
    model: Model, files: Sequence[str], columns: Options
) -> tuple[list[Sentence], list[ColumnFormat | None]]:
    """Return the sentences of all files, and the layout of each that has columns."""
    sentences: list[Sentence] = []
    formats: list[ColumnFormat | None] = []
    for file in files:
        kind = kind_of(file, tagger=model)
        choices = choices_of(model, layout_in(columns), kind)
        format, stream = GOLD_FILES[model.learns_from].open(file, choices, kind)
        sentences += stream
        formats.append(format)
    return sentences, formats


def _known_documents(files: Sequence[str], columns: Options, quiet: bool) -> list[Document]:
    """Return the texts of all files whose tokens are known, for a tokeniser."""
    raw = columns["raw"]
    if raw is None:
        return [document for file in files for document in read_documents(file)]
    if len(files) > 1:
        raise TrellisworkError(f"--raw is the text of one FILE, got {len(files)} of them; evaluate them one by one")
    known_texts = named("trelliswork.cli.train_data:known_texts")
    return known_texts(files[0], raw, layout_in(columns), note=partial(say, quiet=quiet))
