"""The settings of a tagger, as they are written into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from trelliswork.data.setting_kinds import check_settings
from trelliswork.errors import TrellisworkError
from trelliswork.nn.initialization import FanInScheme

Scorer = Literal["linear", "context", "hidden-units", "tensor"]
Encoder = Literal["window", "sentence", "lstm", "gru", "transformer", "dilated", "deep", "none"]
Transitions = Literal["fixed", "network"]
Segments = Literal["pyramid", "endpoints"]
Characters = Literal["none", "cnn", "lstm"]
LabelScheme = Literal["IOBES", "data"]
Normalization = Literal["global", "local"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "scorer": get_args(Scorer),
    "transitions": get_args(Transitions),
    "encoder": get_args(Encoder),
    "characters": get_args(Characters),
    "segments": get_args(Segments),
    "label_scheme": get_args(LabelScheme),
    "normalization": get_args(Normalization),
    "initialization": get_args(FanInScheme),
}
_RATES = ("dropout", "hidden_dropout", "unknown_dropout", "word_dropout", "embedding_dropout")
_LISTS = ("prefix_lengths", "suffix_lengths", "ngrams", "templates")
_POSITIVE = (
    "word_dim", "capitals_dim", "affix_dim", "column_dim", "character_dim", "character_hidden", "min_count",
    "affix_min_count", "hidden", "layers", "max_length", "segment_dim", "heads", "width", "ngram_dim", "ngram_buckets",
    "template_min_count", "hidden_units", "tensor_slices",
)  # fmt: skip


@dataclass(frozen=True)
class TaggerConfig:
    """What a tagger is made of; the defaults suit a few hundred thousand tokens of text.

    Features: `word_dim`, `capitals_dim`, `affix_dim` (each prefix and suffix length), `column_dim` (each extra
    column of the data) are the widths of the lookup tables. Words seen less than `min_count` times and affixes
    seen less than `affix_min_count` times are unknown; in training a known word is also read as unknown with
    probability `unknown_dropout`.

    `characters` says how words are read letter by letter. `vector_dim` is the width of pretrained vectors, 0 if there
    are none; `tune_vectors` trains them on. `ngrams` are lengths of character n-grams whose vectors, `ngram_dim` wide
    in `ngram_buckets` rows, are summed for each word. `templates` (lines of a CRF++ file, or "default") make attributes
    that score labels directly, beside the network; those seen less than `template_min_count` times are left out.
    `pretrained` names an encoder of Hugging Face whose vectors go in as well; `tune_pretrained` trains it on.

    Network: `encoder` looks at a `window` of tokens ("window"), at the whole sentence through filters of `window` words
    ("sentence"), from both ends ("lstm", "gru": `hidden` units in each direction), with attention ("transformer": so
    many `heads`) or through ever wider filters of `width` words ("dilated": they end at the token if `causal`); there
    are `layers` of it. "none" looks at nothing. `dropout` on what goes in, `hidden_dropout` on what comes out,
    `word_dropout` on whole tokens, `embedding_dropout` on whole rows of the table of words. `scorer="linear"` is the
    last layer of [S3], `"context"` adds the neighbours of [S1], "hidden-units" sums out so many `hidden_units`,
    "tensor" compares with a vector for each label in `tensor_slices` ways. `encoder="deep"` has `layers` hidden layers
    over the window, `transitions="network"` scores pairs of labels with it too: together the neural CRF of
    [S4.213-215]; its hidden layers begin as RBMs, in `pretrain_epochs` passes over the training words.

    Segments (of a `Segmenter`): at most `max_length` tokens, seen through a "pyramid" of vectors of `segment_dim`
    [S0] or by their "endpoints", mean and length.

    Labels: span tags are learned as `label_scheme="IOBES"` whatever the scheme of the data (or `"data"`: as they
    are); `constrained` forbids sequences that are illegal in the scheme. `normalization="local"` makes each tag a
    choice given the tag before it, as in a maximum-entropy Markov model, instead of scoring whole sequences.

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
    ngrams: tuple[int, ...] = ()
    ngram_dim: int = 50
    ngram_buckets: int = 20_000
    templates: tuple[str, ...] = ()
    template_min_count: int = 2
    pretrained: str = ""
    tune_pretrained: bool = True
    encoder: Encoder = "window"
    window: int = 5
    layers: int = 1
    hidden: int = 300
    heads: int = 4
    width: int = 3
    causal: bool = False
    dropout: float = 0.3
    hidden_dropout: float = 0.0
    unknown_dropout: float = 0.1
    word_dropout: float = 0.0
    embedding_dropout: float = 0.0
    scorer: Scorer = "linear"
    hidden_units: int = 100
    tensor_slices: int = 4
    transitions: Transitions = "fixed"
    pretrain_epochs: int = 0
    segments: Segments = "pyramid"
    segment_dim: int = 100
    max_length: int = 10
    initialization: FanInScheme = "uniform"
    label_scheme: LabelScheme = "IOBES"
    constrained: bool = True
    normalization: Normalization = "global"

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
        if min((*self.prefix_lengths, *self.suffix_lengths, *self.ngrams), default=1) < 1:
            raise TrellisworkError("prefix_lengths, suffix_lengths and ngrams must be at least 1; drop the others")
        if self.pretrain_epochs < 0 or (self.pretrain_epochs and self.encoder != "deep"):
            raise TrellisworkError(
                f'pretrain_epochs must be 0, or more with encoder="deep"; got {self.pretrain_epochs} with '
                f"{self.encoder!r}; set one of them"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TaggerConfig:
        """The inverse of `to_dict`; a setting that nobody knows, or of another kind, is an error."""
        check_settings(cls, settings)
        lists = {name: tuple(settings[name]) for name in _LISTS if name in settings}
        return cls(**{**settings, **lists})
