"""The settings of a treebank grammar, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Settings, setting

Side = Literal["left", "right"]
Answered = Literal["best", "expected"]


@dataclass(frozen=True)
class GrammarConfig(Settings):
    """How trees become rules.

    A constituent is told apart by `vertical` - 1 of those above it, and its children are generated one by one, each
    given the `horizontal` ones before it, or as many as were seen `least_context` times. Klein and Manning (2003),
    Accurate unlexicalized parsing.

    `decoding="expected"` answers with the tree whose expected F1 of brackets is largest, instead of the most probable
    one.
    """

    PANEL, BY_MODEL = "Grammar", True

    vertical: int = setting(2, "Labels on the way up that tell a constituent apart, its own counted.", at_least=1,
                            option=True)  # fmt: skip
    horizontal: int = setting(2, "Children before one that it depends on.", at_least=0, option=True)
    least_context: int = setting(10, "Children before one that were seen less often are left out.", at_least=1)
    tag_parents: bool = setting(True, "Tell parts of speech apart by the constituent above.")
    frequent: int = setting(
        300, "Words seen this often with a tag have a tag of their own (0: none).", at_least=0, option=True
    )
    mark_single: bool = setting(True, "Tell constituents with a single child apart.")
    mark_base: bool = setting(True, "Tell constituents above words alone apart.")
    side: Side = setting("right", "Where the rest of the children lies", choices=get_args(Side))
    rare: int = setting(10, "Words seen at most this often say what unknown words are like.", at_least=1)
    word_smoothing: float = setting(1.0, "Weight of the spelling of a word beside what was seen of it.", above=0)
    spelling_smoothing: float = setting(
        20.0, "Weight of a shorter suffix beside what was seen of a longer one.", above=0
    )
    parent_smoothing: float = setting(
        10.0, "Weight of a part of speech beside what was seen below one parent.", above=0
    )
    ancestor_smoothing: float = setting(
        10.0, "Weight of the rules of a constituent below any farthest ancestor beside those below one.", at_least=0
    )
    longest: int = setting(120, "Longer sentences are parsed in pieces.", at_least=1)
    decoding: Answered = setting(
        "expected", "The most probable tree, or that of the highest expected F1", choices=get_args(Answered),
        option=True,
    )  # fmt: skip
