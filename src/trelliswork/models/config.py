"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from trelliswork.errors import TrellisworkError
from trelliswork.nn.initialization import FanInScheme

Scorer = Literal["linear", "context", "hidden-units"]
Encoder = Literal["window", "lstm", "gru", "deep"]
Transitions = Literal["fixed", "network"]
Segments = Literal["pyramid", "endpoints"]
Characters = Literal["none", "cnn", "lstm"]
LabelScheme = Literal["IOBES", "data"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "scorer": get_args(Scorer),
    "transitions": get_args(Transitions),
    "encoder": get_args(Encoder),
    "characters": get_args(Characters),
    "segments": get_args(Segments),
    "label_scheme": get_args(LabelScheme),
    "initialization": get_args(FanInScheme),
}
_RATES = ("dropout", "hidden_dropout", "unknown_dropout")
_POSITIVE = (
    "word_dim", "capitals_dim", "affix_dim", "column_dim", "character_dim", "character_hidden", "min_count",
    "affix_min_count", "hidden", "layers", "max_length", "segment_dim", "n_units",
)  # fmt: skip


@dataclass(frozen=True)
class TaggerConfig:
    """What a tagger is made of; the defaults suit a few hundred thousand tokens of text.

    Features: `word_dim`, `capitals_dim`, `affix_dim` (each prefix and suffix length), `column_dim` (each extra
    column of the data) are the widths of the lookup tables. Words seen less than `min_count` times and affixes
    seen less than `affix_min_count` times are unknown; in training a known word is also read as unknown with
    probability `unknown_dropout`.

    `characters` says how words are read letter by letter. `vector_dim` is the width of pretrained vectors, 0 if there
    are none; `tune_vectors` trains them on.

    Network: `encoder` looks at a `window` of tokens or, recurrent, at the whole sentence, with `hidden` units (in each
    direction) and `layers`; `dropout` on what goes in, `hidden_dropout` on what comes out. `scorer="linear"` is the
    last layer of [S3], `"context"` adds the neighbours of [S1], `"hidden-units"` puts `n_units` binary units between.
    `encoder="deep"` has `layers` hidden layers over the window, `transitions="network"` scores pairs of labels with
    it too: together the neural CRF of [S4.213-215].

    Segments (of a `Segmenter`): at most `max_length` tokens, seen through a "pyramid" of vectors of `segment_dim`
    [S0] or by their "endpoints", mean and length.

    Labels: span tags are learned as `label_scheme="IOBES"` whatever the scheme of the data (or `"data"`: as they
    are); `constrained` forbids sequences that are illegal in the scheme.

        >>> TaggerConfig(window=7).window
        7
    """

    word_dim: int = 64
    capitals_dim: int = 5
    affix_dim: int = 16
    column_dim: int = 20
    prefix_lengths: tuple[int, ...] = (2, 3, 4)
    suffix_lengths: tuple[int, ...] = (2, 3, 4)
    min_count: int = 1
    affix_min_count: int = 3
    lowercase: bool = True
    digits_to_zero: bool = True
    characters: Characters = "none"
    character_dim: int = 25
    character_hidden: int = 50
    vector_dim: int = 0
    tune_vectors: bool = False
    encoder: Encoder = "window"
    window: int = 5
    layers: int = 1
    hidden: int = 300
    dropout: float = 0.3
    hidden_dropout: float = 0.0
    unknown_dropout: float = 0.1
    scorer: Scorer = "linear"
    n_units: int = 100
    transitions: Transitions = "fixed"
    segments: Segments = "pyramid"
    segment_dim: int = 100
    max_length: int = 10
    initialization: FanInScheme = "uniform"
    label_scheme: LabelScheme = "IOBES"
    constrained: bool = True

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise TrellisworkError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        for name in _RATES:
            if not 0 <= getattr(self, name) < 1:
                raise TrellisworkError(f"{name} must lie in [0, 1); got {getattr(self, name)}; try 0.3")
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise TrellisworkError(f"{name} must be at least 1; got {getattr(self, name)}")
        if min((*self.prefix_lengths, *self.suffix_lengths), default=1) < 1:
            raise TrellisworkError("prefix_lengths and suffix_lengths must be at least 1; drop the others")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TaggerConfig:
        """The inverse of `to_dict`; a setting nobody knows is an error."""
        unknown = sorted(set(settings) - {field.name for field in fields(cls)})
        if unknown:
            raise TrellisworkError(f"expected settings of a tagger; got {', '.join(unknown)}; remove them")
        lengths = {name: tuple(settings[name]) for name in ("prefix_lengths", "suffix_lengths") if name in settings}
        return cls(**{**settings, **lengths})
