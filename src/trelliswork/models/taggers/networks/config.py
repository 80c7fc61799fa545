"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data import ColumnFormat, CsvFormat, Sentence
from trelliswork.data.settings import Around, Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.models.networks.parts import Part
from trelliswork.training.config import TrainingConfig

# Made with the width of what goes in and the number of labels.
SCORERS = {
    "linear": Part("scorers:LinearScorer", "initialization"),
    "context": Part("scorers:ContextScorer", "initialization"),
    "hidden-units": Part("scorers:HiddenUnitScorer", "initialization", n_hidden="hidden_units"),
    "tensor": Part("scorers:TensorScorer", "initialization", slices="tensor_slices"),
}
SEGMENT_SCORERS = {
    "pyramid": Part("scorers:PyramidScorer", "max_length", hidden="segment_dim"),
    "endpoints": Part("scorers:EndpointScorer", "max_length", hidden="segment_dim"),
}


Transitions = Literal["fixed", "network"]
LabelScheme = Literal["IOBES", "data"]
_OF_TAGS, _OF_SEGMENTS = {"kind": ("Tagger", "MultiTagger")}, {"kind": ("Segmenter",)}
Normalization = Literal["global", "local"]


@dataclass(frozen=True)
class TaggerConfig(NetworkConfig):
    """Settings of a tagger; the defaults suit a few hundred thousand tokens of text.

    Inputs and encoder are those of `NetworkConfig`. `scorer="context"` also reads the neighbours of a token,
    "hidden-units" sums out binary units, "tensor" compares with a vector for each label. `encoder="deep"` with
    `transitions="network"`, which lets it score pairs of labels too, is the neural CRF of Do and Artieres (2010, Neural
    conditional random fields).

    Span tags are learned as `label_scheme="IOBES"` whatever the scheme of the data, or as they are. With
    `normalization="local"` each tag is a choice given the tag before it, as in a maximum-entropy Markov model.

        >>> TaggerConfig(window=7, scorer="context").scorer
        'context'
    """

    templates: tuple[str, ...] = setting(  # type: ignore[misc]
        (), 'Lines of a CRF++ file, or "default": attributes that score labels directly.'
    )
    template_min_count: int = setting(  # type: ignore[misc]
        2, "Attributes seen fewer times than this are dropped.", at_least=1
    )
    scorer: str = setting(
        "linear", "Scorer: from encoder vectors to tag scores", choices=tuple(SCORERS), option=True, goes_with=_OF_TAGS
    )
    hidden_units: int = setting(100, "Number of binary hidden units (scorer hidden-units).", at_least=1)
    tensor_slices: int = setting(4, "Number of slices (scorer tensor).", at_least=1)
    transitions: Transitions = setting("fixed", "Transition scores", choices=get_args(Transitions))
    segments: str = setting("pyramid", "Segment encoder (semi-CRFs)", choices=tuple(SEGMENT_SCORERS))
    segment_dim: int = setting(
        100, "Dimension of segment vectors (semi-CRFs).", at_least=1, option=True, search=Around(2),
        goes_with=_OF_SEGMENTS, searched_with=_OF_SEGMENTS,
    )  # fmt: skip
    max_length: int = setting(
        10, "Maximum segment length in tokens (semi-CRFs).", at_least=1, option=True, goes_with=_OF_SEGMENTS
    )
    label_scheme: LabelScheme = setting(
        "IOBES", "Tag scheme used for training", choices=get_args(LabelScheme), option=True, goes_with=_OF_TAGS
    )
    constrained: bool = setting(
        True, "Forbid tag sequences that violate the scheme (feature-based models, too).", option=True,
        off="unconstrained", goes_with=_OF_TAGS,
    )  # fmt: skip
    normalization: Normalization = setting("global", "Normalisation", choices=get_args(Normalization))


@dataclass(frozen=True)
class TrainedNetwork(Settings):
    """The network that training starts from."""

    PANEL = TrainingConfig.PANEL

    init: str | None = setting(
        None, "Start from the network in this directory: its settings, and its weights for all words and labels in "
        "common. The data may contain new words and labels.", option=True, metavar="DIR",
        goes_with={"kind": ("Tagger", "Segmenter")},
    )  # fmt: skip


# The names of the tasks of a model that learns several columns of tags.


MULTI_TASK = "multi-task"
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def task_names(given: str | None, format: ColumnFormat | None, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Return the names of the tasks: as given, else those of the columns.

    Args:
        given: names with commas between them; None takes those of the columns.
        format: the layout of the file that was read.
        sentences: the training data.

    Returns:
        A name for each column of tags.

    >>> task_names("pos,chunk", None, [Sentence(("Ann",), ("B-NP",), (("NNP",),))])
    ('pos', 'chunk')
    """
    n = len(sentences[0].features) + 1
    if n < 2:
        raise TrellisworkError(
            f"--model {MULTI_TASK} needs two columns of tags or more, got one; name them with --tag-columns, or "
            "train another model"
        )
    if given is None:
        return _names_of_columns(format, n)
    names = tuple(name.strip() for name in given.split(","))
    if len(names) != n or len(set(names)) < n or not all(names):
        raise TrellisworkError(f"--tasks must be {n} different names, one for each column of tags; got {given!r}")
    return names


def _names_of_columns(format: ColumnFormat | None, n: int) -> tuple[str, ...]:
    if format is None or format.tag_column is None:
        return (*(f"features-{i}" for i in range(1, n)), "tags")
    columns = (*format.feature_columns, format.tag_column)
    if isinstance(format, CsvFormat):
        return tuple(format.names[i - 1] for i in columns)
    return tuple(_CONLLU[i - 1] if format.conllu else f"column-{i}" for i in columns)
