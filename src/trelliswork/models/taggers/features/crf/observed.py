"""The pairs and triples that occur in data whose labels may be known, one of a set, or unknown.

`gold` has one code a token: a label (0, 1, ...), or -1 - k for any label of row k of `sets` [k, labels]. Without `sets`
there is one row, with every label: -1 is then an unknown label.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.kernels.plan import mark_pairs
from trelliswork.runtime.arrays import Array

MOST_MARKS = 1 << 28  # bytes; above, the data is read several times
TOKENS_AT_A_TIME = 1 << 18


def all_labels(n_labels: int) -> Array:
    """Return the `sets` of data in which -1 stands for an unknown label."""
    return np.ones((1, n_labels), np.bool_)


def members(code: int, sets: Array) -> Array:
    """Return the labels that a code of `gold` allows."""
    return np.array([code]) if code >= 0 else np.flatnonzero(sets[-1 - code])


def follows(rows: AttributeRows) -> Array:
    """Return True for each token that has one before it in its sentence."""
    inside = np.ones(rows.n_tokens, np.bool_)
    inside[rows.starts[:-1][rows.lengths > 0]] = False
    return inside


def state_pairs(ids: Array, codes: Array, sets: Array) -> Array:
    """Return attribute · labels + label of the pairs that occur, sorted; `codes` are those of the entries' tokens.

    Args:
        ids: attribute of each entry.
        codes: code of the token of each entry.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        Keys, sorted.
    """
    n_labels = sets.shape[1]
    known, wide = codes >= 0, ids.astype(np.int64) * n_labels
    keys = [np.unique(wide[known] + codes[known])]
    for code in np.unique(codes[~known]).tolist():
        keys.append(np.add.outer(np.unique(wide[codes == code]), members(code, sets)).ravel())
    return _merged(keys)


def arc_pairs(before: Array, here: Array, sets: Array) -> Array:
    """Return label before · labels + label of the pairs of neighbours that occur, sorted.

    Args:
        before: code of the first token of each pair.
        here: code of the second one.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        Keys, sorted.
    """
    return triples(np.zeros(len(here), np.int64), before, here, sets)


def triples(ids: Array, before: Array, here: Array, sets: Array) -> Array:
    """Return (attribute · labels + label before) · labels + label of the triples that occur, sorted.

    Args:
        ids: attribute of each entry.
        before: code of the token before that of each entry.
        here: code of its token.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        Keys, sorted.
    """
    n_labels = sets.shape[1]
    known, wide = (before >= 0) & (here >= 0), ids.astype(np.int64) * n_labels**2
    keys = [np.unique(wide[known] + before[known] * n_labels + here[known])]
    for left, right in np.unique(np.stack([before[~known], here[~known]], 1), axis=0).tolist():
        arcs = np.add.outer(members(left, sets) * n_labels, members(right, sets)).ravel()
        keys.append(np.add.outer(np.unique(wide[(before == left) & (here == right)]), arcs).ravel())
    return _merged(keys)


def _merged(keys: list[Array]) -> Array:
    return keys[0] if len(keys) == 1 else np.unique(np.concatenate(keys))


def observed_states(rows: AttributeRows, gold: Array, n_attributes: int, n_labels: int) -> Array:
    """Return attribute · labels + label of the pairs that occur, sorted; every label is known.

    Args:
        rows: attributes of the tokens.
        gold: the label of each token, [tokens].
        n_attributes: number of attributes.
        n_labels: number of labels.

    Returns:
        Keys, sorted.
    """
    codes, at_a_time = gold.astype(np.int64, copy=False), max(MOST_MARKS // n_labels, 1)
    seen, keys = np.zeros((min(n_attributes, at_a_time), n_labels), np.bool_), list[Array]()
    for first in range(0, n_attributes, at_a_time):
        seen[:] = False
        mark_pairs(rows.offsets, rows.ids, codes, first, seen)
        keys.append(np.flatnonzero(seen) + first * n_labels)
    return np.concatenate([np.empty(0, np.int64), *keys])


def pair_entries(rows: AttributeRows, gold: Array, on_pairs: Array) -> tuple[Array, Array, Array, Array]:
    """Return attribute, label before, label and value of each entry that looks at two neighbours.

    Args:
        rows: attributes of the tokens.
        gold: code of each token.
        on_pairs: [attributes] bool: which look at two neighbours.

    Returns:
        Attributes, codes before, codes, and values, an entry each.
    """
    tokens = rows.tokens()
    wanted = on_pairs[rows.ids] & follows(rows)[tokens]
    at = tokens[wanted]
    values = np.ones(len(at)) if rows.values is None else rows.values[wanted]
    return rows.ids[wanted], gold[at - 1], gold[at], values


def summed_up(places: Array, ids: Array, before: Array, here: Array, values: Array, sets: Array, n_cells: int) -> Array:
    """Return values summed up by place, attribute · cells + label before · labels + label; places are sorted.

    Args:
        places: keys, sorted.
        ids: attribute of each entry.
        before: code of the token before that of each entry.
        here: code of its token.
        values: what is summed up.
        sets: [sets, labels] bool: what the codes below 0 allow.
        n_cells: keys of an attribute.

    Returns:
        A sum for each place.
    """
    n_labels, total, known = sets.shape[1], np.zeros(len(places)), (before >= 0) & (here >= 0)
    if not len(places):
        return total

    def add(chosen: Array, cells: Array | int) -> None:
        keys = ids[chosen].astype(np.int64) * n_cells + cells
        at = np.minimum(np.searchsorted(places, keys), len(places) - 1)
        hit = places[at] == keys
        total[:] += np.bincount(at[hit], values[chosen][hit], minlength=len(places))

    add(known, before[known] * n_labels + here[known])
    for left, right in np.unique(np.stack([before[~known], here[~known]], 1), axis=0).tolist():
        chosen = (before == left) & (here == right)
        for cell in np.add.outer(members(left, sets) * n_labels, members(right, sets)).ravel().tolist():
            add(chosen, cell)
    return total


def neighbours(rows: AttributeRows) -> Iterator[Array]:
    """Yield the tokens that have one before them in their sentence, not all at once."""
    starts = rows.starts[:-1][rows.lengths > 0]
    for first in range(0, rows.n_tokens, TOKENS_AT_A_TIME):
        last = min(first + TOKENS_AT_A_TIME, rows.n_tokens)
        inside = np.ones(last - first, np.bool_)
        inside[starts[np.searchsorted(starts, first) : np.searchsorted(starts, last)] - first] = False
        yield first + np.flatnonzero(inside)


def arcs_of(rows: AttributeRows, gold: Array, sets: Array) -> Array:
    """Return label before · labels + label of the pairs of neighbours in all sentences, sorted.

    Args:
        rows: attributes of the tokens.
        gold: code of each token.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        Keys, sorted.
    """
    keys = [arc_pairs(gold[inside - 1], gold[inside], sets) for inside in neighbours(rows)]
    return _merged(keys) if keys else np.empty(0, np.int64)


def arc_counts(arcs: Array, rows: AttributeRows, gold: Array, sets: Array) -> Array:
    """Count how often neighbours are one of these pairs, given as `arcs_of` gives them.

    Args:
        arcs: keys, sorted.
        rows: attributes of the tokens.
        gold: code of each token.
        sets: [sets, labels] bool: what the codes below 0 allow.

    Returns:
        A count for each key.
    """
    counts, n_cells = np.zeros(len(arcs)), sets.shape[1] ** 2
    for inside in neighbours(rows):
        nothing, ones = np.zeros(len(inside), np.int64), np.ones(len(inside))
        counts += summed_up(arcs, nothing, gold[inside - 1], gold[inside], ones, sets, n_cells)
    return counts
