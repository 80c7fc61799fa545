"""CPU kernel of stochastic gradient descent: one sentence at a time, weights shrunk by one common factor."""

from __future__ import annotations

import numpy as np
from numba import njit

from trelliswork.models.feature_crf.online_kernels import score_tokens
from trelliswork.structures.chain import kernels as chain
from trelliswork.structures.kernel_math import KERNEL


@njit(**KERNEL)
def sgd_epoch(
    c, order, lengths, starts, entries, ids, values, offsets, labels, arcs, gold, weights, scale, clock, first_clock, l2
):
    """One pass [S4.134-135]; returns (Σ -log p of the sentences as they were met, scale, clock).

    The true weights are scale · weights: the L2 term shrinks all of them by changing one number. The rate is
    1 / (2 l2 (first_clock + clock)).
    """
    longest, n_states = lengths.max(), labels.shape[0]
    shape, width = (1, longest, c), (c + 7) // 8 * 8
    emissions, alphas, emits, d_emissions = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    finals, log_z, wide, one = np.empty(1), np.empty(1), np.empty(1, np.bool_), np.ones(1)
    transitions, arc_weights, arc_shifts = np.zeros((1, 1, c, c)), np.empty((1, 1, c, width)), np.empty((1, 1))
    d_transitions, edge, none_kept = np.empty((1, 1, c, c)), np.zeros(c), np.empty((0, 0, 0))
    row, valued, loss = np.zeros(1, np.int64), values.shape[0] > 0, 0.0
    for s in order:
        n, first = lengths[s], starts[s]
        length = lengths[s : s + 1]
        score_tokens(first, first + n, entries, ids, values, offsets, labels, weights, emissions[0])
        for i in range(n):
            for j in range(c):
                emissions[0, i, j] *= scale
        for a in range(arcs.shape[0]):
            transitions[0, 0, arcs[a, 0], arcs[a, 1]] = scale * weights[n_states + a]
        chain.exp_arcs(transitions, arc_weights, arc_shifts)
        chain.forward_scaled(
            0,
            1,
            emissions,
            transitions,
            arc_weights,
            arc_shifts,
            edge,
            edge,
            length,
            alphas,
            emits,
            finals,
            log_z,
            wide,
        )
        sums = chain.backward_scaled(
            0, 1, alphas, emits, arc_weights, edge, finals, length, one, d_emissions, none_kept, False
        )
        for i in range(c):
            for j in range(c):
                d_transitions[0, 0, i, j] = sums[0, i, j] * arc_weights[0, 0, i, j]
        if wide[0]:
            log_alphas, arrivals = np.empty((1, longest, c)), np.empty((1, longest, c))
            chain.forward_log(row, emissions, transitions, edge, edge, length, log_alphas, arrivals, log_z)
            chain.backward_log(
                row, transitions, edge, length, log_alphas, arrivals, log_z, one, d_emissions, d_transitions
            )
        loss += log_z[0]
        for i in range(n):
            label = gold[first + i]
            loss -= emissions[0, i, label]
            d_emissions[0, i, label] -= 1.0
            if i > 0:
                loss -= transitions[0, 0, gold[first + i - 1], label]
                d_transitions[0, 0, gold[first + i - 1], label] -= 1.0
        rate = 1.0 / (2.0 * l2 * (first_clock + clock))
        scale *= 1.0 - 2.0 * l2 * rate
        step = rate / scale
        for t in range(first, first + n):
            for e in range(entries[t], entries[t + 1]):
                amount = step * (values[e] if valued else 1.0)
                for p in range(offsets[ids[e]], offsets[ids[e] + 1]):
                    weights[p] -= amount * d_emissions[0, t - first, labels[p]]
        for a in range(arcs.shape[0]):
            weights[n_states + a] -= step * d_transitions[0, 0, arcs[a, 0], arcs[a, 1]]
        clock += 1.0
        if scale < 1e-9:
            weights *= scale
            scale = 1.0
    return loss, scale, clock
