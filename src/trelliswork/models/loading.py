"""Any tagger from its folder."""

from __future__ import annotations

from pathlib import Path

from trelliswork.models.feature_tagger import FeatureTagger
from trelliswork.models.segmenter import Segmenter
from trelliswork.models.storage import kind_of_model
from trelliswork.models.tagger import Tagger


def load_tagger(directory: str | Path) -> Tagger | Segmenter | FeatureTagger:
    """The tagger in a model folder, whichever kind it is."""
    kinds: dict[str | None, type[Segmenter | FeatureTagger]] = {"FeatureTagger": FeatureTagger, "Segmenter": Segmenter}
    return kinds.get(kind_of_model(directory), Tagger).load(directory)
