"""Scores of label sequences, with the names of `sklearn_crfsuite.metrics`.

The flat ones put all labels of all sentences into one list and hand them to scikit-learn with any further arguments:

>>> flat_f1_score([["A", "B"]], [["A", "A"]], average="weighted")  # doctest: +SKIP
0.333
>>> cross_val_score(crf, X, y, scoring=make_scorer(flat_f1_score, average="weighted"))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from trelliswork.errors import DataError, MissingExtraError

try:
    from sklearn import metrics
except ImportError as error:
    raise MissingExtraError("trelliswork.sklearn.metrics", "sklearn", error) from error

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

Sequences = Iterable[Sequence[object]]


def flatten(y: Sequences) -> list[object]:
    """Return the labels of all sentences as one list.

    >>> flatten([["B-PER", "O"], ["O"]])  # doctest: +SKIP
    ['B-PER', 'O', 'O']
    """
    return list(chain.from_iterable(y))


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Return the share of labels that are right."""
    return float(_flat(metrics.accuracy_score, y_true, y_pred))


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **options: object) -> Any:
    """Return the precision score of the labels; options are those of scikit-learn."""
    return _flat(metrics.precision_score, y_true, y_pred, **options)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **options: object) -> Any:
    """Return the recall score of the labels; options are those of scikit-learn."""
    return _flat(metrics.recall_score, y_true, y_pred, **options)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **options: object) -> Any:
    """Return the F1 score of the labels; options are those of scikit-learn."""
    return _flat(metrics.f1_score, y_true, y_pred, **options)


def flat_fbeta_score(y_true: Sequences, y_pred: Sequences, beta: float, **options: object) -> Any:
    """Return the F-beta score of the labels; options are those of scikit-learn.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of the same sentences.
        beta: How much more recall counts than precision.
        options: Further arguments of `sklearn.metrics.fbeta_score`, such as `average`.

    Returns:
        A number, or one for each label with `average=None`.
    """
    return _flat(metrics.fbeta_score, y_true, y_pred, beta=beta, **options)


def flat_classification_report(
    y_true: Sequences, y_pred: Sequences, labels: Sequence[object] | None = None, **options: object
) -> Any:
    """Return a table with precision, recall and F1 of each label.

    Args:
        y_true: Gold labels of each sentence.
        y_pred: Predicted labels of the same sentences.
        labels: Labels to report, in this order; None for all.
        options: Further arguments of `sklearn.metrics.classification_report`, such as `digits`.

    Returns:
        The table as text, or as a dict with `output_dict=True`.
    """
    return _flat(metrics.classification_report, y_true, y_pred, labels=labels, **options)


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Return the share of sentences whose labels are all right.

    sklearn-crfsuite 0.5 counts labels instead where all sentences are equally long, so that its score may exceed 1.
    """
    pairs = _sentences(y_true, y_pred)
    return sum(true == predicted for true, predicted in pairs) / max(len(pairs), 1)


def _flat(score: Callable[..., Any], y_true: Sequences, y_pred: Sequences, **options: object) -> Any:
    pairs = _sentences(y_true, y_pred)
    for i, (true, predicted) in enumerate(pairs, 1):
        if len(true) != len(predicted):
            raise DataError("labels", f"sentence {i}: expected {len(true)} labels, one a token; got {len(predicted)}")
    return score(flatten(true for true, _ in pairs), flatten(predicted for _, predicted in pairs), **options)


def _sentences(y_true: Sequences, y_pred: Sequences) -> list[tuple[list[object], list[object]]]:
    """Return true and predicted labels sentence by sentence."""
    true, predicted = [list(labels) for labels in y_true], [list(labels) for labels in y_pred]
    if len(true) != len(predicted):
        raise DataError("labels", f"expected labels of {len(true)} sentences, got those of {len(predicted)}")
    return list(zip(true, predicted, strict=True))
