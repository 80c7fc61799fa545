"""Models: features, network and structure put together, with a folder format."""

from __future__ import annotations

from trelliswork.models.config import TaggerConfig
from trelliswork.models.dropout_average import DropoutAverage, token_calibration
from trelliswork.models.explanation import Analysis, Confidences, SpanConfidence
from trelliswork.models.feature_crf.learning import LearningConfig
from trelliswork.models.feature_tagger import FeatureTagger
from trelliswork.models.loading import load_tagger
from trelliswork.models.multi_tagger import MultiTagger
from trelliswork.models.pretraining import pretrain_encoder
from trelliswork.models.segmenter import Segmenter
from trelliswork.models.sentence_tagger import SentenceTagger
from trelliswork.models.tagger import Tagger
from trelliswork.models.vector_tagger import VectorTagger, VectorTaggerConfig

__all__ = [
    "Analysis",
    "Confidences",
    "DropoutAverage",
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
