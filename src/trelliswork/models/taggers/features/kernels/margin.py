"""CPU kernels of max-margin learning: the worst labels of a sentence, and block-coordinate Frank-Wolfe steps.

The dual variables of a sentence are a distribution over its label sequences. Only its expected features matter: see
`Dual`.
"""

from __future__ import annotations

from typing import NamedTuple

from trelliswork.models.taggers.features.kernels.decoding import (
    add_change,
    clear,
    decode,
    no_change,
    path_for,
    score_arcs,
    score_tokens,
)
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel


class Dual(NamedTuple):
    """The share of the dual variables that a label has at a token, and an arc in a sentence."""

    labels: Array  # [tokens, c]
    arcs: Array  # [sentences, arcs]


@kernel(EXACT)
def worst_labels(s, rows, index, gold, weights, path):
    """Set path.tags[0] = argmax_y score(y) + Δ(y), Δ the number of wrong labels; returns (Δ, margin violated).

    The margin violated is max_y score(y) + Δ(y) - score(gold), at least 0.

    Args:
        s: the sentence.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        gold: the label of each token, [tokens].
        weights: all weights, [weights].
        path: room for the sentence (`Path`).
    """
    n, first, emissions, transitions = rows.lengths[s], rows.starts[s], path.emissions, path.transitions
    score_tokens(first, first + n, rows, index, weights, emissions[0])
    for i in range(n):
        for j in range(emissions.shape[2]):
            emissions[0, i, j] += j != gold[first + i]
    score_arcs(index, weights, transitions)
    decode(rows.lengths[s : s + 1], path, transitions, path.tags)
    tags, cost, violated = path.tags[0], 0, 0.0
    for i in range(n):
        here, wanted = tags[i], gold[first + i]
        cost += here != wanted
        violated += emissions[0, i, here] - emissions[0, i, wanted]
        if i > 0:
            violated += transitions[0, 0, tags[i - 1], here] - transitions[0, 0, gold[first + i - 1], wanted]
    return cost, violated


@kernel(EXACT)
def hinge(order, rows, index, gold, weights):
    """Return Σ of the margins violated, over the sentences: the loss without its regularizer.

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        gold: the label of each token, [tokens].
        weights: all weights, [weights].
    """
    path, total = path_for(rows.lengths.max(), index.legal), 0.0
    for s in order:
        total += worst_labels(s, rows, index, gold, weights, path)[1]
    return total


@kernel(EXACT)
def _direction(s, rows, index, tags, dual, change):
    """Set change = the expected features of the dual variables less those of the tags."""
    first, labels, n_states = rows.starts[s], index.labels, index.labels.shape[0]
    for i in range(rows.lengths[s]):
        t = first + i
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a, value = rows.ids[e], rows.values[e] if rows.values.shape[0] > 0 else 1.0
            for p in range(index.offsets[a], index.offsets[a + 1]):
                amount = dual.labels[t, labels[p]] - (labels[p] == tags[i])
                if amount != 0.0:
                    add_change(p, value * amount, change)
        if i > 0:
            add_change(index.places[tags[i - 1], tags[i]], -1.0, change)
    for a in range(dual.arcs.shape[1]):
        if dual.arcs[s, a] != 0.0:
            add_change(n_states + a, dual.arcs[s, a], change)


@kernel(EXACT)
def _mix_in(s, rows, index, tags, step, dual):
    """Move the dual variables of a sentence towards the tags."""
    first, n = rows.starts[s], rows.lengths[s]
    for i in range(n):
        for j in range(dual.labels.shape[1]):
            dual.labels[first + i, j] *= 1.0 - step
        dual.labels[first + i, tags[i]] += step
    for a in range(dual.arcs.shape[1]):
        dual.arcs[s, a] *= 1.0 - step
    for i in range(1, n):
        place = index.places[tags[i - 1], tags[i]]
        if place >= 0:
            dual.arcs[s, place - index.labels.shape[0]] += step


@kernel(EXACT)
def frank_wolfe_epoch(order, rows, index, gold, moving, dual, clock, c2):
    """Make one pass of block-coordinate steps, each with the best step length; returns (clock, wrong labels).

    Here `moving.sums` collects clock (clock - 1) / 2 · step, so that the average of the weights with shares 1, 2, 3 and
    so on is weights - sums / (clock (clock - 1) / 2).

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        gold: the label of each token, [tokens].
        moving: the weights, and the sums that make their average (`Moving`).
        dual: the dual variables (`Dual`); moved.
        clock: steps so far.
        c2: weight of the L2 penalty.
    """
    weights, n_wrong = moving.weights, 0
    path, change = path_for(rows.lengths.max(), index.legal), no_change(weights.shape[0])
    for s in order:
        cost, _ = worst_labels(s, rows, index, gold, weights, path)
        n_wrong += cost
        _direction(s, rows, index, path.tags[0], dual, change)
        slope, square = float(cost), 0.0
        for t in range(rows.starts[s], rows.starts[s + 1]):
            slope -= 1.0 - dual.labels[t, gold[t]]
        for k in range(change.n_touched[0]):
            w = change.touched[k]
            slope -= change.amounts[w] * weights[w]
            square += change.amounts[w] * change.amounts[w]
        step = 1.0 if slope > 0.0 else 0.0
        if square > 0.0:
            step = min(max(2.0 * c2 * slope / square, 0.0), 1.0)
        for k in range(change.n_touched[0]):
            w = change.touched[k]
            moved = step / (2.0 * c2) * change.amounts[w]
            weights[w] += moved
            moving.sums[w] += clock * (clock - 1.0) / 2.0 * moved
        clear(change)
        if step > 0.0:
            _mix_in(s, rows, index, path.tags[0], step, dual)
        clock += 1.0
    return clock, n_wrong
