"""Sentences and labels as users of an estimator give them, checked."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from trelliswork.errors import DataError
from trelliswork.models.taggers.features.crf.observed import all_labels
from trelliswork.models.taggers.gold import encode
from trelliswork.runtime.arrays import Array

_LABEL = str | int | np.integer | np.bool_


def sentences_in(X: Any) -> Any:
    """X, unless it is a table of numbers or names that only looks like sentences."""
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        fix = 'group it: [rows.to_dict("records") for _, rows in frame.groupby("sentence")]'
        raise DataError("attributes", f"expected a list of sentences, got a {type(X).__name__}; {fix}")
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype != object):
        kind = f"an array of {X.dtype}" if isinstance(X, np.ndarray) else "a sparse matrix"
        raise DataError("attributes", f"expected a dict or a list of names for each token, got {kind}; name the values")
    return X


def _checked(y: object, lengths: Array, *, partial: bool = False) -> list[list[object]]:
    """Labels as lists, one label a token: text or whole numbers; with `partial` also None, or several of them."""
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise DataError("labels", f"expected a list of labels for each sentence, got {type(y).__name__}")
    sentences = list(y)
    if len(sentences) != len(lengths):
        raise DataError("labels", f"expected labels of {len(lengths)} sentences, got those of {len(sentences)}")
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, str) or not isinstance(sentence, Iterable):
            raise DataError("labels", f"sentence {i + 1}: expected a list of labels, got {type(sentence).__name__}")
        sentences[i] = sentence = list(sentence)
        if len(sentence) != lengths[i]:
            problem = f"expected {lengths[i]} labels, one a token; got {len(sentence)}"
            raise DataError("labels", f"sentence {i + 1}: {problem}")
        if set(map(type, sentence)) == {str}:
            continue
        for j, label in enumerate(sentence):
            several = partial and isinstance(label, set | frozenset | list | tuple)
            if partial and label is None:
                continue
            if several and not label:
                place = f"sentence {i + 1}, token {j + 1}"
                raise DataError("labels", f"{place}: expected at least one label in a set of them; give None for all")
            if not all(isinstance(each, _LABEL) for each in (label if several else [label])):
                place = f"sentence {i + 1}, token {j + 1}"
                raise DataError("labels", f"{place}: expected text or a whole number as label, got {label!r}")
    return sentences


def label_lists(y: object, lengths: Array) -> list[list[str]]:
    """Labels as text, a list for each sentence."""
    return [[str(label) for label in sentence] for sentence in _checked(y, lengths)]


def numbered_labels(y: object, lengths: Array) -> tuple[dict[str, object], Array, Array]:
    """Return the labels by their text, in the order in which they appear, and codes and sets as `observed` has them.

    A label of None is unknown; a set (or list) of labels is one of these.
    """
    sentences = _checked(y, lengths, partial=True)
    if not lengths.sum():
        raise DataError("labels", "expected at least one sentence with a token, got none")
    given: dict[str, object] = {}
    if set(map(type, chain.from_iterable(sentences))) == {str}:
        number_of = {label: number for number, label in enumerate(dict.fromkeys(chain.from_iterable(sentences)))}
        codes = np.fromiter(map(number_of.__getitem__, chain.from_iterable(sentences)), np.int64, int(lengths.sum()))
        return {str(label): label for label in number_of}, codes, all_labels(len(number_of))
    known, gold, sets = encode([[_choice(label, given) for label in sentence] for sentence in sentences])
    return {label: given[label] for label in known}, gold, sets


def _choice(label: object, given: dict[str, object]) -> str | frozenset[str] | None:
    """Return a label, a set of possible ones, or None if it is unknown, as text; `given` learns what they were."""
    if label is None:
        return None
    labels = list(label) if isinstance(label, set | frozenset | list | tuple) else [label]
    for each in labels:
        given.setdefault(str(each), each.item() if isinstance(each, np.generic) else each)
    return frozenset(map(str, labels)) if len(labels) > 1 else str(labels[0])
