"""Scores of predictions against gold answers.

spans.py                                    tags, and the spans that they spell
attachment.py                               dependency trees, also over words of two tokenisations
brackets.py                                 constituency trees
frame_graphs.py                             events and frames
strings.py, string_kernels.py               strings: error rates and BLEU
calibration.py, significance.py             are probabilities right, and is a difference significant?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names
from trelliswork.metrics.attachment import Attachment, attachment
from trelliswork.metrics.calibration import Bin, Calibration, calibration
from trelliswork.metrics.spans import Average, Confusion, Score, SpanReport, confusion, span_scores, token_accuracy

if TYPE_CHECKING:
    from trelliswork.metrics.significance import Difference, paired_bootstrap

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
__getattr__ = lazy_names(__name__, {"significance": "Difference paired_bootstrap"})
