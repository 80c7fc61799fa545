"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Around, Settings, setting
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
