"""Span F1 under both readings, token accuracy and confusion, calibration."""

from __future__ import annotations

from trelliswork.metrics.accuracy import Confusion, confusion, token_accuracy
from trelliswork.metrics.calibration import Bin, Calibration, calibration
from trelliswork.metrics.spans import Average, Score, SpanReport, span_scores

__all__ = [
    "Average",
    "Bin",
    "Calibration",
    "Confusion",
    "Score",
    "SpanReport",
    "calibration",
    "confusion",
    "span_scores",
    "token_accuracy",
]
