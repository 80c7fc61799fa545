"""The settings of attention models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import WIDEST, Numbers, Settings, setting
from trelliswork.errors import TrellisworkError

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
class AttentionConfig(Settings):
    """What reads a source, what writes a target, and how the best target is searched.

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
    output: Output = setting("softmax", "Output layer", choices=get_args(Output))
    n_samples: int = setting(1000, "Number of sampled symbols (sampled output layers).", at_least=1)
    shared: bool = setting(False, "Share the vocabulary and the embeddings between source and target.", option=True)
    tied: bool = setting(False, "Tie the output layer to the target embeddings.", option=True)
    subwords: int = setting(0, "Number of byte-pair merges; words are split into subwords.", at_least=0,
                            option=True)  # fmt: skip
    min_count: int = setting(1, "Symbols seen fewer times than this map to <unk>.", at_least=1, option=True)
    dropout: float = setting(0.3, "Dropout on inputs and outputs.", at_least=0, below=1, option=True,
                             search=Numbers(0.0, 0.6, step=0.05))  # fmt: skip
    smoothing: float = setting(0.1, "Label smoothing.", at_least=0, below=1)
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
            found = f"{self.dim}, {self.hidden} and {self.output}"
            raise TrellisworkError(f"tied needs dim and hidden alike, and the output softmax; got {found}")
        if self.copy and self.output != "softmax":
            raise TrellisworkError(f"copy needs the output softmax; got {self.output}; leave one of them out")
