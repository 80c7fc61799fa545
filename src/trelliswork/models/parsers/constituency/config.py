"""The settings of constituency parsers, as they are written into their folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Around, Numbers, Settings, setting
from trelliswork.models.networks.config import NetworkConfig

Side = Literal["left", "right"]
TreeDecoding = Literal["best", "expected"]


@dataclass(frozen=True)
class SpanConfig(NetworkConfig):
    """Settings of a span-based parser: inputs and encoder as in `NetworkConfig`, and scores of labelled spans.

    `decoding="expected"` answers with the tree whose expected F1 of brackets is largest, instead of the most probable
    one.
    """

    span_dim: int = setting(250, "Hidden units of the span scorer.", at_least=1, option=True, search=Around(2))
    span_dropout: float = setting(
        0.2, "Dropout on these vectors.", at_least=0, below=1, option=True, search=Numbers(0.0, 0.6, step=0.05)
    )
    tag_weight: float = setting(0.2, "Weight of the part-of-speech loss.", above=0)
    decoding: TreeDecoding = setting(
        "best",
        "Decoding: the most probable tree, or the tree with the highest expected F1",
        choices=get_args(TreeDecoding),
        option=True,
    )


@dataclass(frozen=True)
class GrammarConfig(Settings):
    """Settings of a treebank grammar: how trees become rules.

    A constituent is annotated with `vertical` - 1 of those above it, and its children are generated one by one, each
    given the `horizontal` ones before it, or as many as were seen `least_context` times. Klein and Manning (2003),
    Accurate unlexicalized parsing.

    `decoding="expected"` answers with the tree whose expected F1 of brackets is largest, instead of the most probable
    one.
    """

    PANEL, BY_MODEL = "Grammar", True

    vertical: int = setting(2, "Order of vertical markovisation: 1 is the label alone, 2 adds the parent.", at_least=1,
                            option=True)  # fmt: skip
    horizontal: int = setting(
        2, "Order of horizontal markovisation: number of previous siblings a child depends on.", at_least=0, option=True
    )
    least_context: int = setting(10, "Sibling contexts seen fewer times than this are shortened.", at_least=1)
    tag_parents: bool = setting(True, "Annotate part-of-speech tags with their parent.")
    frequent: int = setting(
        300, "Words seen at least this often with a tag get a tag of their own (0: never).", at_least=0, option=True
    )
    mark_single: bool = setting(True, "Mark constituents with a single child.")
    mark_base: bool = setting(True, "Mark constituents that dominate only words.")
    side: Side = setting("right", "Direction of binarisation: where the remaining children go", choices=get_args(Side))
    rare: int = setting(10, "Unknown words are modelled on words seen at most this often.", at_least=1)
    word_smoothing: float = setting(1.0, "Weight of the spelling model against the counts of a word.", above=0)
    spelling_smoothing: float = setting(20.0, "Back-off weight of the next shorter suffix.", above=0)
    parent_smoothing: float = setting(10.0, "Back-off weight of the tag without its parent.", above=0)
    ancestor_smoothing: float = setting(10.0, "Back-off weight of rules without the farthest ancestor.", at_least=0)
    longest: int = setting(120, "Sentences with more words than this are parsed in pieces.", at_least=1)
    decoding: TreeDecoding = setting(
        "expected", "Decoding: the most probable tree, or the tree with the highest expected F1",
        choices=get_args(TreeDecoding), option=True,
    )  # fmt: skip
