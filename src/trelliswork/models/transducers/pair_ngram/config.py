"""The settings of a pair n-gram, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import OneOf, Settings, setting

Unalignable = Literal["grow", "skip", "error"]


@dataclass(frozen=True)
class PairNgramConfig(Settings):
    """How pairs are aligned, and what is counted.

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
