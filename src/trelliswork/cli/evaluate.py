"""`trelliswork evaluate`: how good is a model on a tagged file?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

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
    far the confidences are off. Plain tags get accuracy alone. --threshold
    scores what tag --threshold would write.

    \b
    Examples:
      trelliswork evaluate ner test.conll
      trelliswork evaluate ner test.conll --json scores.json
    """
    import torch

    from trelliswork.cli.gold import in_scheme_of, require_known
    from trelliswork.cli.inputs import choices_of, count, kind_of, layout, open_tagged, say
    from trelliswork.cli.kernels import prepare_kernels
    from trelliswork.cli.scores import score, score_text
    from trelliswork.data import Choices, atomic_write
    from trelliswork.models import load_tagger

    torch.set_num_threads(threads)
    given = Choices(parse_delimiter(delimiter), word_column, tag_column, parse_columns(feature_columns), scheme)
    tagger = load_tagger(model, features=features)
    kind = kind_of(file, tagger=tagger)
    format, stream = open_tagged(file, choices_of(tagger, given, kind), kind)
    sentences, found = in_scheme_of(tagger.labels, list(stream), scheme)
    require_known(tagger.labels, sentences)
    say(f"{file}: {layout(format, kind)}", quiet=quiet)
    if found != tagger.labels.data_scheme:
        say(f"tags converted from {found} to {tagger.labels.data_scheme}, as the model has them", quiet=quiet)
    prepare_kernels(quiet=quiet)
    scores = score(tagger, sentences, threshold)
    print(f"{count(scores.n_sentences, 'sentence')}, {count(scores.n_tokens, 'token')}\n")
    print(score_text(scores))
    if json_file is not None:
        with atomic_write(json_file) as target:
            target.write(json.dumps(scores.to_dict(), indent=1) + "\n")
