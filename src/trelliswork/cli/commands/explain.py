"""`trelliswork explain`: which features voted for which tag, or what else a tree may be."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from trelliswork.cli.given_function import given_function
from trelliswork.cli.inputs import choices_of, kind_of, open_new, say
from trelliswork.cli.options import Features, ModelFolder, layout_in
from trelliswork.cli.panels import TO_READ, with_options
from trelliswork.cli.report.explanation import explanation_page
from trelliswork.cli.visible import visible
from trelliswork.data import atomic_write
from trelliswork.data.attributes.hashing import HINT
from trelliswork.data.files import name_of
from trelliswork.errors import ModelError
from trelliswork.models import load


@with_options(TO_READ)
def explain(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to explain, or - for standard input.")],
    text: Annotated[bool, typer.Option("--text", help="FILE is plain text.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page with tables instead of text.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Sentences, at most.")] = 10,
    features: Features = None,
    **columns: Any,
) -> None:
    """Show which features voted for which tag, what else a tree may be, or how strings are aligned.

    For every token its tag with the probability, and the features that
    speak for it (+) and against it (-), strongest first: previous word =
    'the', shape = Xx, suffix-3 = 'ing'. Attributes of your own (--features,
    CRFsuite files) have the names that you gave them. The votes of a
    sentence add up to the score of its tags (of --model memm: before the
    scores of each token are normalised). For models over features, such as
    --model crf.

    Of a graph-based parser: for every word its head and label in the best
    tree, and the other heads that it may have, each with its probability
    and that of the best label with it. Of a constituency parser: for every
    bracket its probability, other labels of the same words (|), and the
    brackets that cross it (x). These probabilities are exact. Of a
    transition-based parser: the decisions that build the tree, and the
    others that were possible, each given all before it.

    Of a pair n-gram: how the source and the best target are aligned, with
    the probability of each chunk, and the strongest other targets.

    \b
    Examples:
      trelliswork explain chunker new.conll
      trelliswork explain chunker new.conll --html votes.html
      trelliswork explain parser new.txt --text
    """
    tagger: Any = load(model, features=given_function(features))
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
