"""Settings of the files that transducers learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from trelliswork.data.pairs import NormalForm, PairFormat, Units
from trelliswork.data.settings import Settings, setting


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
