"""The settings of a treebank grammar, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Settings, setting

Side = Literal["left", "right"]


@dataclass(frozen=True)
class GrammarConfig(Settings):
    """How trees become rules.

    A constituent is told apart by `vertical` - 1 of those above it, and its children are generated one by one, each
    given the `horizontal` ones before it. Klein and Manning (2003), Accurate unlexicalized parsing.
    """

    PANEL, BY_MODEL = "Grammar", True

    vertical: int = setting(2, "Labels on the way up that tell a constituent apart, its own counted.", at_least=1,
                            option=True)  # fmt: skip
    horizontal: int = setting(2, "Children before one that it depends on.", at_least=0, option=True)
    tag_parents: bool = setting(True, "Tell parts of speech apart by the constituent above.")
    side: Side = setting("right", "Where the rest of the children lies", choices=get_args(Side))
    rare: int = setting(3, "Words seen at most this often say what unknown words are like.", at_least=1)
    word_smoothing: float = setting(2.0, "Weight of the spelling of a word beside what was seen of it.", above=0)
    parent_smoothing: float = setting(
        10.0, "Weight of a part of speech beside what was seen below one parent.", above=0
    )
    longest: int = setting(150, "Longer sentences are parsed in pieces of this many words.", at_least=1)
