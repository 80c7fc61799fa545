"""Scores of label sequences, with the names of `sklearn_crfsuite.metrics`.

The flat ones put all labels of all sentences into one list and hand them to scikit-learn with any further arguments:

>>> flat_f1_score([["A", "B"]], [["A", "A"]], average="weighted")  # doctest: +SKIP
0.333
>>> cross_val_score(crf, X, y, scoring=make_scorer(flat_f1_score, average="weighted"))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trelliswork.errors import DataError, MissingExtraError

try:
    from sklearn import metrics
except ImportError as error:
    raise MissingExtraError("trelliswork.sklearn_metrics", "sklearn", error) from error

Sequences = Sequence[Sequence[Any]]


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of labels that are right."""
    return float(_flat(metrics.accuracy_score, y_true, y_pred))


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    return _flat(metrics.precision_score, y_true, y_pred, **options)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    return _flat(metrics.recall_score, y_true, y_pred, **options)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    return _flat(metrics.f1_score, y_true, y_pred, **options)


def flat_fbeta_score(y_true: Sequences, y_pred: Sequences, beta: float, **options: Any) -> Any:
    return _flat(metrics.fbeta_score, y_true, y_pred, beta=beta, **options)


def flat_classification_report(
    y_true: Sequences, y_pred: Sequences, labels: Sequence[Any] | None = None, **options: Any
) -> Any:
    """A table with precision, recall and F1 of each label."""
    return _flat(metrics.classification_report, y_true, y_pred, labels=labels, **options)


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of sentences whose labels are all right."""
    pairs = _sentences(y_true, y_pred)
    return sum(true == predicted for true, predicted in pairs) / max(len(pairs), 1)


def _flat(score: Callable[..., Any], y_true: Sequences, y_pred: Sequences, **options: Any) -> Any:
    pairs = _pairs(y_true, y_pred)
    flat = ([label for pair in pairs for label in pair[side]] for side in (0, 1))
    return score(*flat, **options)


def _sentences(y_true: Sequences, y_pred: Sequences) -> list[tuple[list[Any], list[Any]]]:
    """True and predicted labels sentence by sentence."""
    if len(y_true) != len(y_pred):
        raise DataError("labels", f"expected labels of {len(y_true)} sentences, got those of {len(y_pred)}")
    return [(list(true), list(predicted)) for true, predicted in zip(y_true, y_pred, strict=True)]


def _pairs(y_true: Sequences, y_pred: Sequences) -> list[tuple[list[Any], list[Any]]]:
    """The same, where each sentence has as many of both."""
    pairs = _sentences(y_true, y_pred)
    for i, (true, predicted) in enumerate(pairs, 1):
        if len(true) != len(predicted):
            raise DataError("labels", f"sentence {i}: expected {len(true)} labels, one a token; got {len(predicted)}")
    return pairs
