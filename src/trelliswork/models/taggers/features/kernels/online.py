"""CPU kernels that learn from one sentence at a time: decode, compare with the gold labels, move the weights.

`offsets` and `labels` are those of `Parameters`; state weights are `weights[:len(labels)]`, those of arc (i, j) are at
arc_places[i, j], or nowhere if that is -1. `edges` (see `sets.EdgeRows`) have the attributes that look at two
labels.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.models.taggers.features.kernels.sets import add_pairs
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.chain.path_kernels import best_paths


@kernel(FAST)
def score_tokens(first, last, entries, ids, values, offsets, labels, weights, emissions):
    """emissions[t] = Σ value · weight over the attributes of tokens first..last [S4.74]."""
    valued = values.shape[0] > 0
    for t in range(first, last):
        row = emissions[t - first]
        for j in range(row.shape[0]):
            row[j] = 0.0
        for e in range(entries[t], entries[t + 1]):
            value = values[e] if valued else 1.0
            for p in range(offsets[ids[e]], offsets[ids[e] + 1]):
                row[labels[p]] += value * weights[p]


@kernel(FAST)
def best_labels(starts, emissions, transitions, tags):
    """The best labels of sentences that lie behind one another: tags[t] of emissions[t] [S4.100-103]."""
    c = emissions.shape[1]
    edge, possible, length = np.zeros(c), np.empty(1, np.bool_), np.empty(1, np.int64)
    arcs = transitions.reshape((1, 1, c, c))
    for s in range(starts.shape[0] - 1):
        length[0] = starts[s + 1] - starts[s]
        if length[0] > 0:
            scores = emissions[starts[s] : starts[s + 1]].reshape((1, length[0], c))
            out = tags[starts[s] : starts[s + 1]].reshape((1, length[0]))
            best_paths(0, 1, scores, arcs, edge, edge, length, out, possible)


@kernel(EXACT)
def _weight_of(attribute, label, offsets, labels):
    """The weight of an (attribute, label) pair, -1 if it has none; labels of an attribute are sorted."""
    low, high = offsets[attribute], offsets[attribute + 1]
    while low < high:
        middle = (low + high) // 2
        if labels[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low if low < offsets[attribute + 1] and labels[low] == label else -1


@kernel(EXACT)
def _collect(first, n, entries, ids, values, offsets, labels, arc_places, gold, tags, change, touched):
    """change[w] = features of the gold labels less those of the tags, for the weights in `touched`, NaN for others.

    Returns how many are touched.
    """
    n_touched = 0
    for i in range(n):
        t = first + i
        if gold[t] != tags[i]:
            for e in range(entries[t], entries[t + 1]):
                value = values[e] if values.shape[0] > 0 else 1.0
                for sign, label in ((1.0, gold[t]), (-1.0, tags[i])):
                    n_touched = _change(
                        _weight_of(ids[e], label, offsets, labels), sign * value, change, touched, n_touched
                    )
        if i > 0 and (gold[t] != tags[i] or gold[t - 1] != tags[i - 1]):
            n_touched = _change(arc_places[gold[t - 1], gold[t]], 1.0, change, touched, n_touched)
            n_touched = _change(arc_places[tags[i - 1], tags[i]], -1.0, change, touched, n_touched)
    return n_touched


@kernel(EXACT)
def _collect_pairs(first, n, edges, first_pair, gold, tags, c, change, touched, n_touched):
    """The same for the weights of pairs, which are weights[first_pair:]."""
    for i in range(1, n):
        t = first + i
        if gold[t] == tags[i] and gold[t - 1] == tags[i - 1]:
            continue
        for e in range(edges.offsets[t], edges.offsets[t + 1]):
            value = edges.values[e] if edges.values.shape[0] > 0 else 1.0
            for sign, arc in ((1.0, gold[t - 1] * c + gold[t]), (-1.0, tags[i - 1] * c + tags[i])):
                place = _weight_of(edges.ids[e], arc, edges.pair_offsets, edges.pair_arcs)
                if place >= 0:
                    n_touched = _change(first_pair + place, sign * value, change, touched, n_touched)
    return n_touched


@kernel(EXACT)
def _change(weight, amount, change, touched, n_touched):
    if weight >= 0:
        if np.isnan(change[weight]):  # not touched yet; 0 would not tell, changes may cancel
            change[weight] = 0.0
            touched[n_touched] = weight
            n_touched += 1
        change[weight] += amount
    return n_touched


@kernel(EXACT)
def epoch(
    order, lengths, starts, entries, ids, values, offsets, labels, arcs, arc_places, edges, gold,
    weights, sums, variance, clock, rule, aggressiveness, error_sensitive,
):  # fmt: skip
    """One pass over the sentences in this order; returns (sum of losses, clock, wrong labels).

    `rule`: 0 perceptron [S4.221], 1-3 passive-aggressive without slack, PA-I and PA-II, 4 AROW. `sums` collects
    clock · change, so that the average of the weights is weights - sums / clock. `variance` is used by AROW.
    """
    c = arc_places.shape[0]
    longest = lengths.max()
    emissions, shared = np.empty((1, longest, c)), np.zeros((1, 1, c, c))
    by_position, first_pair = edges.ids.shape[0] > 0, labels.shape[0] + arcs.shape[0]
    matrices = np.empty((1, max(longest - 1, 1) if by_position else 0, c, c))
    tags, possible, edge = np.zeros((1, longest), np.int64), np.empty(1, np.bool_), np.zeros(c)
    change = np.full(weights.shape[0], np.nan)
    touched = np.empty(weights.shape[0], np.int64)
    total, n_wrong = 0.0, 0
    for s in order:
        n, first = lengths[s], starts[s]
        score_tokens(first, first + n, entries, ids, values, offsets, labels, weights, emissions[0])
        for a in range(arcs.shape[0]):
            shared[0, 0, arcs[a, 0], arcs[a, 1]] = weights[labels.shape[0] + a]
        transitions = shared
        if by_position:
            add_pairs(first, n, 1.0, edges, weights[first_pair:], shared, matrices)
            transitions = matrices
        best_paths(0, 1, emissions, transitions, edge, edge, lengths[s : s + 1], tags, possible)
        wrong = 0
        for i in range(n):
            wrong += tags[0, i] != gold[first + i]
        n_wrong += wrong
        if wrong > 0:
            n_touched = _collect(
                first, n, entries, ids, values, offsets, labels, arc_places, gold, tags[0], change, touched
            )
            if by_position:
                n_touched = _collect_pairs(first, n, edges, first_pair, gold, tags[0], c, change, touched, n_touched)
            margin, norm = 0.0, 0.0
            for k in range(n_touched):
                w = touched[k]
                margin += change[w] * weights[w]
                norm += change[w] * change[w] * (variance[w] if rule == 4 else 1.0)
            cost = float(wrong) if rule == 4 else math.sqrt(wrong) if error_sensitive else 1.0  # as CRFsuite has them
            loss = cost - margin
            total += wrong / n if rule == 0 else max(loss, 0.0)
            rate = _rate(rule, loss, norm, aggressiveness)
            for k in range(n_touched):
                w = touched[k]
                step = rate * change[w] * (variance[w] if rule == 4 else 1.0)
                weights[w] += step
                sums[w] += clock * step
                if rule == 4:
                    variance[w] = 1.0 / (1.0 / variance[w] + change[w] * change[w] / aggressiveness)
            for k in range(n_touched):
                change[touched[k]] = np.nan
        clock += 1.0
    return total, clock, n_wrong


@kernel(EXACT)
def _rate(rule, loss, norm, aggressiveness):
    """How far to go along the change."""
    if rule == 0:
        return 1.0
    if loss <= 0.0 or norm == 0.0:
        return 0.0
    if rule == 1:
        return loss / norm
    if rule == 2:
        return min(aggressiveness, loss / norm)
    if rule == 3:
        return loss / (norm + 0.5 / aggressiveness)
    return loss / (norm + aggressiveness)
