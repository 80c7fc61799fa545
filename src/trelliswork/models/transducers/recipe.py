"""`trelliswork train` with a network from strings to strings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trelliswork.data import Choices
from trelliswork.data.settings import settings_given
from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.transducers.config import PairFiles
from trelliswork.models.transducers.presets import PRESETS


class PairRecipe(NetworkRecipe):
    """Networks that learn from pairs; they read no vectors."""

    PRESETS = PRESETS
    learns_from = "pairs"

    def layout(self, choices: Choices) -> Choices:
        return replace(choices, pairs=PairFiles(**settings_given(self.options, PairFiles)).format)

    def read_files(self) -> Any:
        return None
