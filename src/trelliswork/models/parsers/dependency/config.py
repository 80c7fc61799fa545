"""The settings of dependency parsers, as they are written into their folders: graph-based and transition-based."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from trelliswork.data.settings import WIDEST, Around, Numbers, setting
from trelliswork.errors import TrellisworkError
from trelliswork.models.networks.config import NetworkConfig

Trees = Literal["auto", "projective", "non-projective"]
Tags = Literal["none", "joint"]
ArcDecoding = Literal["best", "expected"]


@dataclass(frozen=True)
class ParserConfig(NetworkConfig):
    """Settings of a graph-based parser: inputs and encoder as in `NetworkConfig`, and biaffine scores.

    `trees="auto"` sums over projective trees if the training data have no others, else over all trees.
    `tags="joint"` also predicts UPOS, XPOS and FEATS from the same encoder, as far as the data have them; lemmas follow
    from forms and predicted tags.
    `decoding="expected"` answers with the tree whose expected number of right arcs is largest, instead of the most
    probable one.
    """

    arc_dim: int = setting(300, "Dimension of the arc representations.", at_least=1, option=True,
                           search=Around(2))  # fmt: skip
    label_dim: int = setting(100, "Dimension of the label representations.", at_least=1, option=True)
    score_dropout: float = setting(
        0.33, "Dropout on these vectors.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.6, step=0.05)
    )
    trees: Trees = setting("auto", "Set of trees", choices=get_args(Trees), option=True)
    tags: Tags = setting(
        "none", "Predict UPOS, XPOS, FEATS and lemmas together with the tree", choices=get_args(Tags), option=True
    )
    tag_weight: float = setting(0.3, "Weight of the tagging loss.", above=0)
    decoding: ArcDecoding = setting(
        "best", "Decoding: the most probable tree, or the tree with the most arcs expected to be correct",
        choices=get_args(ArcDecoding), option=True,
    )  # fmt: skip


# Transition-based parsers.


System = Literal["auto", "arc-standard", "arc-hybrid", "swap"]
Cell = Literal["feed-forward", "lstm", "gru"]  # as in `nn.transitions.TBRU`, which is not imported for --help
TaggingOrder = Literal["none", "joint", "chained"]
Oracle = Literal["auto", "static", "dynamic"]


@dataclass(frozen=True)
class TransitionConfig(NetworkConfig):
    """Settings of a transition-based parser: inputs and encoder as in `NetworkConfig`, and a unit over states.

    `system="auto"` is swap if many trees of the training data have crossing arcs, else arc-hybrid. With the dynamic
    oracle (arc-hybrid, feed-forward) every decision that loses no gold arc is right, and from epoch
    `static_epochs` + 1 on the parser follows its own decisions with a chance of `explore`. In the last
    `global_epochs` of training the likelihood of whole sequences over a beam, with early update, is added; with the
    dynamic oracle all that build the right tree count. A finished parser can go on with them: --resume with more
    --epochs, --beam and --global-epochs.

    `tags="joint"` also predicts UPOS, XPOS and FEATS from the encoder, as far as the data have them; with
    `tags="chained"` a unit of its own does, and the parser reads the states of that unit in addition to the encoder.
    """

    LATER: ClassVar = ("beam", "global_epochs", "local_weight")  # may be given when a finished run goes on

    state_dim: int = setting(
        200, "Hidden units of the network over parser states.", at_least=1, option=True, search=Around(2)
    )
    state_dropout: float = setting(
        0.2, "Dropout on these units.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.6, step=0.05)
    )
    cell: Cell = setting("feed-forward", "Network over parser states", choices=get_args(Cell), option=True)
    system: System = setting("auto", "Transition system", choices=get_args(System), option=True)
    oracle: Oracle = setting("auto", "Training oracle", choices=get_args(Oracle), option=True)
    static_epochs: int = setting(1, "Epochs before exploration starts (dynamic oracle).", at_least=0)
    explore: float = setting(0.9, "Probability of following the parser's own decision (dynamic oracle).", at_least=0,
                             below=1.01, option=True)  # fmt: skip
    beam: int = setting(1, "Beam size; 1 is greedy search.", at_least=1, below=WIDEST + 1, option=True)
    global_epochs: int = setting(0, "Number of final epochs with beam-global normalisation.", at_least=0, option=True)
    local_weight: float = setting(1.0, "Weight of the local loss in these epochs.", at_least=0)
    tags: TaggingOrder = setting(
        "none", "Predict UPOS, XPOS, FEATS and lemmas with the tree, or chained: the parser reads the tagger's states",
        choices=get_args(TaggingOrder), option=True,
    )  # fmt: skip
    tag_dim: int = setting(64, "Hidden units of the chained tagger.", at_least=1)
    tag_weight: float = setting(0.3, "Weight of the tagging loss.", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.oracle == "dynamic" and (self.system not in ("auto", "arc-hybrid") or self.cell != "feed-forward"):
            raise TrellisworkError(
                'oracle="dynamic" needs system="arc-hybrid" and cell="feed-forward"; '
                f'got {self.system} and {self.cell}; choose oracle="static", or these'
            )
        if self.global_epochs and self.beam < 2:
            raise TrellisworkError(f"global_epochs needs a beam of at least 2; got {self.beam}; add --beam 8")
