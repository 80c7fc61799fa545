"""The settings of language models: units of text, counts and smoothing of n-grams, and what is generated."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from trelliswork.data.settings import WIDEST, Around, Numbers, OneOf, Settings, setting
from trelliswork.errors import TrellisworkError

Cell = Literal["elman", "gru", "lstm"]
Directions = Literal["forward", "both"]
Context = Literal["text", "sentence"]
Mixing = Literal["linear", "log-linear"]
Pattern = Literal["dense", "strided"]
PLAIN_TEXT = "plain text"  # what language models learn from, as `Model.learns_from` has it


@dataclass(frozen=True)
class TextFiles(Settings):
    """Text that a language model is learned from."""

    PANEL = "Language models"

    pretokenised: bool = setting(
        False, "Read one sentence per line, words separated by white space; without it, raw text is cut into sentences "
        "and words.", option=True,
    )  # fmt: skip
    more: tuple[str, ...] = setting((), "Further files of text.")


@dataclass(frozen=True)
class TextConfig(Settings):
    """Settings of the text: the units that a language model predicts."""

    PANEL, BY_MODEL = TextFiles.PANEL, True

    units: str = setting(
        "words", "What is predicted one after the other", choices=("words", "characters", "subwords"), option=True
    )
    merges: int = setting(
        8000, "Number of byte-pair merges that subwords are made by.", at_least=1, option=True,
        goes_with={"units": ("subwords",)},
    )  # fmt: skip
    least_count: int = setting(
        1, "Units seen fewer times than this map to <unk>.", at_least=1, option=True, search=OneOf((1, 2, 3))
    )


@dataclass(frozen=True)
class NgramConfig(Settings):
    """Settings of n-grams: how they are counted and smoothed.

    Chen and Goodman (1999), An empirical study of smoothing techniques for language modeling.
    """

    PANEL, BY_MODEL = TextFiles.PANEL, True

    order: int = setting(5, "Order of the n-gram model.", at_least=1, below=8, option=True, search=OneOf((3, 4, 5, 6)))
    smoothing: str = setting(
        "kneser-ney", "Smoothing: modified Kneser-Ney, Witten-Bell, or stupid back-off, whose scores do not sum to 1",
        choices=("kneser-ney", "witten-bell", "stupid"), option=True, search=OneOf(("kneser-ney", "witten-bell")),
    )  # fmt: skip
    cutoffs: str = setting(
        "", "Least counts of n-grams by length, such as 1,1,2: longer n-grams seen fewer times are left out.",
        option=True, metavar="N,N,...",
    )  # fmt: skip
    prune: float = setting(
        0.0, "Leave out n-grams without which perplexity rises by less than this share, such as 1e-8.", at_least=0,
        option=True, search=OneOf((0.0, 1e-9, 1e-8)),
    )  # fmt: skip
    counts_on_disk: str | None = setting(
        None, "Count in temporary files in this directory: for counts larger than memory.", option=True, metavar="DIR"
    )

    @property
    def least_counts(self) -> tuple[int, ...]:
        """Return the cut-offs as numbers."""
        try:
            return tuple(int(each) for each in self.cutoffs.split(",") if each)
        except ValueError as error:
            problem = f"cutoffs must be whole numbers with commas between them, such as 1,1,2; got {self.cutoffs!r}"
            raise TrellisworkError(problem) from error


@dataclass(frozen=True)
class NetworkText(TextConfig):
    """Settings that all networks over units have."""

    PANEL, BY_MODEL = TextFiles.PANEL, True

    word_dim: int = setting(256, "Dimension of the embeddings of units.", at_least=1, option=True, search=Around(2))
    context: Context = setting(
        "text", "What a sentence is read after, in training and by evaluate: all of the text before it, or nothing. "
        "Sentences to predict are read alone.", choices=get_args(Context), option=True,
        goes_with={"directions": ("forward",)},
    )  # fmt: skip
    steps: int = setting(
        35, "Units that gradients go back through (context text); a batch has batch_tokens / steps streams of text.",
        at_least=1, option=True, goes_with={"context": ("text",), "directions": ("forward",)},
    )  # fmt: skip
    dropout: float = setting(
        0.4,
        "Dropout on the output of the network.",
        at_least=0,
        below=1,
        option=True,
        search=Numbers(0, 0.7, step=0.05),
    )


@dataclass(frozen=True)
class WindowConfig(NetworkText):
    """Settings of feed-forward language models. Bengio et al. (2003), A neural probabilistic language model."""

    window: int = setting(4, "Number of units that the next one is predicted by.", at_least=1, option=True)
    hidden: int = setting(256, "Hidden units.", at_least=1, option=True, search=Around(2))
    direct: bool = setting(False, "Connect the embeddings of the window to the output layer directly.", option=True)


@dataclass(frozen=True)
class TransformerConfig(NetworkText):
    """Settings of transformer language models. Dai et al. (2019), Transformer-XL."""

    layers: int = setting(4, "Number of layers.", at_least=1, option=True)
    heads: int = setting(4, "Number of attention heads.", at_least=1)
    span: int = setting(
        128, "Number of units that a unit attends to, itself included, in this piece of the text and those before it.",
        at_least=1, option=True,
    )  # fmt: skip
    pattern: Pattern = setting(
        "dense", "Attend to all units in the span, or with half of the heads to the last ones and with half of them to "
        "every stride-th", choices=get_args(Pattern), option=True,
    )  # fmt: skip
    stride: int = setting(
        0, "The stride of the pattern strided; 0 is about the square root of the span.", at_least=0,
        goes_with={"pattern": ("strided",)},
    )  # fmt: skip


@dataclass(frozen=True)
class RecurrentConfig(NetworkText):
    """Settings of recurrent language models.

    Mikolov et al. (2010), Recurrent neural network based language model; Merity, Keskar and Socher (2018), Regularizing
    and optimizing LSTM language models.
    """

    directions: Directions = setting(
        "forward", "Read each text forwards, or each sentence in both directions, as an encoder for --pretrained",
        choices=get_args(Directions), option=True,
    )  # fmt: skip
    cell: Cell = setting("lstm", "Recurrent cell", choices=get_args(Cell), option=True)
    layers: int = setting(2, "Number of layers.", at_least=1, option=True)
    hidden: int = setting(
        256, "Units of each layer; with tied weights the top layer has word_dim units.", at_least=1, option=True,
        search=Around(2),
    )  # fmt: skip
    tied: bool = setting(True, "Use the embeddings of units as the weights of the output layer too.")
    input_dropout: float = setting(
        0.3, "Dropout on the embeddings, the same dimensions at all steps.", at_least=0, below=1, option=True,
        search=Numbers(0, 0.6, step=0.05),
    )  # fmt: skip
    hidden_dropout: float = setting(
        0.3, "Dropout between layers, the same units at all steps.", at_least=0, below=1, option=True,
        search=Numbers(0, 0.6, step=0.05),
    )  # fmt: skip
    recurrent_dropout: float = setting(
        0.2, "Dropout on the state of the step before, the same units at all steps.", at_least=0, below=1, option=True,
        search=Numbers(0, 0.5, step=0.05),
    )  # fmt: skip
    embedding_dropout: float = setting(0.0, "Dropout on the rows of the embedding table.", at_least=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.directions == "both" and self.hidden != self.word_dim:
            problem = "layers of both directions are mixed and have one width"
            raise TrellisworkError(f"{problem}; got hidden {self.hidden} and word_dim {self.word_dim}; set both alike")


@dataclass(frozen=True)
class MixtureConfig(Settings):
    """Settings of mixtures of language models."""

    PANEL, BY_MODEL = TextFiles.PANEL, True

    parts: str = setting(
        "", "Folders of the language models to mix, with commas between them.", option=True, metavar="DIR,DIR,..."
    )
    mixing: Mixing = setting(
        "linear", "Mix probabilities, or their logarithms (sentence by sentence, and slow)", choices=get_args(Mixing),
        option=True,
    )  # fmt: skip
    cache: int = setting(
        0, "Number of last units of a continuous cache over the first model, a network; 0 for none.", at_least=0,
        option=True, goes_with={"mixing": ("linear",)},
    )  # fmt: skip


# Requests to a language model.


@dataclass(frozen=True)
class GenerationSettings(Settings):
    """Request to a language model, and the way it answers."""

    PANEL = TextFiles.PANEL

    score: bool = setting(
        False, "Write the log probability (natural) of each token and sentence. This is the default.", option=True
    )
    sample: int = setting(
        0, "Sample this many continuations of each line of FILE; - on a terminal begins new sentences.", at_least=0,
        option=True, metavar="N",
    )  # fmt: skip
    beam: int = setting(
        0, "Write the most probable continuation of each line of FILE, found by a beam search of this width; 1 is "
        "greedy.", at_least=0, below=WIDEST, option=True, metavar="N",
    )  # fmt: skip
    nucleus: float = setting(
        1.0, "Sample from the smallest set of tokens whose probabilities sum to at least P; --top-k samples from the K "
        "most probable ones.", above=0, option=True, metavar="P",
    )  # fmt: skip
    temperature: float = setting(1.0, "Divide log probabilities by this before sampling.", above=0, option=True)
    seed: int = setting(0, "Seed of samples.", at_least=0, option=True)
    longest: int = setting(200, "Maximum number of tokens of a continuation.", at_least=1, option=True)
    constraint: str | None = setting(
        None, "Write only sentences that match this regular expression over tokens, such as 'the (cat|dog) .*', or "
        "the acceptor in this file (.fst, text format of OpenFst). FILE must be - and is not read.", option=True,
        metavar="FILE|REGEX",
    )  # fmt: skip


# Word vectors.


WORD_PAIRS = "word pairs"  # what word vectors are judged by
VectorMethod = Literal["skipgram", "sppmi"]
OF_METHOD: dict[VectorMethod, tuple[str, ...]] = {
    "skipgram": ("epochs", "lr", "subsample", "min_ngram", "max_ngram", "buckets"), "sppmi": ("alpha", "fit_dim"),
}  # fmt: skip


@dataclass(frozen=True)
class VectorConfig(Settings):
    """Settings of word vectors: skip-gram with negative sampling and character n-grams, or shifted PMI.

    Bojanowski et al. (2017), Enriching word vectors with subword information; Levy, Goldberg and Dagan (2015),
    Improving distributional similarity with lessons learned from word embeddings.
    """

    PANEL, BY_MODEL = "Word vectors", True

    method: VectorMethod = setting(
        "skipgram", "Skip-gram with negative sampling, or shifted positive PMI and a singular value decomposition",
        choices=get_args(VectorMethod), option=True,
    )  # fmt: skip
    dim: int = setting(100, "Dimension of the vectors.", at_least=1, below=10_001, option=True, search=Around(2))
    window: int = setting(
        5, "Words on each side that a word predicts, at most; each window is drawn between 1 and this.", at_least=1,
        below=1001, option=True, search=OneOf((2, 3, 5, 8)),
    )  # fmt: skip
    negatives: int = setting(
        5, "Words of noise for each pair; for sppmi the shift, as its logarithm.", at_least=1, option=True,
        search=OneOf((3, 5, 10)),
    )  # fmt: skip
    lower: bool = setting(False, "Convert words to lower case.", option=True)
    epochs: int = setting(5, "Passes over the text (skipgram).", at_least=1, option=True)
    lr: float = setting(0.05, "Learning rate of the first step; it falls to 0 (skipgram).", above=0, option=True)
    subsample: float = setting(
        1e-4, "Words of a larger share of the text are read less often; 0 reads all (skipgram).", at_least=0,
        option=True,
    )  # fmt: skip
    min_ngram: int = setting(3, "Length of the shortest character n-grams (skipgram).", at_least=1, option=True)
    max_ngram: int = setting(
        6, "Length of the longest character n-grams; 0 for words without n-grams (skipgram).", at_least=0, option=True
    )
    buckets: int = setting(
        2_000_000, "Hash buckets of character n-grams; those that are used take memory (skipgram).", at_least=1,
        option=True,
    )  # fmt: skip
    alpha: float = setting(
        0.5, "Exponent of the singular values (sppmi).", at_least=0, option=True, search=Numbers(0.0, 1.0, step=0.25)
    )
    fit_dim: bool = setting(
        False, "Use the dimension, at most --dim, with the least estimated PIP loss (sppmi).", option=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        defaults = {each.name: each.default for each in fields(self)}
        for method, names in OF_METHOD.items():
            given = [name for name in names if getattr(self, name) != defaults[name] and method != self.method]
            if given:
                problem = f"--{given[0].replace('_', '-')} is not used by --method {self.method}"
                raise TrellisworkError(f"{problem}; leave one of them out")
