"""The settings of what every network over words has: inputs and an encoder. Each kind of model adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from trelliswork.data.settings import Around, Numbers, Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.parts import CHARACTERS, encoder_names, encoders_with
from trelliswork.training.config import TrainingConfig

Initialization = Literal["uniform", "normal", "literal"]
PretrainedTraining = Literal["tuned", "frozen", "frozen-first"]
WordVector = Literal["first", "mean"]
LayerChoice = Literal["last", "mix"]
StoredPrecision = Literal["float32", "float16"]


@dataclass(frozen=True)
class PretrainedConfig(Settings):
    """Settings of a pretrained encoder that a network reads words with, if it has one."""

    pretrained: str = setting(
        "", "Encoder to read with: the name or directory of one of Hugging Face, or the directory of an rnn-lm.",
        option=True, metavar="NAME|DIR",
    )  # fmt: skip
    pretrained_training: PretrainedTraining = setting(
        "tuned", "Fine-tune the pretrained encoder, keep it frozen, or freeze it for the first epochs only",
        choices=get_args(PretrainedTraining), option=True,
    )  # fmt: skip
    pretrained_frozen_epochs: int = setting(
        1, "Number of epochs before the pretrained encoder is fine-tuned (frozen-first).", at_least=1, option=True,
        goes_with={"pretrained_training": ("frozen-first",)},
    )  # fmt: skip
    pretrained_words: WordVector = setting(
        "first", "Vector of a word in the pretrained encoder: that of its first sub-word or the mean",
        choices=get_args(WordVector), option=True,
    )  # fmt: skip
    pretrained_layers: LayerChoice = setting(
        "last", "Layers of the pretrained encoder that are used; mix learns a weight for each",
        choices=get_args(LayerChoice), option=True,
    )  # fmt: skip
    pretrained_storage: StoredPrecision = setting(
        "float32", "Precision of the weights of the pretrained encoder in the model directory",
        choices=get_args(StoredPrecision), option=True,
    )  # fmt: skip
    tune_pretrained: bool = setting(True, "False is an earlier way to write pretrained_training = frozen.")

    @property
    def encoder_training(self) -> PretrainedTraining:
        """Return how the pretrained encoder is trained."""
        return self.pretrained_training if self.tune_pretrained else "frozen"


@dataclass(frozen=True)
class NetworkConfig(PretrainedConfig):
    """Settings of how words become vectors, and of the layer that looks at their neighbours.

    `encoder` looks at a `window` of tokens ("window"; "sentence": filters of that width over the whole sentence), from
    both ends ("lstm", "gru": `hidden` units in each direction), with attention ("transformer") or through ever wider
    filters ("dilated"). The layers of `encoder="deep"` begin as RBMs, in `pretrain_epochs` passes over the words.

        >>> NetworkConfig(window=7).window
        7
    """

    PANEL, BY_MODEL = "Network", True
    templates: ClassVar[tuple[str, ...]] = ()  # taggers may have some
    template_min_count: ClassVar[int] = 1

    word_dim: int = setting(64, "Dimension of word embeddings.", at_least=1, option=True, search=Around(2))
    capitals_dim: int = setting(5, "Dimension of capitalisation embeddings.", at_least=1)
    affix_dim: int = setting(16, "Dimension of affix embeddings.", at_least=1, option=True)
    column_dim: int = setting(20, "Dimension of the embeddings of additional columns.", at_least=1, option=True)
    prefix_lengths: tuple[int, ...] = setting((2, 3, 4), "Prefix lengths.")
    suffix_lengths: tuple[int, ...] = setting((2, 3, 4), "Suffix lengths.")
    min_count: int = setting(1, "Words seen fewer times than this map to <unk>.", at_least=1, option=True)
    affix_min_count: int = setting(3, "Affixes and characters seen fewer times than this map to <unk>.", at_least=1)
    lowercase: bool = setting(True, "Lower-case words before lookup.")
    digits_to_zero: bool = setting(True, "Replace every digit by 0.")
    characters: str = setting("none", "Character-level word encoder", choices=tuple(CHARACTERS), option=True)
    character_dim: int = setting(25, "Dimension of character embeddings.", at_least=1)
    character_hidden: int = setting(50, "Output dimension of the character-level encoder.", at_least=1)
    vector_dim: int = setting(0, "Dimension of pretrained vectors, 0 for none; set by the vector file.")
    tune_vectors: bool = setting(False, "Fine-tune the pretrained vectors.", option=True)
    ngrams: tuple[int, ...] = setting(
        (), "Lengths of hashed character n-grams, whose embeddings are summed for each word."
    )
    ngram_dim: int = setting(50, "Dimension of n-gram embeddings.", at_least=1)
    ngram_buckets: int = setting(20_000, "Number of rows of the n-gram hash table.", at_least=1)
    encoder: str = setting("window", "Context encoder", choices=encoder_names(), option=True)
    window: int = setting(5, "Window size in tokens.", option=True, goes_with=encoders_with("window"))
    layers: int = setting(1, "Number of encoder layers.", at_least=1, option=True, goes_with=encoders_with("layers"))
    hidden: int = setting(
        300, "Hidden units (per direction).", at_least=1, option=True, goes_with=encoders_with("hidden"),
        search=Around(3), searched_with=encoders_with("hidden"),
    )  # fmt: skip
    heads: int = setting(4, "Number of attention heads (transformer).", at_least=1)
    width: int = setting(3, "Filter width (dilated).", at_least=1)
    causal: bool = setting(False, "Causal filters, which see no later tokens (dilated).")
    dropout: float = setting(
        0.3, "Dropout on the inputs.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.7, step=0.05)
    )
    hidden_dropout: float = setting(
        0.0,
        "Dropout on the encoder output.",
        at_least=0,
        below=1,
        option=True,
        search=Numbers(0.0, 0.6, step=0.05),
    )
    unknown_dropout: float = setting(
        0.1, "Probability of replacing a word by <unk> in training.", at_least=0, below=1, option=True
    )
    word_dropout: float = setting(0.0, "Probability of dropping a whole token vector in training.", at_least=0, below=1)
    embedding_dropout: float = setting(0.0, "Dropout on the rows of the word embedding table.", at_least=0, below=1)
    pretrain_epochs: int = setting(
        0, "Epochs of unsupervised pre-training of the layers (deep).", at_least=0, option=True,
        goes_with={"encoder": ("deep",)},
    )  # fmt: skip
    initialization: Initialization = setting("uniform", "Weight initialisation", choices=get_args(Initialization))

    def __post_init__(self) -> None:
        if isinstance(self.encoder, str) and self.encoder not in encoder_names():
            problem = f"encoder must be one of {', '.join(encoder_names())}; got {self.encoder!r}"
            raise TrellisworkError(f"{problem}; if it comes from another package, install that")
        super().__post_init__()
        if min((*self.prefix_lengths, *self.suffix_lengths, *self.ngrams), default=1) < 1:
            raise TrellisworkError("prefix_lengths, suffix_lengths and ngrams must be at least 1; drop the others")
        if self.pretrain_epochs and self.encoder != "deep":
            raise TrellisworkError(
                f'pretrain_epochs must be 0, or more with encoder="deep"; got {self.pretrain_epochs} with '
                f"{self.encoder!r}; set one of them"
            )


@dataclass(frozen=True)
class VectorFile(Settings):
    """The file of vectors that a network reads in addition to the data."""

    PANEL = NetworkConfig.PANEL

    vectors: str | None = setting(
        None,
        "Pretrained word vectors in text format, optionally .gz (GloVe, word2vec, fastText).",
        option=True,
        metavar="FILE",
    )


@dataclass(frozen=True)
class KeptEncodings(Settings):
    """Settings of the vectors of a frozen pretrained encoder that are kept."""

    PANEL = NetworkConfig.PANEL

    pretrained_cache: str | None = setting(
        None,
        "Directory that keeps the vectors of a frozen pretrained encoder for later runs.",
        option=True,
        metavar="DIR",
        default_text="a temporary file",
    )


@dataclass(frozen=True)
class Machine(Settings):
    """The device on which a network is trained."""

    PANEL = TrainingConfig.PANEL

    device: str = setting(
        "auto", "Device to train on; auto is the first CUDA GPU, or the CPU", choices=("auto", "cpu", "cuda", "mps"),
        option=True,
    )  # fmt: skip
