"""Models: features, network and structure put together, with a folder format.

Names are imported when first used: a feature CRF is trained without torch, which takes more memory than its data.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trelliswork.models.attribute_tagger import AttributeTagger
    from trelliswork.models.config import TaggerConfig
    from trelliswork.models.dropout_average import DropoutAverage, token_calibration
    from trelliswork.models.ensemble import Ensemble
    from trelliswork.models.explanation import Analysis, Confidences, SpanConfidence
    from trelliswork.models.feature_crf.config import LearningConfig
    from trelliswork.models.feature_tagger import FeatureTagger
    from trelliswork.models.loading import load_tagger
    from trelliswork.models.multi_tagger import MultiTagger
    from trelliswork.models.pretraining import pretrain_encoder
    from trelliswork.models.segmenter import Segmenter
    from trelliswork.models.sentence_tagger import SentenceTagger
    from trelliswork.models.tagger import Tagger
    from trelliswork.models.vector_tagger import VectorTagger, VectorTaggerConfig

_HOME = {
    "Analysis": "explanation",
    "AttributeTagger": "attribute_tagger",
    "Confidences": "explanation",
    "DropoutAverage": "dropout_average",
    "Ensemble": "ensemble",
    "FeatureTagger": "feature_tagger",
    "LearningConfig": "feature_crf.config",
    "MultiTagger": "multi_tagger",
    "Segmenter": "segmenter",
    "SentenceTagger": "sentence_tagger",
    "SpanConfidence": "explanation",
    "Tagger": "tagger",
    "TaggerConfig": "config",
    "VectorTagger": "vector_tagger",
    "VectorTaggerConfig": "vector_tagger",
    "load_tagger": "loading",
    "pretrain_encoder": "pretraining",
    "token_calibration": "dropout_average",
}

__all__ = [
    "Analysis",
    "AttributeTagger",
    "Confidences",
    "DropoutAverage",
    "Ensemble",
    "FeatureTagger",
    "LearningConfig",
    "MultiTagger",
    "Segmenter",
    "SentenceTagger",
    "SpanConfidence",
    "Tagger",
    "TaggerConfig",
    "VectorTagger",
    "VectorTaggerConfig",
    "load_tagger",
    "pretrain_encoder",
    "token_calibration",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
