"""The settings of what every network over words has: inputs and an encoder. Each kind of model adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from trelliswork.data.settings import Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.parts import CHARACTERS, ENCODERS, encoders_with
from trelliswork.training.search_space import Around, Numbers

Initialization = Literal["uniform", "normal", "literal"]


@dataclass(frozen=True)
class NetworkConfig(Settings):
    """How words become vectors, and what looks at their neighbours.

    `encoder` looks at a `window` of tokens ("window"; "sentence": filters of that width over the whole sentence), from
    both ends ("lstm", "gru": `hidden` units in each direction), with attention ("transformer") or through ever wider
    filters ("dilated"). The layers of `encoder="deep"` begin as RBMs, in `pretrain_epochs` passes over the words.

        >>> NetworkConfig(window=7).window
        7
    """

    PANEL, BY_MODEL = "Network", True
    templates: ClassVar[tuple[str, ...]] = ()  # taggers may have some
    template_min_count: ClassVar[int] = 1

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
    pretrain_epochs: int = setting(
        0, "Passes of the layers over words without tags (deep).", at_least=0, option=True,
        goes_with={"encoder": ("deep",)},
    )  # fmt: skip
    initialization: Initialization = setting("uniform", "First weights by the fan-in", choices=get_args(Initialization))

    def __post_init__(self) -> None:
        super().__post_init__()
        if min((*self.prefix_lengths, *self.suffix_lengths, *self.ngrams), default=1) < 1:
            raise TrellisworkError("prefix_lengths, suffix_lengths and ngrams must be at least 1; drop the others")
        if self.pretrain_epochs and self.encoder != "deep":
            raise TrellisworkError(
                f'pretrain_epochs must be 0, or more with encoder="deep"; got {self.pretrain_epochs} with '
                f"{self.encoder!r}; set one of them"
            )
