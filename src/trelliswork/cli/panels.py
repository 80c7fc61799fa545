"""The settings of models as options, declared once: a line for each, in the panels of --help.

A command takes whole panels with `@with_options(...)` and finds what was given in `ctx.params`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from trelliswork.cli.options import Delimiter, FeatureColumns, Scheme, TagColumn, TagColumns, Tasks, WordColumn

Panel = dict[str, tuple[Any, Any]]  # the name of each option, with its type (and what typer knows of it) and default
Command = Callable[..., None]


def with_options(*panels: Panel) -> Callable[[Command], Command]:
    """Give a command the options of panels in the place of its `**options`."""

    def extended(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for panel in panels
            for name, (kind, default) in panel.items()
        ]
        command.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        return command

    return extended


class _Maker:
    """Options of one panel; those `of_model` have the default of the model that is chosen."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(self, kind: Any, default: Any, help: str, *names: str, **more: Any) -> tuple[Any, Any]:
        return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=self.title, **more)], default

    def of_model(self, kind: Any, help: str, **more: Any) -> tuple[Any, Any]:
        return self(kind | None, None, help, show_default="by the model", **more)

    def file(self, help: str, metavar: str = "FILE", **more: Any) -> tuple[Any, Any]:
        return self(str | None, None, help, metavar=metavar, **{"show_default": False, **more})


_learning, _network = _Maker("Learning"), _Maker("Network")
_features = _Maker("Features (crf, hucrf, memm, logistic, hmm, naive-bayes)")

COLUMNS: Panel = dict(
    delimiter=(Delimiter, None),
    word_column=(WordColumn, None),
    tag_column=(TagColumn, None),
    feature_columns=(FeatureColumns, None),
    tag_columns=(TagColumns, None),
    tasks=(Tasks, None),
    scheme=(Scheme, None),
)

LEARNING: Panel = dict(
    epochs=_learning.of_model(int, "Passes over the data, at most."),
    patience=_learning.of_model(int, "Stop after so many without gain."),
    seed=_learning(int, 0, "The same seed gives the same model."),
    seeds=_learning(int, 1, "Train so often, from --seed on; print the mean.", min=1),
    batch_tokens=_learning.of_model(int, "Tokens in a batch."),
    objective=_learning.of_model(str, "likelihood, local, perceptron, margin or risk."),
    optimizer=_learning.of_model(str, "adamw, adam, sgd or momentum."),
    lr=_learning.of_model(float, "Learning rate."),
    decay=_learning.of_model(str, "linear, constant, inverse, cosine or triangular."),
    l2=_learning.of_model(float, "Weight decay."),
    checkpoint_every=_learning.of_model(float, "Seconds between checkpoints."),
)

NETWORK: Panel = dict(
    encoder=_network.of_model(str, "window, sentence, lstm, gru, transformer, dilated, deep or none."),
    characters=_network.of_model(str, "Words letter by letter: none, cnn or lstm."),
    vectors=_network.file("Pretrained vectors as text, also .gz (GloVe, word2vec, fastText)."),
    tune_vectors=_network.of_model(bool, "Train the pretrained vectors on."),
    window=_network.of_model(int, "Tokens that are seen at once."),
    hidden=_network.of_model(int, "Hidden units (in each direction)."),
    layers=_network.of_model(int, "Layers of the encoder."),
    pretrain_epochs=_network.of_model(int, "Passes of the layers over words without tags (deep).", min=0),
    max_length=_network.of_model(int, "Tokens of the longest segment (semi-CRFs).", min=1),
    segment_dim=_network.of_model(int, "Width of segment vectors (semi-CRFs)."),
    word_dim=_network.of_model(int, "Width of word vectors."),
    affix_dim=_network.of_model(int, "Width of affix vectors."),
    column_dim=_network.of_model(int, "Width of column vectors."),
    min_count=_network.of_model(int, "Rarer words are unknown."),
    dropout=_network.of_model(float, "Share of inputs dropped."),
    hidden_dropout=_network.of_model(float, "Share of encoded dimensions dropped."),
    unknown_dropout=_network.of_model(float, "Share of words read as unknown."),
    scorer=_network.of_model(str, "linear, context (neighbours), hidden-units or tensor."),
    label_scheme=_network.of_model(str, "Learn tags as IOBES, or as in the data."),
    constrained=_network.of_model(bool, "Forbid illegal tag sequences."),
)

FEATURES: Panel = dict(
    template=_features.file("CRF++ templates.", show_default="chosen by the columns"),
    features=_features.file(
        "A Python function that is given a sentence and returns a dict or a list of names for each token.",
        "MODULE:FUNCTION",
    ),
    algorithm=_features(str, "lbfgs", "lbfgs, sgd, perceptron, pa, arow, margin or herding."),
    c1=_features(float, 0.0, "L1 term c1 |w|."),
    c2=_features(float, 1.0, "L2 term c2 w^2, without 1/2."),
    max_iterations=_features(int | None, None, "Iterations, at most.", show_default="that of the algorithm"),
    samples=_features(int, 0, "Average over so many weight vectors (lbfgs, herding)."),
    posterior=_features(str, "laplace", "How lbfgs draws them: laplace or hamiltonian."),
    temperature=_features(float, 0.03, "Width of the posterior; 1 is the exact one."),
    smoothing=_features(float, 0.1, "hmm, naive-bayes: added to every count."),
    min_freq=_features(float, 0.0, "Rarer pairs (attribute or tag, tag) are left out."),
    cutoff=_features(int, 0, "Rarer attributes are left out, whatever their tags."),
    hash_bits=_features(
        int | None, None, "Number attributes by 2^N hashes: bounded size, no names.", show_default="names are kept"
    ),
    induce=_features(int, 0, "Add the N pairs of attributes that gain most.", metavar="N"),
    all_states=_features(bool, False, "Weights for unseen pairs too.", "--all-states"),
    all_transitions=_features(bool, False, "The same for pairs of tags.", "--all-transitions"),
    latent=_features(int, 1, "Hidden states of each tag."),
    order=_features(int, 1, "Tags before a tag that count: 1 or 2."),
    partial=_features(bool, False, "Read the tag ? as unknown, A|B as one of these.", "--partial"),
    hidden_units=_features(int, 100, "Binary units between features and tags (hucrf)."),
    pretrain=_features.file("Untagged file of the same columns to learn the units from first (hucrf)."),
)
