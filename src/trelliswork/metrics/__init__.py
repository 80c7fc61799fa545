"""Span F1 under both readings, token accuracy and confusion, calibration, significance."""

from __future__ import annotations

from trelliswork.metrics.accuracy import Confusion, confusion, token_accuracy
from trelliswork.metrics.attachment import Attachment, attachment
from trelliswork.metrics.calibration import Bin, Calibration, calibration
from trelliswork.metrics.significance import Difference, paired_bootstrap
from trelliswork.metrics.spans import Average, Score, SpanReport, span_scores

__all__ = [
    "Attachment",
    "Average",
    "Bin",
    "Calibration",
    "Confusion",
    "Difference",
    "Score",
    "SpanReport",
    "attachment",
    "calibration",
    "confusion",
    "paired_bootstrap",
    "span_scores",
    "token_accuracy",
]
