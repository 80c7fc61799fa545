"""The common part of the kernels that learn by decoding: scores, the best labels, sparse changes of the weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from trelliswork.data.attributes.key_kernels import find_keys, hash_joined
from trelliswork.models.taggers.features.kernels.records import Change, Path
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.chain.path_kernels import best_paths


@kernel(FAST)
def score_tokens(first, last, rows, index, weights, emissions):
    """Fill in emissions[t] = Σ value · weight over the attributes of tokens first..last.

    Args:
        first: the first token.
        last: the token behind the last one.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        weights: all weights, [weights].
        emissions: [tokens, c]; written.
    """
    # [S4.74]
    offsets, labels, valued = index.offsets, index.labels, rows.values.shape[0] > 0
    for t in range(first, last):
        row = emissions[t - first]
        for j in range(row.shape[0]):
            row[j] = 0.0
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a, value = rows.ids[e], rows.values[e] if valued else 1.0
            for p in range(offsets[a], offsets[a + 1]):
                row[labels[p]] += value * weights[p]


@kernel(FAST)
def score_text(joined, table, numbers, offsets, labels, weights, emissions):
    """Fill in emissions[t] = Σ value · weight over the attributes of token t of a `Joined` sentence.

    They are looked up in the `table` and `numbers` of a `KeyIndex`; strangers score 0. False if there is a zero in a
    name: the text then has more names than the tokens have attributes.

    Args:
        joined: the names of the attributes of a sentence as one text, with counts and values (`Joined`).
        table: the hash table of a `KeyIndex`.
        numbers: the attribute in each of its places.
        offsets: attribute a has the weights offsets[a]..offsets[a + 1].
        labels: the label of each weight.
        weights: all weights, [weights].
        emissions: [n, c]; written.
    """
    # [S4.74]
    counts, n, valued = joined.counts, 0, joined.values.shape[0] > 0
    for t in range(counts.shape[0]):
        n += counts[t]
    keys, ids = np.empty(n, np.uint64), np.empty(n, np.int32)
    n_names, first = hash_joined(joined.names, keys), 0
    find_keys(table, numbers, keys, ids)
    for t in range(counts.shape[0]):
        row = emissions[t]
        for j in range(row.shape[0]):
            row[j] = 0.0
        for e in range(first, first + counts[t]):
            a, value = ids[e], joined.values[e] if valued else 1.0
            if a >= 0 and value != 0.0:
                for p in range(offsets[a], offsets[a + 1]):
                    row[labels[p]] += value * weights[p]
        first += counts[t]
    return n_names == n


@kernel(FAST)
def score_arcs(index, weights, transitions):
    """Set transitions[0, 0, i, j] = the weight of arc (i, j); pairs without a weight stay as they are.

    Args:
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        weights: all weights, [weights].
        transitions: [1, 1, c, c]; written where there is a weight.
    """
    n_states = index.labels.shape[0]
    for a in range(index.arcs.shape[0]):
        transitions[0, 0, index.arcs[a, 0], index.arcs[a, 1]] = weights[n_states + a]


def best_labels(starts: Array, emissions: Array, transitions: Array, start: Array, end: Array, tags: Array) -> None:
    """Fill in the best labels of sentences that lie behind one another: tags[t] of emissions[t].

    Calls the kernel sentence by sentence: a kernel around it would be compiled for a second, to save microseconds.

    Args:
        starts: the first token of each sentence, and the number of tokens, [sentences + 1].
        emissions: [tokens, c].
        transitions: [c, c].
        start: scores of first labels, [c].
        end: scores of last labels, [c].
        tags: [tokens]; written.
    """
    # [S4.100-103]
    possible, length, arcs = np.empty(1, np.bool_), np.empty(1, np.int64), transitions[None, None]
    for first, last in pairwise(starts.tolist()):
        if first < last:
            length[0] = last - first
            rows = emissions[None, first:last], tags[None, first:last]
            best_paths(0, 1, rows[0], arcs, start, end, length, rows[1], possible)


@kernel(EXACT)
def path_for(longest, legal):
    """Return room to decode sentences of up to `longest` tokens; without weights, all that is legal scores 0.

    Args:
        longest: Tokens of the longest sentence.
        legal: Which labels may begin, follow one another and end, as scores of 0 or -inf.

    Returns:
        Arrays for one sentence at a time.
    """
    c = legal.start.shape[0]
    emissions, tags = np.empty((1, longest, c)), np.zeros((1, longest), np.int64)
    return Path(emissions, legal.arcs.copy().reshape((1, 1, c, c)), tags, legal.start, legal.end, np.empty(1, np.bool_))


@kernel(EXACT)
def decode(length, path, transitions, tags):
    """Set tags[0] = the best labels of a sentence; `length` is [1].

    Args:
        length: tokens of the sentence, [1].
        path: room for the sentence, with its emissions (`Path`).
        transitions: [1, 1 or n - 1, c, c].
        tags: [1, longest]; written.
    """
    best_paths(0, 1, path.emissions, transitions, path.start, path.end, length, tags, path.possible)


@kernel(EXACT)
def no_change(n_weights):
    """Return a change that touches no weight.

    Args:
        n_weights: Number of weights.

    Returns:
        Amounts [n_weights], NaN where nothing is changed.
    """
    return Change(np.full(n_weights, np.nan), np.empty(n_weights, np.int64), np.zeros(1, np.int64))


@kernel(EXACT)
def add_change(weight, amount, change):
    """Add to the change of a weight; -1 is no weight.

    Args:
        weight: number of the weight.
        amount: what is added to its change.
        change: the sparse change that is added to (`Change`).
    """
    if weight >= 0:
        if np.isnan(change.amounts[weight]):
            change.amounts[weight] = 0.0
            change.touched[change.n_touched[0]] = weight
            change.n_touched[0] += 1
        change.amounts[weight] += amount


@kernel(EXACT)
def clear(change):
    """Touch no weight again.

    Args:
        change: The change to empty in place.
    """
    for k in range(change.n_touched[0]):
        change.amounts[change.touched[k]] = np.nan
    change.n_touched[0] = 0


@kernel(EXACT)
def weight_of(attribute, label, offsets, labels):
    """Return the weight of an (attribute, label) pair, -1 if it has none; labels of an attribute are sorted.

    Args:
        attribute: its number.
        label: its number.
        offsets: attribute a has the weights offsets[a]..offsets[a + 1].
        labels: the label of each weight.

    Returns:
        Number of the weight.
    """
    low, high = offsets[attribute], offsets[attribute + 1]
    while low < high:
        middle = (low + high) // 2
        if labels[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low if low < offsets[attribute + 1] and labels[low] == label else -1


@kernel(EXACT)
def add_difference(first, rows, index, gold, tags, n, change):
    """Add the features of the gold labels of a sentence, less those of its tags.

    Args:
        first: the first token of the sentence.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        gold: the label of each token, [tokens].
        tags: the labels that were predicted, [n].
        n: tokens of the sentence.
        change: the sparse change that is added to (`Change`).
    """
    for i in range(n):
        t = first + i
        if gold[t] != tags[i]:
            for e in range(rows.offsets[t], rows.offsets[t + 1]):
                value = rows.values[e] if rows.values.shape[0] > 0 else 1.0
                for sign, label in ((1.0, gold[t]), (-1.0, tags[i])):
                    add_change(weight_of(rows.ids[e], label, index.offsets, index.labels), sign * value, change)
        if i > 0 and (gold[t] != tags[i] or gold[t - 1] != tags[i - 1]):
            add_change(index.places[gold[t - 1], gold[t]], 1.0, change)
            add_change(index.places[tags[i - 1], tags[i]], -1.0, change)


@kernel(EXACT)
def add_pair_difference(first, edges, first_pair, gold, tags, n, c, change):
    """Add the difference of attributes that look at neighbouring labels, whose weights are weights[first_pair:].

    Args:
        first: the first token of the sentence.
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        first_pair: number of the first weight of a pair.
        gold: the label of each token, [tokens].
        tags: the labels that were predicted, [n].
        n: tokens of the sentence.
        c: number of labels.
        change: the sparse change that is added to (`Change`).
    """
    for i in range(1, n):
        t = first + i
        if gold[t] == tags[i] and gold[t - 1] == tags[i - 1]:
            continue
        for e in range(edges.offsets[t], edges.offsets[t + 1]):
            value = edges.values[e] if edges.values.shape[0] > 0 else 1.0
            for sign, arc in ((1.0, gold[t - 1] * c + gold[t]), (-1.0, tags[i - 1] * c + tags[i])):
                place = weight_of(edges.ids[e], arc, edges.pair_offsets, edges.pair_arcs)
                if place >= 0:
                    add_change(first_pair + place, sign * value, change)
