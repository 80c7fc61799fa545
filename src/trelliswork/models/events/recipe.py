"""`trelliswork train` with a model of events."""

from __future__ import annotations

from trelliswork.models.events.presets import FRAME_PRESETS, PRESETS
from trelliswork.models.networks.recipe import NetworkRecipe


class EventRecipe(NetworkRecipe):
    """Models of events by name."""

    PRESETS = PRESETS
    learns_from = "events"


class FrameRecipe(NetworkRecipe):
    """Frame parsers by name."""

    PRESETS = FRAME_PRESETS
    learns_from = "events"
