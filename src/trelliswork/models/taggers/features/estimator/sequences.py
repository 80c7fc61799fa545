"""Sentences and labels as users of an estimator give them, checked; a tagger of one sentence at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from trelliswork.data import atomic_write
from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import owners_of
from trelliswork.errors import DataError
from trelliswork.lazy import named
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.observed import all_labels
from trelliswork.models.taggers.gold import encode
from trelliswork.runtime.arrays import Array

_LABEL = str | int | np.integer | np.bool_


def sentences_in(X: Any) -> Any:
    """Return X, unless it is a table of numbers or names that only looks like sentences."""
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        fix = 'group it: [rows.to_dict("records") for _, rows in frame.groupby("sentence")]'
        raise DataError("attributes", f"expected a list of sentences, got a {type(X).__name__}; {fix}")
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype != object):
        kind = f"an array of {X.dtype}" if isinstance(X, np.ndarray) else "a sparse matrix"
        raise DataError("attributes", f"expected a dict or a list of names for each token, got {kind}; name the values")
    return X


def _checked(y: object, lengths: Array, *, partial: bool = False) -> list[list[object]]:
    """Return labels as lists, one label a token: text or whole numbers; with `partial` also None, or several."""
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
    """Return labels as text, a list for each sentence."""
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


# One sentence at a time, with the methods of `pycrfsuite.Tagger`.


@dataclass(frozen=True)
class ModelInfo:
    """The content of a model: numbers of labels and attributes by name, and its weights that are not 0."""

    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]
    header: dict[str, str]


class SequenceTagger:
    """Tags a sentence, or the one given to `set`; `rows` turns sentences into attributes that the model knows.

    Args:
        crf: the model.
        names: the names of its attributes by number.
        rows: turns sentences into attributes that the model knows.
    """

    def __init__(self, crf: FeatureCRF, names: Sequence[str], rows: Callable[[list[object]], AttributeRows]) -> None:
        self._crf, self._names, self._rows = crf, names, rows
        self._set: AttributeRows | None = None

    def set(self, xseq: object) -> None:
        """Set the sentence that the other methods then are about."""
        self._set = self._rows([xseq])

    def tag(self, xseq: object = None) -> list[str]:
        """Return the best labels."""
        return self._crf.predict(self._given(xseq))[0]

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a token, counted from 0."""
        rows = self._given(None)
        if not 0 <= pos < rows.n_tokens:
            raise DataError("labels", f"expected a token in 0..{rows.n_tokens - 1}, got {pos}")
        return float(self._crf.marginals(rows)[0][pos, self._number(y)])

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of all labels of the sentence."""
        rows = self._given(None)
        if len(yseq) != rows.n_tokens:
            raise DataError("labels", f"expected {rows.n_tokens} labels, one a token; got {len(yseq)}")
        if not len(yseq):
            return 1.0
        tags = named("torch:tensor")([[self._number(y) for y in yseq]])
        return float(self._crf.chain(rows).log_prob(tags).exp())

    def labels(self) -> list[str]:
        return list(self._crf.labels)

    def info(self) -> ModelInfo:
        """Return labels, attributes and weights."""
        labels, names = self._crf.labels, self._names
        return ModelInfo(
            {label: str(i) for i, label in enumerate(labels)},
            {name: str(i) for i, name in enumerate(names)},
            transition_weights(self._crf),
            state_weights(self._crf, names),
            {"type": "FOMC", "num_labels": str(len(labels)), "num_attrs": str(len(names))},
        )

    def dump(self, filename: str | Path) -> None:
        """Write the model as text in the layout of `crfsuite dump`, which `trelliswork convert` reads."""
        info = self.info()
        sections: dict[str, list[str]] = {
            "FILEHEADER": [f"{name}: {value}" for name, value in info.header.items()],
            "LABELS": [f"{i:>5}: {name}" for name, i in info.labels.items()],
            "ATTRIBUTES": [f"{i:>5}: {name}" for name, i in info.attributes.items()],
            "TRANSITIONS": [f"(1) {i} --> {j}: {w:f}" for (i, j), w in info.transitions.items()],
            "STATE_FEATURES": [f"(0) {a} --> {y}: {w:f}" for (a, y), w in info.state_features.items()],
        }
        with atomic_write(filename) as file:
            for title, lines in sections.items():
                file.write(f"{title} = {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n")

    def _given(self, xseq: object) -> AttributeRows:
        if xseq is not None:
            self.set(xseq)
        if self._set is None:
            raise DataError("attributes", "expected a sentence, got none; call set(xseq) first")
        return self._set

    def _number(self, label: str) -> int:
        if label not in self._crf.labels:
            raise DataError("labels", f"expected one of {', '.join(self._crf.labels)}, got {label!r}")
        return self._crf.labels.index(label)


def state_weights(crf: FeatureCRF, names: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return (attribute, label) -> weight, where it is not 0."""
    parameters = crf.parameters
    owner = owners_of(parameters.offsets)
    return {
        (names[owner[p]], crf.labels[parameters.labels[p]]): float(crf.weights[p])
        for p in np.flatnonzero(crf.weights[: parameters.n_states])
    }


def transition_weights(crf: FeatureCRF) -> dict[tuple[str, str], float]:
    """Return (label, label) -> weight, where it is not 0."""
    parameters, labels = crf.parameters, crf.labels
    first = parameters.n_states
    pairs = zip(parameters.arcs.tolist(), crf.weights[first : first + len(parameters.arcs)].tolist(), strict=True)
    return {(labels[i], labels[j]): weight for (i, j), weight in pairs if weight}
