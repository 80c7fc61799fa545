"""CPU kernels over sparse attributes: emission scores of a sentence, and gradients back to the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.records import Observed, PlannedRows, PlannedWeights
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain.kernels import backward_log, backward_scaled, exp_arcs, forward_log, forward_scaled

Array = np.ndarray[Any, Any]
BLOCK = 8  # sentences whose scores are in the cache at the same time


class Room(NamedTuple):
    """Memory for a block of sentences; made outside of kernels, where it takes nothing to compile."""

    emissions: Array  # [block, longest, c]
    d_emissions: Array
    alphas: Array
    emits: Array
    finals: Array  # [block]
    log_z: Array
    arcs: Array  # [1, 1, c, width]
    shifts: Array  # [1, 1]
    d_scores: Array  # [width]
    wide: Array  # [sentences] bool
    none_kept: Array
    rows: Array  # [1] the first row


def room_for(n_sentences: int, longest: int, weights: PlannedWeights) -> Room:
    c, width = weights.transitions.shape[2], weights.table.shape[1]
    shape = BLOCK, longest, c
    return Room(
        emissions=np.empty(shape), d_emissions=np.empty(shape), alphas=np.empty(shape), emits=np.empty(shape),
        finals=np.empty(BLOCK), log_z=np.empty(BLOCK), arcs=np.empty((1, 1, c, width)), shifts=np.empty((1, 1)),
        d_scores=np.zeros(width), wide=np.zeros(n_sentences, np.bool_), none_kept=np.empty((0, 0, 0)),
        rows=np.zeros(1, np.int64),
    )  # fmt: skip


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
def settle(s, rows, observed, share, transitions, emissions, d_emissions, d_scores, gradient):
    """Take the known labels of sentence s off its posteriors and add both to the gradient; returns their score."""
    gold = observed.gold[rows.starts[s] : rows.starts[s + 1]]
    score = observe(gold, share, emissions, transitions[0], d_emissions, gradient.transitions[0])
    for i in range(gold.shape[0]):
        for j in range(emissions.shape[1]):
            d_scores[j] = d_emissions[i, j]
        spread(rows, rows.starts[s] + i, d_scores, gradient.table, gradient.loose)
    return score


@kernel(FAST)
def add_loss(first, last, rows, observed, weights, ends, room, gradient):
    """Σ_s shares_s (log Z_s - score_s) of sentences first..last; adds its gradient. All labels are known.

    `ends` are scores of the first and last label. A block of sentences at a time is scored and summed over in scaled
    exp space; those where that fails are left out and marked in `room.wide`, for `add_loss_in_log_space`.
    """
    transitions, (start, end), total = weights.transitions, ends, 0.0
    c, block = transitions.shape[2], room.emissions.shape[0]
    exp_arcs(transitions, room.arcs, room.shifts)
    for s in range(first, last, block):
        n = min(block, last - s)
        lengths, shares, wide = rows.lengths[s : s + n], observed.shares[s : s + n], room.wide[s - first :]
        emissions_of(s, s + n, rows, weights.table, weights.loose, room.emissions)
        scores = (room.emissions, transitions, start, end, lengths)
        forward_scaled(0, n, scores, room.arcs, room.shifts, (room.alphas, room.emits, room.finals, room.log_z, wide))
        run = (room.alphas, room.emits, room.finals)
        sums = backward_scaled(0, n, run, room.arcs, end, lengths, shares, room.d_emissions, room.none_kept, False)
        for i in range(c):
            for j in range(c):
                gradient.transitions[0, 0, i, j] += sums[0, i, j] * room.arcs[0, 0, i, j]
        for b in range(n):
            if not wide[b]:
                found = room.emissions[b], room.d_emissions[b]
                score = settle(s + b, rows, observed, shares[b], transitions, *found, room.d_scores, gradient)
                total += shares[b] * (room.log_z[b] - score)
    return total


@kernel(FAST)
def add_loss_in_log_space(s, rows, observed, weights, ends, room, gradient):
    """The loss of sentence s, as `add_loss`, where weights in exp space vanish."""
    transitions, (start, end), row = weights.transitions, ends, room.rows
    lengths, share = rows.lengths[s : s + 1], observed.shares[s : s + 1]
    emissions_of(s, s + 1, rows, weights.table, weights.loose, room.emissions)
    for i in range(lengths[0]):
        for j in range(start.shape[0]):
            room.d_emissions[0, i, j] = 0.0
    forward_log(row, room.emissions, transitions, start, end, lengths, room.alphas, room.emits, room.log_z)
    backward_log(
        row, transitions, end, lengths, room.alphas, room.emits, room.log_z, share, room.d_emissions,
        gradient.transitions,
    )  # fmt: skip
    found = room.emissions[0], room.d_emissions[0]
    score = settle(s, rows, observed, share[0], transitions, *found, room.d_scores, gradient)
    return share[0] * (room.log_z[0] - score)


def loss_and_gradient(
    first: int, last: int, rows: PlannedRows, observed: Observed, weights: PlannedWeights, ends: tuple[Array, Array]
) -> tuple[float, PlannedWeights]:
    """Σ_s shares_s (log Z_s - score_s) of sentences first..last, and its gradient; all labels are known.

    The kernel for log space is compiled when a sentence first needs it: few corpora have any.
    """
    transitions, table, loose = map(np.zeros_like, weights[:3])
    gradient = PlannedWeights(transitions, table, loose, np.empty(0))
    room = room_for(last - first, int(rows.lengths[first:last].max(initial=0)), weights)
    loss = add_loss(first, last, rows, observed, weights, ends, room, gradient)
    for s in np.flatnonzero(room.wide).tolist():
        loss += add_loss_in_log_space(first + s, rows, observed, weights, ends, room, gradient)
    return loss, gradient
