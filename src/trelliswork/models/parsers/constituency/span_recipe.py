"""`trelliswork train` with a span-based constituency parser."""

from __future__ import annotations

from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.parsers.presets import CONSTITUENCY


class SpanRecipe(NetworkRecipe):
    """Constituency parsers that are networks, by name."""

    PRESETS = CONSTITUENCY
    learns_from = "brackets"
