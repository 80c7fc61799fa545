"""CPU kernel of learners that look at one sentence at a time: decode, compare with the gold labels, move weights."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from trelliswork.models.taggers.features.kernels.decoding import (
    add_difference,
    add_pair_difference,
    clear,
    decode,
    no_change,
    path_for,
    score_arcs,
    score_tokens,
)
from trelliswork.models.taggers.features.kernels.sets import add_pairs
from trelliswork.runtime.compilation import EXACT, kernel


class Update(IntEnum):
    """Rules by which weights follow a mistake: the perceptron, passive-aggressive without slack, PA-I, PA-II, AROW."""

    PERCEPTRON = 0
    PASSIVE_AGGRESSIVE = 1
    PASSIVE_AGGRESSIVE_1 = 2
    PASSIVE_AGGRESSIVE_2 = 3
    AROW = 4


@kernel(EXACT)
def epoch(order, rows, index, edges, gold, moving, clock, update, aggressiveness, error_sensitive):
    """Make one pass over the sentences in this order [S4.221]; returns (sum of losses, clock, wrong labels).

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        gold: the label of each token, [tokens].
        moving: the weights, and the sums that make their average (`Moving`).
        clock: steps so far.
        update: the rule (`Update`).
        aggressiveness: C of passive-aggressive rules, γ of AROW.
        error_sensitive: whether the cost is the root of the number of wrong labels, not 1.
    """
    weights, c, longest = moving.weights, index.places.shape[0], rows.lengths.max()
    by_position, first_pair = edges.ids.shape[0] > 0, index.labels.shape[0] + index.arcs.shape[0]
    path, change = path_for(longest, index.legal), no_change(weights.shape[0])
    matrices = np.empty((1, max(longest - 1, 1) if by_position else 0, c, c))
    total, n_wrong = 0.0, 0
    for s in order:
        n, first = rows.lengths[s], rows.starts[s]
        score_tokens(first, first + n, rows, index, weights, path.emissions[0])
        score_arcs(index, weights, path.transitions)
        transitions = path.transitions
        if by_position:
            add_pairs(first, n, 1.0, edges, weights[first_pair:], path.transitions, matrices)
            transitions = matrices
        decode(rows.lengths[s : s + 1], path, transitions, path.tags)
        wrong = 0
        for i in range(n):
            wrong += path.tags[0, i] != gold[first + i]
        n_wrong += wrong
        if wrong > 0:
            add_difference(first, rows, index, gold, path.tags[0], n, change)
            if by_position:
                add_pair_difference(first, edges, first_pair, gold, path.tags[0], n, c, change)
            cost = math.sqrt(wrong) if error_sensitive else 1.0  # as CRFsuite has them
            loss = _move(change, moving, clock, update, float(wrong) if update == Update.AROW else cost, aggressiveness)
            total += wrong / n if update == Update.PERCEPTRON else max(loss, 0.0)
            clear(change)
        clock += 1.0
    return total, clock, n_wrong


@kernel(EXACT)
def _move(change, moving, clock, update, cost, aggressiveness):
    """Move the weights along the change; returns the loss, cost less margin."""
    adaptive, margin, norm = update == Update.AROW, 0.0, 0.0
    for k in range(change.n_touched[0]):
        w = change.touched[k]
        amount = change.amounts[w]
        margin += amount * moving.weights[w]
        norm += amount * amount * (moving.variance[w] if adaptive else 1.0)
    rate = _rate(update, cost - margin, norm, aggressiveness)
    for k in range(change.n_touched[0]):
        w = change.touched[k]
        amount = change.amounts[w]
        step = rate * amount * (moving.variance[w] if adaptive else 1.0)
        moving.weights[w] += step
        moving.sums[w] += clock * step
        if adaptive:
            moving.variance[w] = 1.0 / (1.0 / moving.variance[w] + amount * amount / aggressiveness)
    return cost - margin


@kernel(EXACT)
def _rate(update, loss, norm, aggressiveness):
    """Return how far to go along the change."""
    if update == Update.PERCEPTRON:
        return 1.0
    if loss <= 0.0 or norm == 0.0:
        return 0.0
    if update == Update.PASSIVE_AGGRESSIVE:
        return loss / norm
    if update == Update.PASSIVE_AGGRESSIVE_1:
        return min(aggressiveness, loss / norm)
    if update == Update.PASSIVE_AGGRESSIVE_2:
        return loss / (norm + 0.5 / aggressiveness)
    return loss / (norm + aggressiveness)
