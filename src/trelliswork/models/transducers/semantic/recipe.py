"""`trelliswork train` with a network from questions to meanings."""

from __future__ import annotations

from trelliswork.data import WordVectors
from trelliswork.models.transducers.recipe import PairRecipe
from trelliswork.models.transducers.semantic.presets import QUERIES, TREES


class TreeRecipe(PairRecipe):
    """Seq2Tree networks."""

    PRESETS = TREES

    def read_files(self) -> WordVectors | None:
        return self.word_vectors()


class QueryRecipe(TreeRecipe):
    """Seq2SQL networks."""

    PRESETS = QUERIES
