"""Scores of predicted tags against gold tags, the one that counts named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.metrics import span_scores, token_accuracy


def evaluate_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: str) -> dict[str, Any]:
    """Span precision, recall and F1 (as conlleval counts) and token accuracy; accuracy alone for plain tags.

    `score` is the number that early stopping watches and `metric` its name.

    >>> evaluate_tags([["B-X", "O"]], [["B-X", "B-X"]], "IOB2")["precision"]
    0.5
    """
    accuracy = token_accuracy(gold, predicted)
    if scheme == "plain":
        return {"metric": "accuracy", "score": accuracy, "accuracy": accuracy}
    spans = span_scores(gold, predicted, scheme, "conlleval").overall
    return {
        "metric": "f1",
        "score": spans.f1,
        "precision": spans.precision,
        "recall": spans.recall,
        "f1": spans.f1,
        "accuracy": accuracy,
    }
