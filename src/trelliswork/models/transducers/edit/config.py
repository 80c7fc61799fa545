"""The settings of a neural edit transducer, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import Around, Numbers, Settings, setting

Paths = Literal["all", "best"]


@dataclass(frozen=True)
class EditConfig(Settings):
    """What an edit transducer is made of.

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
