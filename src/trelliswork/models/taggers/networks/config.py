"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.taggers.networks.parts import (
    CHARACTERS,
    ENCODERS,
    SCORERS,
    SEGMENT_SCORERS,
    encoders_with,
)
from trelliswork.training.search_space import Around, Numbers

Transitions = Literal["fixed", "network"]
LabelScheme = Literal["IOBES", "data"]
_OF_TAGS, _OF_SEGMENTS = {"kind": ("Tagger", "MultiTagger")}, {"kind": ("Segmenter",)}
Normalization = Literal["global", "local"]
Initialization = Literal["uniform", "normal", "literal"]


@dataclass(frozen=True)
class TaggerConfig(Settings):
    """What a tagger is made of; the defaults suit a few hundred thousand tokens of text.

    `encoder` looks at a `window` of tokens ("window"; "sentence": filters of that width over the whole sentence), from
    both ends ("lstm", "gru": `hidden` units in each direction), with attention ("transformer") or through ever wider
    filters ("dilated"). `scorer="context"` also reads the neighbours of a token, "hidden-units" sums out binary units,
    "tensor" compares with a vector for each label. `encoder="deep"` with `transitions="network"`, which lets it score
    pairs of labels too, is the neural CRF of Do and Artieres (2010, Neural conditional random fields); its layers begin
    as RBMs, in `pretrain_epochs` passes over the training words.

    Span tags are learned as `label_scheme="IOBES"` whatever the scheme of the data, or as they are. With
    `normalization="local"` each tag is a choice given the tag before it, as in a maximum-entropy Markov model.

        >>> TaggerConfig(window=7).window
        7
    """

    PANEL, BY_MODEL = "Network", True

    word_dim: int = setting(64, "Width of word vectors.", at_least=1, option=True, search=Around(2))
    capitals_dim: int = setting(5, "Width of the vectors of capitalization.", at_least=1)
    affix_dim: int = setting(16, "Width of affix vectors.", at_least=1, option=True)
    column_dim: int = setting(20, "Width of column vectors.", at_least=1, option=True)
    prefix_lengths: tuple[int, ...] = setting((2, 3, 4), "Lengths of prefixes.")
    suffix_lengths: tuple[int, ...] = setting((2, 3, 4), "Lengths of suffixes.")
    min_count: int = setting(1, "Words seen fewer times than this are unknown.", at_least=1, option=True)
    affix_min_count: int = setting(3, "The same for affixes and characters.", at_least=1)
    lowercase: bool = setting(True, "Look words up in lower case.")
    digits_to_zero: bool = setting(True, "Read every digit as 0.")
    characters: str = setting("none", "Words letter by letter", choices=tuple(CHARACTERS), option=True)
    character_dim: int = setting(25, "Width of character vectors.", at_least=1)
    character_hidden: int = setting(50, "Width of words read letter by letter.", at_least=1)
    vector_dim: int = setting(0, "Width of pretrained vectors, 0 if there are none; set by the file of vectors.")
    tune_vectors: bool = setting(False, "Train the pretrained vectors on.", option=True)
    ngrams: tuple[int, ...] = setting((), "Lengths of character n-grams whose vectors are summed for each word.")
    ngram_dim: int = setting(50, "Width of n-gram vectors.", at_least=1)
    ngram_buckets: int = setting(20_000, "Rows of the table of n-grams.", at_least=1)
    templates: tuple[str, ...] = setting(
        (), 'Lines of a CRF++ file, or "default": attributes that score labels directly.'
    )
    template_min_count: int = setting(2, "Attributes seen fewer times are left out.", at_least=1)
    pretrained: str = setting("", "An encoder of Hugging Face whose vectors go in as well.")
    tune_pretrained: bool = setting(True, "Train that encoder on.")
    encoder: str = setting("window", "What looks at the neighbours of a token", choices=tuple(ENCODERS), option=True)
    window: int = setting(5, "Tokens that are seen at once.", option=True, goes_with=encoders_with("window"))
    layers: int = setting(1, "Layers of the encoder.", at_least=1, option=True, goes_with=encoders_with("layers"))
    hidden: int = setting(
        300, "Hidden units (in each direction).", at_least=1, option=True, goes_with=encoders_with("hidden"),
        search=Around(3), searched_with=encoders_with("hidden"),
    )  # fmt: skip
    heads: int = setting(4, "Heads of attention (transformer).", at_least=1)
    width: int = setting(3, "Words under a filter (dilated).", at_least=1)
    causal: bool = setting(False, "Filters end at the token (dilated).")
    dropout: float = setting(
        0.3, "Share of inputs dropped.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.7, step=0.05)
    )
    hidden_dropout: float = setting(
        0.0,
        "Share of encoded dimensions dropped.",
        at_least=0,
        below=1,
        option=True,
        search=Numbers(0.0, 0.6, step=0.05),
    )
    unknown_dropout: float = setting(0.1, "Share of words read as unknown.", at_least=0, below=1, option=True)
    word_dropout: float = setting(0.0, "Share of tokens dropped.", at_least=0, below=1)
    embedding_dropout: float = setting(0.0, "Share of rows of the table of words dropped.", at_least=0, below=1)
    scorer: str = setting(
        "linear", "From vectors to scores of tags", choices=tuple(SCORERS), option=True, goes_with=_OF_TAGS
    )
    hidden_units: int = setting(100, "Binary units of the scorer hidden-units.", at_least=1)
    tensor_slices: int = setting(4, "Comparisons of the scorer tensor.", at_least=1)
    transitions: Transitions = setting("fixed", "What scores pairs of tags", choices=get_args(Transitions))
    pretrain_epochs: int = setting(
        0, "Passes of the layers over words without tags (deep).", at_least=0, option=True,
        goes_with={"encoder": ("deep",)},
    )  # fmt: skip
    segments: str = setting("pyramid", "What sees segments (semi-CRFs)", choices=tuple(SEGMENT_SCORERS))
    segment_dim: int = setting(
        100, "Width of segment vectors (semi-CRFs).", at_least=1, option=True, search=Around(2),
        goes_with=_OF_SEGMENTS, searched_with=_OF_SEGMENTS,
    )  # fmt: skip
    max_length: int = setting(
        10, "Tokens of the longest segment (semi-CRFs).", at_least=1, option=True, goes_with=_OF_SEGMENTS
    )
    initialization: Initialization = setting("uniform", "First weights by the fan-in", choices=get_args(Initialization))
    label_scheme: LabelScheme = setting(
        "IOBES", "Learn tags as", choices=get_args(LabelScheme), option=True, goes_with=_OF_TAGS
    )
    constrained: bool = setting(
        True, "Forbid illegal tag sequences (models over features, too).", option=True, off="unconstrained",
        goes_with=_OF_TAGS,
    )  # fmt: skip
    normalization: Normalization = setting("global", "What sums to one", choices=get_args(Normalization))

    def __post_init__(self) -> None:
        super().__post_init__()
        if min((*self.prefix_lengths, *self.suffix_lengths, *self.ngrams), default=1) < 1:
            raise TrellisworkError("prefix_lengths, suffix_lengths and ngrams must be at least 1; drop the others")
        if self.pretrain_epochs and self.encoder != "deep":
            raise TrellisworkError(
                f'pretrain_epochs must be 0, or more with encoder="deep"; got {self.pretrain_epochs} with '
                f"{self.encoder!r}; set one of them"
            )
