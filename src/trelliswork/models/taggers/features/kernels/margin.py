"""CPU kernels of max-margin learning: the worst labels of a sentence, and block-coordinate Frank-Wolfe steps.

The dual variables of a sentence are a distribution over its label sequences. Only its expected features matter, so that
`shares` [tokens, c] (how much of it has label y at token t) and `arc_shares` [sentences, arcs] are all that is stored.
Arrays as in `online.py`.
"""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.online import score_tokens
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.chain.path_kernels import best_paths


@kernel(EXACT)
def worst_labels(first, n, entries, ids, values, offsets, labels, arcs, gold, weights, emissions, transitions, tags):
    """tags[0] = argmax_y score(y) + Δ(y), Δ the number of labels that are not gold; returns (Δ, the margin violated).

    The margin violated is max_y score(y) + Δ(y) - score(gold), at least 0.
    """
    c, n_states = emissions.shape[2], labels.shape[0]
    edge, length, possible = np.zeros(c), np.full(1, n), np.empty(1, np.bool_)
    score_tokens(first, first + n, entries, ids, values, offsets, labels, weights, emissions[0])
    for i in range(n):
        for j in range(c):
            emissions[0, i, j] += j != gold[first + i]
    for a in range(arcs.shape[0]):
        transitions[0, 0, arcs[a, 0], arcs[a, 1]] = weights[n_states + a]
    best_paths(0, 1, emissions, transitions, edge, edge, length, tags, possible)
    cost, violated = 0, 0.0
    for i in range(n):
        here, wanted = tags[0, i], gold[first + i]
        cost += here != wanted
        violated += emissions[0, i, here] - emissions[0, i, wanted]
        if i > 0:
            violated += transitions[0, 0, tags[0, i - 1], here] - transitions[0, 0, gold[first + i - 1], wanted]
    return cost, violated


@kernel(EXACT)
def hinge(order, lengths, starts, entries, ids, values, offsets, labels, arcs, gold, weights, c):
    """Σ of the margins violated, over the sentences: the loss without its regularizer."""
    longest = lengths.max()
    emissions, transitions = np.empty((1, longest, c)), np.zeros((1, 1, c, c))
    tags, total = np.zeros((1, longest), np.int64), 0.0
    for s in order:
        total += worst_labels(
            starts[s], lengths[s], entries, ids, values, offsets, labels, arcs, gold, weights, emissions, transitions,
            tags,
        )[1]  # fmt: skip
    return total


@kernel(EXACT)
def _move(weight, amount, change, touched, n_touched):
    if np.isnan(change[weight]):
        change[weight] = 0.0
        touched[n_touched] = weight
        n_touched += 1
    change[weight] += amount
    return n_touched


@kernel(EXACT)
def _direction(
    s, first, n, entries, ids, values, offsets, labels, arc_places, tags, shares, arc_shares, change, touched
):
    """change = the expected features of the dual variables less those of the tags; returns how many it touches."""
    n_touched, valued, n_states = 0, values.shape[0] > 0, labels.shape[0]
    for i in range(n):
        t = first + i
        for e in range(entries[t], entries[t + 1]):
            value = values[e] if valued else 1.0
            for p in range(offsets[ids[e]], offsets[ids[e] + 1]):
                amount = shares[t, labels[p]] - (labels[p] == tags[i])
                if amount != 0.0:
                    n_touched = _move(p, value * amount, change, touched, n_touched)
        if i > 0 and arc_places[tags[i - 1], tags[i]] >= 0:
            n_touched = _move(arc_places[tags[i - 1], tags[i]], -1.0, change, touched, n_touched)
    for a in range(arc_shares.shape[1]):
        if arc_shares[s, a] != 0.0:
            n_touched = _move(n_states + a, arc_shares[s, a], change, touched, n_touched)
    return n_touched


@kernel(EXACT)
def _mix_in(s, first, n, step, tags, shares, arc_shares, arc_places, n_states):
    """Move the dual variables of a sentence towards the tags."""
    for i in range(n):
        for j in range(shares.shape[1]):
            shares[first + i, j] *= 1.0 - step
        shares[first + i, tags[i]] += step
    for a in range(arc_shares.shape[1]):
        arc_shares[s, a] *= 1.0 - step
    for i in range(1, n):
        place = arc_places[tags[i - 1], tags[i]]
        if place >= 0:
            arc_shares[s, place - n_states] += step


@kernel(EXACT)
def frank_wolfe_epoch(
    order, lengths, starts, entries, ids, values, offsets, labels, arcs, arc_places, gold, weights, sums, shares,
    arc_shares, clock, c2,
):  # fmt: skip
    """One pass of block-coordinate steps, each with the best step length; returns (clock, wrong labels).

    `sums` collects clock (clock - 1) / 2 · change, so that the average of the weights with shares 1, 2, 3, ... is
    weights - sums / (clock (clock - 1) / 2).
    """
    c, longest, n_states = arc_places.shape[0], lengths.max(), labels.shape[0]
    emissions, transitions = np.empty((1, longest, c)), np.zeros((1, 1, c, c))
    tags = np.zeros((1, longest), np.int64)
    change, touched = np.full(weights.shape[0], np.nan), np.empty(weights.shape[0], np.int64)
    n_wrong = 0
    for s in order:
        n, first = lengths[s], starts[s]
        cost, _ = worst_labels(
            first, n, entries, ids, values, offsets, labels, arcs, gold, weights, emissions, transitions, tags
        )
        n_wrong += cost
        n_touched = _direction(
            s, first, n, entries, ids, values, offsets, labels, arc_places, tags[0], shares, arc_shares, change, touched
        )
        slope, square = float(cost), 0.0
        for i in range(n):
            slope -= 1.0 - shares[first + i, gold[first + i]]
        for k in range(n_touched):
            w = touched[k]
            slope -= change[w] * weights[w]
            square += change[w] * change[w]
        step = 1.0 if slope > 0.0 else 0.0
        if square > 0.0:
            step = min(max(2.0 * c2 * slope / square, 0.0), 1.0)
        for k in range(n_touched):
            w = touched[k]
            moved = step / (2.0 * c2) * change[w]
            weights[w] += moved
            sums[w] += clock * (clock - 1.0) / 2.0 * moved
            change[w] = np.nan
        if step > 0.0:
            _mix_in(s, first, n, step, tags[0], shares, arc_shares, arc_places, n_states)
        clock += 1.0
    return clock, n_wrong
