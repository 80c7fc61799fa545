"""`trelliswork explain`: which features voted for which tag, or what else a tree may be."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, open_new
from trelliswork.cli.messages import say
from trelliswork.cli.options import Device, DeviceName, Features, ModelFolder, layout_in
from trelliswork.cli.panels import TO_READ, with_options
from trelliswork.cli.report.explanation import explanation_page
from trelliswork.cli.tasks import load_on
from trelliswork.cli.visible import visible
from trelliswork.data import atomic_write
from trelliswork.data.attributes.hashing import HINT
from trelliswork.data.files import name_of
from trelliswork.errors import ModelError


@with_options(TO_READ)
def explain(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Input file, or - for standard input.")],
    text: Annotated[bool, typer.Option("--text", help="Read FILE as plain text.")] = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write an HTML page instead of printing text.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sentences.")] = 10,
    device: Device = DeviceName.auto,
    features: Features = None,
    **columns: Any,
) -> None:
    """Explain predictions: feature votes, alternative trees, alignments.

    Feature-based models: the tag of each token with its probability, and
    the features for (+) and against (-) it, strongest first: previous word =
    'the', shape = Xx, suffix-3 = 'ing'. Your own attributes (--features,
    CRFsuite files) keep their names. The votes of a sentence sum to the
    score of its tags (for --model memm, before normalisation).

    Graph-based parsers: the head and label of each word in the best tree, and
    the most probable alternatives. Constituency parsers: the probability of
    each bracket, other labels of the same words (|), and the brackets that
    cross it (x). These probabilities are exact. Transition-based parsers: the
    decisions that build the tree, and the alternatives to each of them, given
    all earlier ones.

    Pair n-grams: the alignment of the source with the best target, the
    probability of each chunk, and the best other targets.

    \b
    Examples:
      trelliswork explain chunker new.conll
      trelliswork explain chunker new.conll --html votes.html
      trelliswork explain parser new.txt --text
    """
    tagger: Any = load_on(model, given_function(features), device)
    if not tagger.explains:
        problem = f"expected a model over features, a parser or a pair n-gram, got {type(tagger).__name__}"
        raise ModelError(f"{model}: {problem}; train one with --model crf, biaffine or pair-ngram")
    kind = kind_of(file, "text" if text else None, tagger)
    _, stream = open_new(file, kind, choices_of(tagger, layout_in(columns), kind))
    found = tagger.explain(list(itertools.islice(stream, limit)))
    if getattr(tagger, "hashed", False):
        say(f"note: {HINT}")
    if html is None:
        print(visible("\n\n".join(map(str, found))))
        return
    with atomic_write(html) as target:
        target.write(explanation_page(found, model, Path(name_of(file)).name))
    print(f"written: {html}")
