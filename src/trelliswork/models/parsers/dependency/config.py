"""The settings of a graph-based dependency parser, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Around, Numbers, setting
from trelliswork.models.networks.config import NetworkConfig

Trees = Literal["auto", "projective", "non-projective"]
Tags = Literal["none", "joint"]
Decoding = Literal["best", "expected"]


@dataclass(frozen=True)
class ParserConfig(NetworkConfig):
    """What a graph-based parser is made of: inputs and encoder as in `NetworkConfig`, and biaffine scores.

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
    decoding: Decoding = setting(
        "best", "Decoding: the most probable tree, or the tree with the most arcs expected to be correct",
        choices=get_args(Decoding), option=True,
    )  # fmt: skip
