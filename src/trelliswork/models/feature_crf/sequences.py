"""Sentences and labels as users of an estimator give them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from trelliswork.errors import DataError

Array = np.ndarray[Any, Any]


def sentences_in(X: Any) -> Any:
    """X, unless it is a table of numbers or names that only looks like sentences."""
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        fix = 'group it: [rows.to_dict("records") for _, rows in frame.groupby("sentence")]'
        raise DataError("attributes", f"expected a list of sentences, got a {type(X).__name__}; {fix}")
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype != object):
        kind = f"an array of {X.dtype}" if isinstance(X, np.ndarray) else "a sparse matrix"
        raise DataError("attributes", f"expected a dict or a list of names for each token, got {kind}; name the values")
    return X


def _checked(y: Any, lengths: Array) -> list[list[Any]]:
    """Labels as lists, one label a token: text or whole numbers."""
    if isinstance(y, str) or not hasattr(y, "__iter__"):
        raise DataError("labels", f"expected a list of labels for each sentence, got {type(y).__name__}")
    sentences = list(y)
    if len(sentences) != len(lengths):
        raise DataError("labels", f"expected labels of {len(lengths)} sentences, got those of {len(sentences)}")
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, str) or not hasattr(sentence, "__iter__"):
            raise DataError("labels", f"sentence {i + 1}: expected a list of labels, got {type(sentence).__name__}")
        sentences[i] = sentence = list(sentence)
        if len(sentence) != lengths[i]:
            problem = f"expected {lengths[i]} labels, one a token; got {len(sentence)}"
            raise DataError("labels", f"sentence {i + 1}: {problem}")
        for j, label in enumerate(sentence):
            if not isinstance(label, str | int | np.integer | np.bool_):
                place = f"sentence {i + 1}, token {j + 1}"
                raise DataError("labels", f"{place}: expected text or a whole number as label, got {label!r}")
    return sentences


def label_lists(y: Any, lengths: Array) -> list[list[str]]:
    """Labels as text, a list for each sentence."""
    return [[str(label) for label in sentence] for sentence in _checked(y, lengths)]


def numbered_labels(y: Any, lengths: Array) -> tuple[dict[str, Any], Array]:
    """The labels by their text, in the order in which they appear, and their numbers, one a token."""
    sentences = _checked(y, lengths)
    classes: dict[str, Any] = {}
    for sentence in sentences:
        for label in sentence:
            classes.setdefault(str(label), label.item() if isinstance(label, np.generic) else label)
    if not classes:
        raise DataError("labels", "expected at least one sentence with a token, got none")
    number = {label: i for i, label in enumerate(classes)}
    gold = [number[str(label)] for sentence in sentences for label in sentence]
    return classes, np.array(gold, np.int64)
