"""Scorers for `cross_val_score` and searches, with the names of `sklearn_crfsuite.scorers`."""

from __future__ import annotations

from sklearn.metrics import make_scorer

from trelliswork.sklearn import metrics

__all__ = ["flat_accuracy", "make_scorer", "metrics", "sequence_accuracy"]

flat_accuracy = make_scorer(metrics.flat_accuracy_score)
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
