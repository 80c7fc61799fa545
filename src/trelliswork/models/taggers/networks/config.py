"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import setting
from trelliswork.models.networks.config import NetworkConfig
from trelliswork.models.taggers.networks.scorers import SCORERS, SEGMENT_SCORERS
from trelliswork.training.search_space import Around

Transitions = Literal["fixed", "network"]
LabelScheme = Literal["IOBES", "data"]
_OF_TAGS, _OF_SEGMENTS = {"kind": ("Tagger", "MultiTagger")}, {"kind": ("Segmenter",)}
Normalization = Literal["global", "local"]


@dataclass(frozen=True)
class TaggerConfig(NetworkConfig):
    """What a tagger is made of; the defaults suit a few hundred thousand tokens of text.

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
        2, "Attributes seen fewer times are left out.", at_least=1
    )
    scorer: str = setting(
        "linear", "From vectors to scores of tags", choices=tuple(SCORERS), option=True, goes_with=_OF_TAGS
    )
    hidden_units: int = setting(100, "Binary units of the scorer hidden-units.", at_least=1)
    tensor_slices: int = setting(4, "Comparisons of the scorer tensor.", at_least=1)
    transitions: Transitions = setting("fixed", "What scores pairs of tags", choices=get_args(Transitions))
    segments: str = setting("pyramid", "What sees segments (semi-CRFs)", choices=tuple(SEGMENT_SCORERS))
    segment_dim: int = setting(
        100, "Width of segment vectors (semi-CRFs).", at_least=1, option=True, search=Around(2),
        goes_with=_OF_SEGMENTS, searched_with=_OF_SEGMENTS,
    )  # fmt: skip
    max_length: int = setting(
        10, "Tokens of the longest segment (semi-CRFs).", at_least=1, option=True, goes_with=_OF_SEGMENTS
    )
    label_scheme: LabelScheme = setting(
        "IOBES", "Learn tags as", choices=get_args(LabelScheme), option=True, goes_with=_OF_TAGS
    )
    constrained: bool = setting(
        True, "Forbid illegal tag sequences (models over features, too).", option=True, off="unconstrained",
        goes_with=_OF_TAGS,
    )  # fmt: skip
    normalization: Normalization = setting("global", "What sums to one", choices=get_args(Normalization))
