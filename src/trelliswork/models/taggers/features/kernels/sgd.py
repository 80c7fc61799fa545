"""CPU kernel of stochastic gradient descent: one sentence at a time, weights shrunk by one common factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.decoding import score_tokens
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
    """One pass [S4.134-135]; returns (Σ_s shares_s · -log p of the sentences as they were met, the clock after it)."""
    c, n_states, scale, now, loss = index.places.shape[0], index.labels.shape[0], clock.scale, clock.now, 0.0
    width, by_position = (c + 7) // 8 * 8, edges.ids.shape[0] > 0
    pair_weights = weights[n_states + index.arcs.shape[0] :]
    transitions, d_transitions = index.legal.arcs.copy().reshape((1, 1, c, c)), np.empty((1, 1, c, c))
    exp_transitions, shared_shifts = np.empty((1, 1, c, width)), np.empty((1, 1))
    for s in order:
        n, first = rows.lengths[s], rows.starts[s]
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
            add_pairs(first, n, scale, edges, pair_weights, transitions, scores)
            exp_scores, shifts = room.arcs[: m * c * width].reshape(1, m, c, width), room.shifts[:m].reshape(1, m)
            d_scores = room.d_transitions[: m * c * c].reshape(1, m, c, c)
        zero(d_scores.ravel())
        chain.exp_arcs(scores, exp_scores, shifts)
        arcs = Arcs(scores, exp_scores, shifts, index.legal.start, index.legal.end)
        loss += sentence_loss(first, observed, observed.shares[s], emissions, arcs, room, d_emissions, d_scores)
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
