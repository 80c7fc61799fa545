"""Settings of transducers: pair files, pair n-grams, edit transducers and attention models.

Those of networks from questions to meanings are in `semantic/config.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.pairs import NormalForm, PairFormat, Units
from trelliswork.data.settings import WIDEST, Around, Numbers, OneOf, Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.config import PretrainedConfig


@dataclass(frozen=True)
class PairFiles(Settings):
    """Settings of pair files: how the texts of both sides are cut into symbols."""

    PANEL = "Pairs"

    source_units: Units = setting("auto", "Units of the source", choices=get_args(Units), option=True)
    target_units: Units = setting("auto", "Units of the target", choices=get_args(Units), option=True)
    normalise: NormalForm = setting(
        "auto", "Unicode normal form of the symbols; answers are spelt as the training targets are",
        choices=get_args(NormalForm), option=True,
    )  # fmt: skip
    lower: bool = setting(False, "Convert sources to lower case.", option=True)
    strip_marks: bool = setting(False, "Remove accents and points from sources.", option=True)

    @property
    def format(self) -> PairFormat:
        """The same for readers."""
        return PairFormat(self.source_units, self.target_units, self.normalise, self.lower, self.strip_marks)


# Pair n-grams.


Unalignable = Literal["grow", "skip", "error"]


@dataclass(frozen=True)
class PairNgramConfig(Settings):
    """Settings of a pair n-gram: the alignment of pairs, and the n-grams that are counted.

    Bisani and Ney (2008), Joint-sequence models for grapheme-to-phoneme conversion; Novak, Minematsu and Hirose (2016),
    Phonetisaurus: exploring grapheme-to-phoneme conversion with joint n-gram models in the WFST framework.
    """

    PANEL, BY_MODEL = "Pair n-grams", True

    order: int = setting(
        8, "Order of the n-gram model.", at_least=1, below=17, option=True, search=OneOf((5, 6, 7, 8, 9))
    )
    source_chunk: int = setting(2, "Maximum number of source symbols per chunk.", at_least=1, below=9, option=True,
                                search=OneOf((1, 2, 3)))  # fmt: skip
    target_chunk: int = setting(2, "Maximum number of target symbols per chunk.", at_least=1, below=33, option=True,
                                search=OneOf((1, 2, 3)))  # fmt: skip
    many_to_many: bool = setting(False, "Allow many-to-many chunks.", option=True)
    unalignable: Unalignable = setting(
        "grow", "Pairs that no alignment covers: allow larger chunks, skip the pair, or stop with an error",
        choices=get_args(Unalignable), option=True,
    )  # fmt: skip
    em_iterations: int = setting(11, "Maximum number of EM iterations for alignment.", at_least=1)
    length_penalty: float = setting(1.0, "Length penalty of chunks in alignment.", at_least=0, option=True,
                                    search=OneOf((0.25, 0.5, 1.0, 2.0)))  # fmt: skip
    widest: int = setting(1000, "Beam size: maximum number of target prefixes per length.", at_least=1)


# Neural edit transducers.


Paths = Literal["all", "best"]


@dataclass(frozen=True)
class EditConfig(Settings):
    """Settings of an edit transducer.

    `paths="all"` sums the probability of a target over all scripts that write it; `"best"` takes the most probable one
    alone, which is hard monotonic attention trained by its best path. `copy` lets symbols that both sides share, and
    those that were never seen, be written as they are.
    """

    PANEL, BY_MODEL = "Network", True

    symbol_dim: int = setting(96, "Dimension of symbol embeddings.", at_least=1, option=True, search=Around(2))
    hidden: int = setting(128, "Hidden units (per direction).", at_least=1, option=True, search=Around(2))
    layers: int = setting(1, "Number of encoder layers.", at_least=1, option=True)
    cell_dim: int = setting(192, "Hidden units of the operation scorer.", at_least=1, option=True)
    dropout: float = setting(
        0.3, "Dropout on the inputs.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.6, step=0.1)
    )
    unknown_dropout: float = setting(
        0.01, "Probability of replacing a symbol by <unk> in training.", at_least=0, below=1, option=True
    )
    min_count: int = setting(1, "Symbols seen fewer times than this map to <unk>.", at_least=1, option=True)
    copy: bool = setting(True, "Allow copy operations.")
    paths: Paths = setting(
        "all", "Sum over all edit scripts, or use only the best one", choices=get_args(Paths), option=True
    )
    beam: int = setting(64, "Beam size: maximum number of prefixes per length.",
                        at_least=1, option=True)  # fmt: skip


# Attention models.


Encoder = Literal["gru", "lstm", "transformer"]
Decoder = Literal["luong", "bahdanau", "transformer"]
Score = Literal["general", "dot", "concat", "additive"]
Window = Literal["global", "local-m", "local-p"]
Norm = Literal["pre", "post"]
Output = Literal["softmax", "sampled", "importance", "nce", "hierarchical", "adaptive"]
Judge = Literal["exact match", "bleu"]
Learning = Literal["likelihood", "scheduled", "risk", "reinforce"]
Decoding = Literal["beam", "minimum-risk"]
Coverage = Literal["none", "sum", "fertility", "recurrent"]
Copying = Literal["gate", "joint"]


def _with(*decoders: Decoder) -> dict[str, tuple[str, ...]]:
    return {"decoder": decoders}


@dataclass(frozen=True)
class AttentionConfig(PretrainedConfig):
    """Settings of an attention model: its encoder, its decoder, and the search for the best target.

    >>> AttentionConfig(hidden=512).decoder
    'luong'
    """

    PANEL, BY_MODEL = "Attention", True

    encoder: Encoder = setting("gru", "Encoder", choices=get_args(Encoder), option=True)
    decoder: Decoder = setting("luong", "Decoder", choices=get_args(Decoder), option=True)
    dim: int = setting(256, "Dimension of symbol embeddings.", at_least=1, option=True)
    hidden: int = setting(
        256, "Hidden units of the decoder, and of both encoder directions together.", at_least=2, option=True
    )
    layers: int = setting(1, "Number of encoder layers and of decoder layers.", at_least=1, option=True)
    heads: int = setting(4, "Number of attention heads.", at_least=1, goes_with=_with("transformer"))
    feedforward: int = setting(4, "Width of the feed-forward layers, as a multiple of the hidden units.", at_least=1,
                               option=True, goes_with=_with("transformer"))  # fmt: skip
    norm: Norm = setting(
        "pre", "Position of layer normalisation", choices=get_args(Norm), goes_with=_with("transformer")
    )
    attention_dropout: float = setting(0.0, "Dropout on the attention weights.", at_least=0, below=1,
                                       goes_with=_with("transformer"))  # fmt: skip
    position_dropout: float = setting(
        0.0, "Dropout after positions are added in the encoder; the decoder has that of `dropout`.", at_least=0,
        below=1, goes_with={"encoder": ("transformer",)},
    )  # fmt: skip
    project: bool = setting(
        True, "Read embeddings through a linear layer even if they are as wide as the hidden units.",
        goes_with={"encoder": ("transformer",)},
    )  # fmt: skip
    attention: Score = setting("general", "Attention score", choices=get_args(Score), option=True,
                               goes_with=_with("luong"))  # fmt: skip
    window: Window = setting("global", "Attention span", choices=get_args(Window),
                             goes_with=_with("luong"))  # fmt: skip
    reach: int = setting(10, "Half width of the local attention window.", at_least=1, goes_with=_with("luong"))
    feeding: bool = setting(True, "Input feeding: pass the attention vector to the next step.", option=True,
                            goes_with=_with("luong"))  # fmt: skip
    coverage: Coverage = setting("none", "Coverage: what attention knows of where it has been",
                                 choices=get_args(Coverage), option=True,
                                 goes_with=_with("luong", "bahdanau"))  # fmt: skip
    coverage_loss: float = setting(0.0, "Weight of the coverage loss.", at_least=0)
    copy: bool = setting(False, "Copy mechanism: source symbols, including unknown ones, can be copied.", option=True)
    copying: Copying = setting("gate", "Copy mechanism: a gate (pointer-generator), or one joint softmax (CopyNet)",
                               choices=get_args(Copying), option=True, goes_with={"copy": (True,)})  # fmt: skip
    output: Output = setting("softmax", "Output layer", choices=get_args(Output), option=True)
    cutoffs: tuple[int, ...] = setting(
        (), "First symbol, counted by falling frequency, of each cluster of the adaptive softmax.",
        goes_with={"output": ("adaptive",)}, default_text="one cluster, of the rarest four fifths",
    )  # fmt: skip
    n_samples: int = setting(1000, "Number of sampled symbols (sampled output layers).", at_least=1)
    shared: bool = setting(False, "Share the vocabulary and the embeddings between source and target.", option=True)
    tied: bool = setting(False, "Tie the output layer to the target embeddings.", option=True)
    subwords: int = setting(0, "Number of byte-pair merges; words are split into subwords.", at_least=0,
                            option=True)  # fmt: skip
    min_count: int = setting(1, "Symbols seen fewer times than this map to <unk>.", at_least=1, option=True)
    dropout: float = setting(0.3, "Dropout on inputs and outputs.", at_least=0, below=1, option=True,
                             search=Numbers(0.0, 0.6, step=0.05))  # fmt: skip
    smoothing: float = setting(0.1, "Label smoothing.", at_least=0, below=1,
                               goes_with={"output": ("softmax",), "copy": (False,)})  # fmt: skip
    learn_by: Learning = setting("likelihood", "Training objective", choices=get_args(Learning), option=True)
    n_candidates: int = setting(
        5, "Number of samples per source (risk, reinforce, minimum-risk).", at_least=2, below=WIDEST + 1
    )
    sharpness: float = setting(0.005, "Sharpness: exponent of the probabilities in the risk.", above=0)
    own_symbols: float = setting(0.25, "Probability of feeding back own symbols in the last epoch (scheduled).",
                                 at_least=0, below=1)  # fmt: skip
    decoding: Decoding = setting("beam", "Decoding", choices=get_args(Decoding))
    beam: int = setting(5, "Beam size.", at_least=1, below=WIDEST + 1, option=True)
    length_penalty: float = setting(0.0, "Length penalty; larger values prefer longer targets, 0 is none.",
                                    at_least=0, option=True)  # fmt: skip
    coverage_penalty: float = setting(
        0.0, "Coverage penalty; larger values avoid targets that ignore parts of the source.", at_least=0
    )
    longest: float = setting(0.0, "Maximum target length as a multiple of the source length plus 5.", at_least=0,
                             default_text="by the training pairs")  # fmt: skip
    max_target: int = setting(0, "Maximum target length in symbols.", at_least=0,
                              default_text="twice the longest of training")  # fmt: skip
    judge: Judge = setting("exact match", "Validation metric", choices=get_args(Judge), option=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.encoder == "transformer" or self.decoder == "transformer") and self.hidden % (2 * self.heads):
            problem = f"hidden must be a multiple of twice the heads; got {self.hidden} and {self.heads}"
            raise TrellisworkError(f"{problem}; try hidden 256 and 4 heads")
        if self.hidden % 2:
            raise TrellisworkError(f"hidden must be even, half for each direction; got {self.hidden}")
        if self.tied and (self.dim != self.hidden or self.output != "softmax"):
            got = f"{self.dim}, {self.hidden} and {self.output}"
            raise TrellisworkError(f"tied needs equal dim and hidden, and the output softmax; got {got}")
        if self.pretrained and self.subwords:
            raise TrellisworkError("a pretrained encoder cuts words by itself; leave subwords or pretrained out")
        if self.copy and self.output != "softmax":
            raise TrellisworkError(f"copy needs the output softmax; got {self.output}; leave one of them out")
