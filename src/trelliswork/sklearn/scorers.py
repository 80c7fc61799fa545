"""Scorers for `cross_val_score` and searches, with the names of `sklearn_crfsuite.scorers`.

`flat_accuracy` is the share of labels that are right, `sequence_accuracy` that of sentences without any wrong label. A
scorer is called with an estimator, its inputs and the right labels:

>>> from trelliswork.sklearn import CRF
>>> X = [[{"word": "Ann"}, {"word": "sings"}], [{"word": "Bob"}, {"word": "runs"}]] * 5
>>> y = [["B-PER", "O"], ["B-PER", "O"]] * 5
>>> crf = CRF(max_iterations=20).fit(X, y)
>>> flat_accuracy(crf, X, y), sequence_accuracy(crf, X, y)
(1.0, 1.0)
>>> from sklearn.model_selection import cross_val_score
>>> cross_val_score(crf, X, y, cv=2, scoring=sequence_accuracy).tolist()
[1.0, 1.0]

`make_scorer` is scikit-learn's; it turns any score of `metrics` into a scorer, `make_scorer(metrics.flat_f1_score,
average="weighted")` say.
"""

from __future__ import annotations

from sklearn.metrics import make_scorer

from trelliswork.sklearn import metrics

__all__ = ["flat_accuracy", "make_scorer", "metrics", "sequence_accuracy"]

flat_accuracy = make_scorer(metrics.flat_accuracy_score)
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
