"""Any tagger from its folder."""

from __future__ import annotations

from pathlib import Path

from trelliswork.models.feature_tagger import FeatureTagger
from trelliswork.models.storage import kind_of_model
from trelliswork.models.tagger import Tagger


def load_tagger(directory: str | Path) -> Tagger | FeatureTagger:
    """The tagger in a model folder, whichever kind it is."""
    return FeatureTagger.load(directory) if kind_of_model(directory) == "FeatureTagger" else Tagger.load(directory)
