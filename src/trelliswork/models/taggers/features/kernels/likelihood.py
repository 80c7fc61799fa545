"""CPU kernels over sparse attributes: emission scores of a sentence, and gradients back to the weights."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain import kernels as chain


@kernel(FAST)
def add_up(rows, t, table, loose, scores):
    """scores[:width] = Σ value · weight over the attributes of token t [S4.74]."""
    width = table.shape[1]
    for j in range(width):
        scores[j] = 0.0
    valued = rows.dense_values.shape[0] > 0
    for k in range(rows.dense_offsets[t], rows.dense_offsets[t + 1]):
        row = rows.dense_rows[k]
        value = rows.dense_values[k] if valued else 1.0
        for j in range(width):
            scores[j] += value * table[row, j]
    valued = rows.loose_values.shape[0] > 0
    for k in range(rows.loose_offsets[t], rows.loose_offsets[t + 1]):
        value = rows.loose_values[k] if valued else 1.0
        scores[rows.loose_labels[k]] += value * loose[rows.loose_weights[k]]


@kernel(FAST)
def spread(rows, t, d_scores, d_table, d_loose):
    """Add value · d_scores to the gradient of every weight of token t: the transpose of `add_up`."""
    width = d_table.shape[1]
    valued = rows.dense_values.shape[0] > 0
    for k in range(rows.dense_offsets[t], rows.dense_offsets[t + 1]):
        row = rows.dense_rows[k]
        value = rows.dense_values[k] if valued else 1.0
        for j in range(width):
            d_table[row, j] += value * d_scores[j]
    valued = rows.loose_values.shape[0] > 0
    for k in range(rows.loose_offsets[t], rows.loose_offsets[t + 1]):
        value = rows.loose_values[k] if valued else 1.0
        d_loose[rows.loose_weights[k]] += value * d_scores[rows.loose_labels[k]]


@kernel(FAST)
def emissions_of(first, last, rows, table, loose, emissions):
    """Emission scores of sentences first..last: [sentences, longest, c]."""
    c = emissions.shape[2]
    scores = np.empty(table.shape[1])
    for s in range(first, last):
        for i in range(rows.lengths[s]):
            add_up(rows, rows.starts[s] + i, table, loose, scores)
            for j in range(c):
                emissions[s - first, i, j] = scores[j]


@kernel(FAST)
def _observe(rows, s, b, gold, weight, emissions, transitions, d_emissions, d_transitions):
    """The score of the gold labels of a sentence; takes its parts off the gradient of log Z [S4.115]."""
    score, before = 0.0, -1
    for i in range(rows.lengths[s]):
        label = gold[rows.starts[s] + i]
        score += emissions[b, i, label]
        d_emissions[b, i, label] -= weight
        if i > 0:
            score += transitions[0, 0, before, label]
            d_transitions[0, 0, before, label] -= weight
        before = label
    return score


@kernel(FAST)
def loss_and_gradient(first, last, rows, gold, weights, transitions, table, loose, block):
    """Σ_s weights_s (log Z_s - score_s) of sentences first..last, and its gradients by transitions, table and loose.

    `block` sentences at a time are scored and summed over, in scaled exp space or, where that fails, in log space.
    """
    c, longest = transitions.shape[2], 0
    for s in range(first, last):
        longest = max(longest, rows.lengths[s])
    shape = (block, longest, c)
    emissions, alphas, emits, d_emissions = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    finals, log_z, wide = np.empty(block), np.empty(block), np.empty(block, np.bool_)
    edge, none_kept, d_scores = np.zeros(c), np.empty((0, 0, 0)), np.zeros(table.shape[1])
    arcs, arc_shifts = np.empty((1, 1, c, table.shape[1])), np.empty((1, 1))
    chain.exp_arcs(transitions, arcs, arc_shifts)
    d_transitions, d_table, d_loose = np.zeros((1, 1, c, c)), np.zeros(table.shape), np.zeros(loose.shape)
    total = 0.0
    for s in range(first, last, block):
        n = min(block, last - s)
        lengths, grad = rows.lengths[s : s + n], weights[s : s + n]
        emissions_of(s, s + n, rows, table, loose, emissions)
        chain.forward_scaled(
            0, n, emissions, transitions, arcs, arc_shifts, edge, edge, lengths, alphas, emits, finals, log_z, wide
        )
        sums = chain.backward_scaled(
            0, n, alphas, emits, arcs, edge, finals, lengths, grad, d_emissions, none_kept, False
        )
        for i in range(c):
            for j in range(c):
                d_transitions[0, 0, i, j] += sums[0, i, j] * arcs[0, 0, i, j]
        wide_rows = np.flatnonzero(wide[:n])
        if wide_rows.shape[0] > 0:
            log_alphas, arrivals = np.empty((len(wide_rows), longest, c)), np.empty((len(wide_rows), longest, c))
            chain.forward_log(wide_rows, emissions, transitions, edge, edge, lengths, log_alphas, arrivals, log_z)
            chain.backward_log(
                wide_rows, transitions, edge, lengths, log_alphas, arrivals, log_z, grad, d_emissions, d_transitions
            )
        for b in range(n):
            score = _observe(rows, s + b, b, gold, grad[b], emissions, transitions, d_emissions, d_transitions)
            total += grad[b] * (log_z[b] - score)
            for i in range(lengths[b]):
                for j in range(c):
                    d_scores[j] = d_emissions[b, i, j]
                spread(rows, rows.starts[s + b] + i, d_scores, d_table, d_loose)
    return total, d_transitions, d_table, d_loose
