"""`trelliswork explain`: which features, words or rules an answer is due to, and what else it may be."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Annotated

import typer

from trelliswork.cli.answering import note_unknown
from trelliswork.cli.early import check_paths
from trelliswork.cli.inputs import choices_of, given_function, kind_of, load_on, open_new
from trelliswork.cli.messages import say, visible
from trelliswork.cli.options import TO_READ, Device, DeviceName, Features, ModelFolder, layout_in, with_options
from trelliswork.data import atomic_write
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import Model
from trelliswork.reading import name_of

PAGE = "trelliswork.cli.report.evaluation:explanation_page"  # imports numba
MOST = 1000  # votes, others and answers of each part in JSON


@with_options(TO_READ)
def explain(
    model: ModelFolder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Input file, or - for standard input.")],
    text: Annotated[bool, typer.Option("--text", help="Read FILE as plain text.")] = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write an HTML page instead of printing text.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, an explanation in each line, instead of text.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sentences.")] = 10,
    device: Device = DeviceName.auto,
    features: Features = None,
    **columns: object,
) -> None:
    """Explain predictions: which features or words decided, alternatives.

    Feature-based models: the tag of each token with its probability, and
    the features for (+) and against (-) it, strongest first: previous word =
    'the', shape = Xx, suffix-3 = 'ing'. Your own attributes (--features,
    CRFsuite files) keep their names. The votes of a sentence sum to the
    score of its tags (for --model memm, before normalisation).

    Neural taggers: the tag of each token, other tags with their
    probabilities, and the words that it is due to: integrated gradients,
    which sum to the score of the best tags minus that of the best tags in
    which the token has another one. Then the best tags of the sentence.

    Graph-based parsers: the head and label of each word in the best tree, and
    the most probable alternatives. Constituency parsers: the probability of
    each bracket, other labels of the same words (|), and the brackets that
    cross it (x). These probabilities are exact. Transition-based parsers: the
    decisions that build the tree, and the alternatives to each of them, given
    all earlier ones. All of them say which words each part is due to, and a
    treebank grammar which rules.

    Pair n-grams: the alignment of the source with the best target, the
    probability of each chunk, and the best other targets.

    \b
    Examples:
      trelliswork explain chunker new.conll
      trelliswork explain chunker new.conll --html votes.html
      trelliswork explain chunker new.conll --json
      trelliswork explain parser new.txt --text
    """
    if as_json and html is not None:
        raise TrellisworkError("expected one of --json and --html, got both; leave one out")
    check_paths(read=[file], write=[html])
    tagger: Model = load_on(model, given_function(features), device)
    if not tagger.explains:
        problem = f"expected a tagger, a parser, a pair n-gram or an ensemble of networks, got {type(tagger).__name__}"
        raise ModelError(f"{model}: {problem}; explain another model, or a member of an ensemble")
    kind = kind_of(file, "text" if text else None, tagger)
    _, stream = open_new(file, kind, choices_of(tagger, layout_in(columns), kind))
    explanations = tagger.explain(list(note_unknown(tagger, itertools.islice(stream, limit))))
    if getattr(tagger, "hashed", False):
        say(f"note: {named('trelliswork.data.attributes.key_index:HINT')}")
    if as_json:
        for each in explanations:
            heading = {"title": each.title, "lead": each.lead, "tokens": list(each.words)}
            print(json.dumps({**heading, **each.record(MOST)}, ensure_ascii=False))
        return
    if html is None:
        print(visible("\n\n".join(map(str, explanations))))
        return
    with atomic_write(html) as target:
        target.write(named(PAGE)(explanations, model, Path(name_of(file)).name))
    print(f"written: {html}")
