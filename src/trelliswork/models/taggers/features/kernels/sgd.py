"""CPU kernel of stochastic gradient descent: one sentence at a time, weights shrunk by one common factor.

Bottou (2010), Large-scale machine learning with stochastic gradient descent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.decoding import add_change, score_tokens
from trelliswork.models.taggers.features.kernels.records import Arcs
from trelliswork.models.taggers.features.kernels.sets import add_pairs, sentence_loss, spread_arcs, zero
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain import kernels as chain


class Clock(NamedTuple):
    """The true weights are scale · weights: the L2 term shrinks all of them by changing one number.

    The rate is 1 / (2 l2 (first + now)).
    """

    scale: float
    now: float
    first: float


@kernel(FAST)
def sgd_epoch(order, rows, index, edges, observed, room, weights, clock, l2):
    """Run one pass; return (Σ_s shares_s · -log p of the sentences as they were met, the clock after it).

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        observed: what is known of the labels (`Observed`).
        room: memory for the longest sentence (`Room` of `sets`).
        weights: divided by the scale of the clock, [weights]; moved.
        clock: the scale of the weights, and steps so far (`Clock`).
        l2: weight of the L2 penalty of a sentence.
    """
    # [S4.134-135]
    scale, now, loss = clock.scale, clock.now, 0.0
    by_position, shared = edges.ids.shape[0] > 0, _shared_arcs(index.legal)
    pair_weights = weights[index.labels.shape[0] + index.arcs.shape[0] :]
    for s in order:
        n, first = rows.lengths[s], rows.starts[s]
        nll, d_emissions, d_scores = _sentence_gradient(s, rows, index, edges, observed, room, weights, scale, shared)
        loss += nll  # -log p of the sentence
        rate = 1.0 / (2.0 * l2 * (clock.first + now))
        scale *= 1.0 - 2.0 * l2 * rate
        step = rate / scale
        _descend(first, rows, index, weights, step, d_emissions[0], d_scores[0])
        if by_position:
            spread_arcs(first, n, -step, edges, d_scores, pair_weights)
        now += 1.0
        if scale < 1e-9:
            weights *= scale
            scale = 1.0
    return loss, Clock(scale, now, clock.first)


@kernel(FAST)
def add_sentences(order, rows, index, edges, observed, room, weights, scale, change):
    """Add the gradient of these sentences, all at the weights scale · weights, to a sparse change; returns the loss.

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        observed: what is known of the labels (`Observed`).
        room: memory for the longest sentence (`Room` of `sets`).
        weights: divided by the scale, [weights].
        scale: what they are multiplied by.
        change: the sparse change that is added to (`Change`).
    """
    loss, shared = 0.0, _shared_arcs(index.legal)
    n_states, first_pair = index.labels.shape[0], index.labels.shape[0] + index.arcs.shape[0]
    for s in order:
        nll, d_emissions, d_scores = _sentence_gradient(s, rows, index, edges, observed, room, weights, scale, shared)
        loss += nll  # -log p of the sentence
        _add_states(rows.starts[s], rows, index, d_emissions[0], change)
        for a in range(index.arcs.shape[0]):
            amount = 0.0
            for t in range(d_scores.shape[1]):
                amount += d_scores[0, t, index.arcs[a, 0], index.arcs[a, 1]]
            add_change(n_states + a, amount, change)
        if edges.ids.shape[0] > 0:
            _add_edges(rows.starts[s], rows.lengths[s], edges, first_pair, d_scores, change)
    return loss


@kernel(FAST)
def _add_states(first, rows, index, d_emissions, change):
    valued = rows.values.shape[0] > 0
    for i in range(d_emissions.shape[0]):
        for e in range(rows.offsets[first + i], rows.offsets[first + i + 1]):
            a, value = rows.ids[e], rows.values[e] if valued else 1.0
            for p in range(index.offsets[a], index.offsets[a + 1]):
                add_change(p, value * d_emissions[i, index.labels[p]], change)


@kernel(FAST)
def _add_edges(first, n, edges, first_pair, d_scores, change):
    """Add the gradient of pair weights, as `spread_arcs`, to a sparse change."""
    c, valued = d_scores.shape[2], edges.values.shape[0] > 0
    for i in range(n - 1):
        for e in range(edges.offsets[first + i + 1], edges.offsets[first + i + 2]):
            value = edges.values[e] if valued else 1.0
            for p in range(edges.pair_offsets[edges.ids[e]], edges.pair_offsets[edges.ids[e] + 1]):
                arc = edges.pair_arcs[p]
                add_change(first_pair + p, value * d_scores[0, i, arc // c, arc % c], change)


@kernel(FAST)
def _shared_arcs(legal):
    """Return room for transitions that are the same at all tokens: scores, their gradient, both in exp space."""
    c = legal.arcs.shape[0]
    width = (c + 7) // 8 * 8
    transitions, d_transitions = legal.arcs.copy().reshape((1, 1, c, c)), np.empty((1, 1, c, c))
    return transitions, d_transitions, np.empty((1, 1, c, width)), np.empty((1, 1))


@kernel(FAST)
def _sentence_gradient(s, rows, index, edges, observed, room, weights, scale, shared):
    """Return the loss of sentence s at the weights scale · weights, and its gradients by emissions and transitions."""
    transitions, d_transitions, exp_transitions, shared_shifts = shared
    c, n_states, by_position = index.places.shape[0], index.labels.shape[0], edges.ids.shape[0] > 0
    n, first, width = rows.lengths[s], rows.starts[s], exp_transitions.shape[3]
    emissions, d_emissions = room.emissions[: n * c].reshape(1, n, c), room.d_emissions[: n * c].reshape(1, n, c)
    score_tokens(first, first + n, rows, index, weights, emissions[0])
    for i in range(n):
        for j in range(c):
            emissions[0, i, j] *= scale
    for a in range(index.arcs.shape[0]):
        transitions[0, 0, index.arcs[a, 0], index.arcs[a, 1]] = scale * weights[n_states + a]
    scores, d_scores, exp_scores, shifts = transitions, d_transitions, exp_transitions, shared_shifts
    if by_position:
        m = max(n - 1, 1)
        scores = room.transitions[: m * c * c].reshape(1, m, c, c)
        add_pairs(first, n, scale, edges, weights[n_states + index.arcs.shape[0] :], transitions, scores)
        exp_scores, shifts = room.arcs[: m * c * width].reshape(1, m, c, width), room.shifts[:m].reshape(1, m)
        d_scores = room.d_transitions[: m * c * c].reshape(1, m, c, c)
    zero(d_scores.ravel())
    chain.exp_arcs(scores, exp_scores, shifts)
    arcs = Arcs(scores, exp_scores, shifts, index.legal.start, index.legal.end)
    loss = sentence_loss(first, observed, observed.shares[s], emissions, arcs, room, d_emissions, d_scores)
    return loss, d_emissions, d_scores


@kernel(FAST)
def _descend(first, rows, index, weights, step, d_emissions, d_transitions):
    """Move the weights of a sentence's attributes and of the arcs against the gradient."""
    n_states, valued = index.labels.shape[0], rows.values.shape[0] > 0
    for i in range(d_emissions.shape[0]):
        for e in range(rows.offsets[first + i], rows.offsets[first + i + 1]):
            a, amount = rows.ids[e], step * (rows.values[e] if valued else 1.0)
            for p in range(index.offsets[a], index.offsets[a + 1]):
                weights[p] -= amount * d_emissions[i, index.labels[p]]
    for t in range(d_transitions.shape[0]):
        for a in range(index.arcs.shape[0]):
            weights[n_states + a] -= step * d_transitions[t, index.arcs[a, 0], index.arcs[a, 1]]
