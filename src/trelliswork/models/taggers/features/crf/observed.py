"""Which pairs and triples occur in data whose labels may be known, one of a set, or unknown.

`gold` has one code a token: a label (0, 1, ...), or -1 - k for any label of row k of `sets` [k, labels]. Without `sets`
there is one row, with every label: -1 is then an unknown label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows

Array = np.ndarray[Any, Any]


def all_labels(n_labels: int) -> Array:
    """The `sets` of data in which -1 stands for an unknown label."""
    return np.ones((1, n_labels), np.bool_)


def members(code: int, sets: Array) -> Array:
    """The labels that a code of `gold` allows."""
    return np.array([code]) if code >= 0 else np.flatnonzero(sets[-1 - code])


def follows(rows: AttributeRows) -> Array:
    """True for each token that has one before it in its sentence."""
    inside = np.ones(rows.n_tokens, np.bool_)
    inside[rows.starts[:-1][rows.lengths > 0]] = False
    return inside


def state_pairs(ids: Array, codes: Array, sets: Array) -> Array:
    """attribute · labels + label of the pairs that occur, sorted; `codes` are those of the entries' tokens."""
    n_labels = sets.shape[1]
    known, wide = codes >= 0, ids.astype(np.int64) * n_labels
    found = [np.unique(wide[known] + codes[known])]
    for code in np.unique(codes[~known]).tolist():
        found.append(np.add.outer(np.unique(wide[codes == code]), members(code, sets)).ravel())
    return _merged(found)


def arc_pairs(before: Array, here: Array, sets: Array) -> Array:
    """label before · labels + label of the pairs of neighbours that occur, sorted."""
    return triples(np.zeros(len(here), np.int64), before, here, sets)


def triples(ids: Array, before: Array, here: Array, sets: Array) -> Array:
    """(attribute · labels + label before) · labels + label of the triples that occur, sorted."""
    n_labels = sets.shape[1]
    known, wide = (before >= 0) & (here >= 0), ids.astype(np.int64) * n_labels**2
    found = [np.unique(wide[known] + before[known] * n_labels + here[known])]
    for left, right in np.unique(np.stack([before[~known], here[~known]], 1), axis=0).tolist():
        arcs = np.add.outer(members(left, sets) * n_labels, members(right, sets)).ravel()
        found.append(np.add.outer(np.unique(wide[(before == left) & (here == right)]), arcs).ravel())
    return _merged(found)


def _merged(found: list[Array]) -> Array:
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))
