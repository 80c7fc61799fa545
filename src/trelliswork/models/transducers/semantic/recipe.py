"""`trelliswork train` with a network from questions to meanings."""

from __future__ import annotations

from trelliswork.models.transducers.recipe import PairRecipe
from trelliswork.models.transducers.semantic.presets import TREES


class TreeRecipe(PairRecipe):
    """Seq2Tree networks."""

    PRESETS = TREES
