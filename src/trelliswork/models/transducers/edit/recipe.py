"""`trelliswork train` with a neural edit transducer."""

from __future__ import annotations

from trelliswork.models.transducers.edit.presets import EDIT
from trelliswork.models.transducers.recipe import PairRecipe


class EditRecipe(PairRecipe):
    """Neural edit transducers by name."""

    PRESETS = EDIT
