"""`trelliswork train` with a dependency parser."""

from __future__ import annotations

from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.parsers.presets import PRESETS


class ParserRecipe(NetworkRecipe):
    """Dependency parsers by name."""

    PRESETS = PRESETS
    learns_from = "heads"
