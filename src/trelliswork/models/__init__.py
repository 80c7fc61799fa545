"""Models: features, network and structure put together, with a folder format."""

from __future__ import annotations

from trelliswork.models.config import TaggerConfig
from trelliswork.models.explanation import Analysis, Confidences, SpanConfidence
from trelliswork.models.tagger import Tagger

__all__ = ["Analysis", "Confidences", "SpanConfidence", "Tagger", "TaggerConfig"]
