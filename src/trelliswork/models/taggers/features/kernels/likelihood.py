"""CPU kernels over sparse attributes: emission scores of a sentence, and gradients back to the weights."""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.records import PlannedWeights
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
def observe(gold, share, emissions, transitions, d_emissions, d_transitions):
    """The score of known labels [n]; takes share · their parts off the gradient of log Z [S4.115].

    `transitions` are shared, [1, c, c], or by position, [n-1, c, c].
    """
    score, before, by_position = 0.0, -1, transitions.shape[0] > 1
    for i in range(gold.shape[0]):
        label = gold[i]
        score += emissions[i, label]
        d_emissions[i, label] -= share
        if i > 0:
            t = i - 1 if by_position else 0
            score += transitions[t, before, label]
            d_transitions[t, before, label] -= share
        before = label
    return score


@kernel(FAST)
def loss_and_gradient(first, last, rows, observed, weights, ends, block):
    """Σ_s shares_s (log Z_s - score_s) of sentences first..last, and its gradient; all labels are known.

    `ends` are scores of the first and last label.
    `block` sentences at a time are scored and summed over, in scaled exp space or, where that fails, in log space.
    """
    transitions, table, loose = weights.transitions, weights.table, weights.loose
    c, longest = transitions.shape[2], 0
    for s in range(first, last):
        longest = max(longest, rows.lengths[s])
    shape = (block, longest, c)
    emissions, alphas, emits, d_emissions = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    finals, log_z, wide = np.empty(block), np.empty(block), np.empty(block, np.bool_)
    none_kept, d_scores, (start, end) = np.empty((0, 0, 0)), np.zeros(table.shape[1]), ends
    arcs, arc_shifts = np.empty((1, 1, c, table.shape[1])), np.empty((1, 1))
    chain.exp_arcs(transitions, arcs, arc_shifts)
    d_transitions, d_table, d_loose = np.zeros((1, 1, c, c)), np.zeros(table.shape), np.zeros(loose.shape)
    total = 0.0
    for s in range(first, last, block):
        n = min(block, last - s)
        lengths, grad = rows.lengths[s : s + n], observed.shares[s : s + n]
        emissions_of(s, s + n, rows, table, loose, emissions)
        scores = (emissions, transitions, start, end, lengths)
        chain.forward_scaled(0, n, scores, arcs, arc_shifts, (alphas, emits, finals, log_z, wide))
        run = (alphas, emits, finals)
        sums = chain.backward_scaled(0, n, run, arcs, end, lengths, grad, d_emissions, none_kept, False)
        for i in range(c):
            for j in range(c):
                d_transitions[0, 0, i, j] += sums[0, i, j] * arcs[0, 0, i, j]
        wide_rows = np.flatnonzero(wide[:n])
        if wide_rows.shape[0] > 0:
            log_alphas, arrivals = np.empty((len(wide_rows), longest, c)), np.empty((len(wide_rows), longest, c))
            chain.forward_log(wide_rows, emissions, transitions, start, end, lengths, log_alphas, arrivals, log_z)
            chain.backward_log(
                wide_rows, transitions, end, lengths, log_alphas, arrivals, log_z, grad, d_emissions, d_transitions
            )
        for b in range(n):
            gold = observed.gold[rows.starts[s + b] : rows.starts[s + b + 1]]
            score = observe(gold, grad[b], emissions[b], transitions[0], d_emissions[b], d_transitions[0])
            total += grad[b] * (log_z[b] - score)
            for i in range(lengths[b]):
                for j in range(c):
                    d_scores[j] = d_emissions[b, i, j]
                spread(rows, rows.starts[s + b] + i, d_scores, d_table, d_loose)
    return total, PlannedWeights(d_transitions, d_table, d_loose, np.empty(0))
