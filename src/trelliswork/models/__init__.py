"""Models: features, network and structure put together, with a folder format.

Names are imported when first used: a feature CRF is trained without torch, which takes more memory than its data.

catalogue.py                                       the models by name, in one entry each
base.py, part_choices.py, examined.py, batched.py  what every model answers
votes.py, lemmatiser.py                            what speaks for an answer; lemmas
storage.py, export_folder.py                       folders of models and of exports, and the cards in them
loading.py                                         any model from its folder, on a device
recipe.py                                          how models are trained by name
networks/, taggers/, parsers/, transducers/, events/, tokenisers/, language/, recognizers/    the models
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names

if TYPE_CHECKING:
    from trelliswork.models.expected_counts import ExpectedCount, total_counts
    from trelliswork.models.loading import load, load_tagger
    from trelliswork.models.networks.building import pretrain_encoder
    from trelliswork.models.taggers.ensemble import Ensemble
    from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger
    from trelliswork.models.taggers.features.corpus import TaggedData
    from trelliswork.models.taggers.features.learners.config import LearningConfig
    from trelliswork.models.taggers.features.tagger import FeatureTagger
    from trelliswork.models.taggers.networks.config import TaggerConfig
    from trelliswork.models.taggers.networks.dropout_average import DropoutAverage, token_calibration
    from trelliswork.models.taggers.networks.multi_tagger import MultiTagger
    from trelliswork.models.taggers.networks.segmenter import Segmenter
    from trelliswork.models.taggers.networks.tagger import Tagger
    from trelliswork.models.taggers.networks.vector_tagger import VectorTagger, VectorTaggerConfig
    from trelliswork.models.taggers.posterior import Analysis, Confidences, SpanConfidence
    from trelliswork.models.taggers.sentence_tagger import SentenceTagger

_HOMES = {
    "expected_counts": "ExpectedCount total_counts",
    "loading": "load load_tagger",
    "networks.building": "pretrain_encoder",
    "taggers.ensemble": "Ensemble",
    "taggers.posterior": "Analysis Confidences SpanConfidence",
    "taggers.features.attribute_tagger": "AttributeTagger",
    "taggers.features.corpus": "TaggedData",
    "taggers.features.learners.config": "LearningConfig",
    "taggers.features.tagger": "FeatureTagger",
    "taggers.networks.config": "TaggerConfig",
    "taggers.networks.dropout_average": "DropoutAverage token_calibration",
    "taggers.networks.multi_tagger": "MultiTagger",
    "taggers.networks.segmenter": "Segmenter",
    "taggers.networks.tagger": "Tagger",
    "taggers.networks.vector_tagger": "VectorTagger VectorTaggerConfig",
    "taggers.sentence_tagger": "SentenceTagger",
}

__all__ = [  # written out: type checkers do not read tables
    "Analysis",
    "AttributeTagger",
    "Confidences",
    "DropoutAverage",
    "Ensemble",
    "ExpectedCount",
    "FeatureTagger",
    "LearningConfig",
    "MultiTagger",
    "Segmenter",
    "SentenceTagger",
    "SpanConfidence",
    "TaggedData",
    "Tagger",
    "TaggerConfig",
    "VectorTagger",
    "VectorTaggerConfig",
    "load",
    "load_tagger",
    "pretrain_encoder",
    "token_calibration",
    "total_counts",
]
__getattr__ = lazy_names(__name__, _HOMES)
