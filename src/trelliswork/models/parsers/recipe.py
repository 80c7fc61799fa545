"""`trelliswork train` with a dependency parser."""

from __future__ import annotations

from typing import Any

from trelliswork.models.networks.recipe import NetworkRecipe
from trelliswork.models.parsers.presets import PRESETS, TRANSITION_PRESETS
from trelliswork.models.recipe import Run


class ParserRecipe(NetworkRecipe):
    """Dependency parsers by name."""

    PRESETS = PRESETS
    learns_from = "heads"

    def finished(self, model: Any, run: Run) -> None:
        model.calibrate(self.material.dev)
        if run.folder is not None:
            model.save(run.folder)


class TransitionRecipe(ParserRecipe):
    """Transition-based parsers by name."""

    PRESETS = TRANSITION_PRESETS
