"""`trelliswork train` with a model of events."""

from __future__ import annotations

from trelliswork.models.events.presets import PRESETS
from trelliswork.models.networks.recipe import NetworkRecipe


class EventRecipe(NetworkRecipe):
    """Models of events by name."""

    PRESETS = PRESETS
    learns_from = "events"
