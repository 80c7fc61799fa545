"""The earlier name of `trelliswork.sklearn.metrics`, for programs that import it.

>>> from trelliswork.sklearn_metrics import flat_f1_score  # doctest: +SKIP
"""

from trelliswork.sklearn.metrics import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
    flatten,
    sequence_accuracy_score,
)

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "flatten",
    "sequence_accuracy_score",
]
