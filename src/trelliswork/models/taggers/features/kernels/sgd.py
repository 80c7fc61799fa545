"""CPU kernel of stochastic gradient descent: one sentence at a time, weights shrunk by one common factor."""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.online import score_tokens
from trelliswork.models.taggers.features.kernels.sets import add_pairs, sentence_loss, spread_arcs
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain import kernels as chain


@kernel(FAST)
def sgd_epoch(
    c, order, lengths, starts, entries, ids, values, offsets, labels, arcs, edges, gold, sets, shares, room,
    weights, scale, clock, first_clock, l2,
):  # fmt: skip
    """One pass [S4.134-135]; returns (Σ_s shares_s · -log p of the sentences as they were met, scale, clock).

    The true weights are scale · weights: the L2 term shrinks all of them by changing one number. The rate is
    1 / (2 l2 (first_clock + clock)).
    """
    n_states, width = labels.shape[0], (c + 7) // 8 * 8
    pair_weights = weights[n_states + arcs.shape[0] :]
    transitions, d_transitions, start = np.zeros((1, 1, c, c)), np.empty((1, 1, c, c)), np.zeros(c)
    arc_weights, arc_shifts = np.empty((1, 1, c, width)), np.empty((1, 1))
    valued, by_position, loss = values.shape[0] > 0, edges.ids.shape[0] > 0, 0.0
    for s in order:
        n, first = lengths[s], starts[s]
        emissions, d_emissions = room.emissions[: n * c].reshape(1, n, c), room.d_emissions[: n * c].reshape(1, n, c)
        score_tokens(first, first + n, entries, ids, values, offsets, labels, weights, emissions[0])
        for i in range(n):
            for j in range(c):
                emissions[0, i, j] *= scale
        for a in range(arcs.shape[0]):
            transitions[0, 0, arcs[a, 0], arcs[a, 1]] = scale * weights[n_states + a]
        scores, d_scores, exp_scores, shifts = transitions, d_transitions, arc_weights, arc_shifts
        if by_position:
            m = max(n - 1, 1)
            scores = room.transitions[: m * c * c].reshape(1, m, c, c)
            add_pairs(first, n, scale, edges, pair_weights, transitions, scores)
            exp_scores, shifts = room.arcs[: m * c * width].reshape(1, m, c, width), room.shifts[:m].reshape(1, m)
            d_scores = room.d_transitions[: m * c * c].reshape(1, m, c, c)
        for t in range(d_scores.shape[1]):
            for i in range(c):
                for j in range(c):
                    d_scores[0, t, i, j] = 0.0
        chain.exp_arcs(scores, exp_scores, shifts)
        loss += sentence_loss(
            first, gold, sets, shares[s], emissions, scores, exp_scores, shifts, start, room, d_emissions, d_scores
        )
        rate = 1.0 / (2.0 * l2 * (first_clock + clock))
        scale *= 1.0 - 2.0 * l2 * rate
        step = rate / scale
        for t in range(first, first + n):
            for e in range(entries[t], entries[t + 1]):
                amount = step * (values[e] if valued else 1.0)
                for p in range(offsets[ids[e]], offsets[ids[e] + 1]):
                    weights[p] -= amount * d_emissions[0, t - first, labels[p]]
        for t in range(d_scores.shape[1]):
            for a in range(arcs.shape[0]):
                weights[n_states + a] -= step * d_scores[0, t, arcs[a, 0], arcs[a, 1]]
        if by_position:
            spread_arcs(first, n, -step, edges, d_scores, pair_weights)
        clock += 1.0
        if scale < 1e-9:
            weights *= scale
            scale = 1.0
    return loss, scale, clock
