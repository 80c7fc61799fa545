"""The settings of attention models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Settings, setting
from trelliswork.errors import TrellisworkError
from trelliswork.training.search_space import Numbers

Encoder = Literal["gru", "lstm", "transformer"]
Decoder = Literal["luong", "bahdanau", "transformer"]
Score = Literal["general", "dot", "concat", "additive"]
Window = Literal["global", "local-m", "local-p"]
Norm = Literal["pre", "post"]
Output = Literal["softmax", "sampled", "importance", "nce", "hierarchical", "adaptive"]
Judge = Literal["exact match", "bleu"]
Learning = Literal["likelihood", "scheduled", "risk", "reinforce"]
Decoding = Literal["beam", "minimum-risk"]


def _with(*decoders: Decoder) -> dict[str, tuple[str, ...]]:
    return {"decoder": decoders}


@dataclass(frozen=True)
class AttentionConfig(Settings):
    """What reads a source, what writes a target, and how the best target is searched.

    >>> AttentionConfig(hidden=512).decoder
    'luong'
    """

    PANEL, BY_MODEL = "Attention", True

    encoder: Encoder = setting("gru", "What reads a source", choices=get_args(Encoder), option=True)
    decoder: Decoder = setting("luong", "What writes a target", choices=get_args(Decoder), option=True)
    dim: int = setting(256, "Width of the vectors of symbols.", at_least=1, option=True)
    hidden: int = setting(256, "Hidden units of the decoder, and of the encoder in all.", at_least=2, option=True)
    layers: int = setting(1, "Layers of encoder and decoder.", at_least=1, option=True)
    heads: int = setting(4, "Heads of attention.", at_least=1, goes_with=_with("transformer"))
    feedforward: int = setting(4, "Width of a layer's network, as a multiple of the hidden units.", at_least=1,
                               goes_with=_with("transformer"))  # fmt: skip
    norm: Norm = setting("pre", "Where a layer is normalised", choices=get_args(Norm), goes_with=_with("transformer"))
    attention: Score = setting("general", "Score of a position", choices=get_args(Score), option=True,
                               goes_with=_with("luong"))  # fmt: skip
    window: Window = setting("global", "Positions that are attended to", choices=get_args(Window),
                             goes_with=_with("luong"))  # fmt: skip
    reach: int = setting(10, "Positions to either side of a local window.", at_least=1, goes_with=_with("luong"))
    feeding: bool = setting(True, "Read what was attended to with the next symbol.", option=True, off="no_feeding",
                            goes_with=_with("luong"))  # fmt: skip
    coverage: bool = setting(False, "Let attention see where it has been.", goes_with=_with("luong", "bahdanau"))
    coverage_loss: float = setting(0.0, "Weight of the loss of attending twice.", at_least=0)
    copy: bool = setting(False, "Copy symbols of the source, also unknown ones.", option=True)
    output: Output = setting("softmax", "Output layer", choices=get_args(Output))
    n_samples: int = setting(1000, "Symbols drawn for a sampled output layer.", at_least=1)
    shared: bool = setting(False, "One vocabulary and one table of vectors for both sides.", option=True)
    tied: bool = setting(False, "The vectors of target symbols are the weights of the output layer.", option=True)
    subwords: int = setting(0, "Cut words into subwords by this many merges of byte-pair encoding.", at_least=0,
                            option=True)  # fmt: skip
    min_count: int = setting(1, "Symbols seen fewer times than this are unknown.", at_least=1, option=True)
    dropout: float = setting(0.3, "Share of inputs and outputs dropped.", at_least=0, below=1, option=True,
                             search=Numbers(0.0, 0.6, step=0.05))  # fmt: skip
    smoothing: float = setting(0.1, "Share of the target spread over all symbols in training.", at_least=0, below=1)
    learn_by: Learning = setting("likelihood", "What is learned from", choices=get_args(Learning), option=True)
    n_candidates: int = setting(5, "Targets drawn for each source by risk, reinforce and minimum-risk.", at_least=2)
    sharpness: float = setting(0.005, "Exponent of probabilities in the risk.", above=0)
    own_symbols: float = setting(0.25, "Share of own symbols that the decoder reads in the last epoch (scheduled).",
                                 at_least=0, below=1)  # fmt: skip
    decoding: Decoding = setting("beam", "How a target is chosen", choices=get_args(Decoding))
    beam: int = setting(5, "Hypotheses that are kept while a target is searched.", at_least=1, option=True)
    length_penalty: float = setting(0.0, "How much longer targets are preferred; 0 compares probabilities.",
                                    at_least=0, option=True)  # fmt: skip
    coverage_penalty: float = setting(0.0, "How much targets that neglect the source are avoided.", at_least=0)
    longest: float = setting(0.0, "Symbols of a target for each one of its source and 5 more, at most.", at_least=0,
                             default_text="by the training pairs")  # fmt: skip
    max_target: int = setting(0, "Symbols of a target, at most.", at_least=0,
                              default_text="twice the longest of training")  # fmt: skip
    judge: Judge = setting("exact match", "The score that counts on dev data", choices=get_args(Judge), option=True)

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
