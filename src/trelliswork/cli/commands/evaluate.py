"""`trelliswork evaluate`: how good is a model on a tagged file?"""

from __future__ import annotations

import json
from typing import Annotated

import torch
import typer

from trelliswork.cli.given_function import given_function
from trelliswork.cli.gold import in_scheme_of, require_known
from trelliswork.cli.inputs import choices_of, count, kind_of, layout, open_tagged, say
from trelliswork.cli.kernels import prepare_kernels
from trelliswork.cli.options import (
    Delimiter,
    FeatureColumns,
    Features,
    ModelFolder,
    Quiet,
    Scheme,
    TagColumn,
    Threads,
    Threshold,
    WordColumn,
    parse_columns,
    parse_delimiter,
)
from trelliswork.cli.scores import score, score_text
from trelliswork.cli.tasks import Part, load_reader, parts_of
from trelliswork.data import Choices, atomic_write


def evaluate(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Tagged file, or - for standard input.")],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the scores as JSON.")] = None,
    delimiter: Delimiter = None,
    word_column: WordColumn = None,
    tag_column: TagColumn = None,
    feature_columns: FeatureColumns = None,
    scheme: Scheme = None,
    threshold: Threshold = None,
    threads: Threads = 1,
    quiet: Quiet = False,
    features: Features = None,
) -> None:
    """Score a model on a tagged file.

    Prints precision, recall and F1 of spans by type as conlleval counts
    them, strict F1 (only well-formed spans count), token accuracy, and how
    far the confidences are off. Plain tags get accuracy alone, each task of
    a model of several tasks a table of its own. --threshold scores what
    tag --threshold would write.

    \b
    Examples:
      trelliswork evaluate ner test.conll
      trelliswork evaluate ner test.conll --json scores.json
    """
    torch.set_num_threads(threads)
    given = Choices(parse_delimiter(delimiter), word_column, tag_column, parse_columns(feature_columns), scheme)
    tagger = load_reader(model, given_function(features))
    kind = kind_of(file, tagger=tagger)
    format, stream = open_tagged(file, choices_of(tagger, given, kind), kind)
    parts = [_known(part, scheme, quiet) for part in parts_of(tagger, list(stream))]
    say(f"{file}: {layout(format, kind)}", quiet=quiet)
    prepare_kernels(tagger, quiet=quiet)
    scores = {part.name: score(part.tagger, part.sentences, threshold) for part in parts}
    first = scores[parts[0].name]
    print(f"{count(first.n_sentences, 'sentence')}, {count(first.n_tokens, 'token')}\n")
    print("\n\n".join(part.heading + score_text(scores[part.name]) for part in parts))
    if json_file is not None:
        by_task = {"tasks": {name: each.to_dict() for name, each in scores.items()}}
        with atomic_write(json_file) as target:
            target.write(json.dumps(by_task if parts[0].name else first.to_dict(), indent=1) + "\n")


def _known(part: Part, scheme: str | None, quiet: bool) -> Part:
    """The part with its gold tags in the scheme of the model, which must know them."""
    labels = part.tagger.labels
    sentences, found = in_scheme_of(labels, part.sentences, scheme)
    require_known(labels, sentences)
    if found != labels.data_scheme:
        say(f"tags converted from {found} to {labels.data_scheme}, as the model has them", quiet=quiet)
    return part._replace(sentences=sentences)
