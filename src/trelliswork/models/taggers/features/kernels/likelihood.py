"""CPU kernels over sparse attributes: emission scores of a sentence, and gradients back to the weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.records import Observed, PlannedRows, PlannedWeights
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.buffers import aligned
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import exp, highest
from trelliswork.structures.chain.kernels import SMALLEST, backward_log, forward_log


class Factors(NamedTuple):
    """Scores in exp space: 0 where they are -inf, and filled up with zeros to whole vector registers."""

    arcs: Array  # [width, width] over e^shift
    starts: Array  # [width]
    ends: Array  # [width]
    shift: float


class Room(NamedTuple):
    """Memory for a sentence, and what the sentences add up to; made outside of kernels, where nothing is compiled."""

    emits: Array  # [longest, width]
    alphas: Array  # [longest, width]
    scores: Array  # [width]
    alpha: Array  # [width]
    beta: Array  # [width]
    out: Array  # [width]
    flows: Array  # [width, width] the gradient by the scores of arcs, over their factors
    wide: Array  # [sentences] bool


@kernel(FAST, inline=True)
def add_up(rows, t, table, loose, scores):
    """Fill in scores[:width] = Σ value · weight over the attributes of token t.

    Args:
        rows: the corpus as it is laid out (`PlannedRows`).
        t: the token.
        table: weights of dense attributes, [dense attributes, width].
        loose: weights of the other attributes.
        scores: [width]; written.
    """
    # [S4.74]
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


@kernel(FAST, inline=True)
def spread(rows, t, d_scores, d_table, d_loose):
    """Add value · d_scores to the gradient of every weight of token t: the transpose of `add_up`.

    Args:
        rows: the corpus as it is laid out (`PlannedRows`).
        t: the token.
        d_scores: gradient by the scores of the token, [width].
        d_table: gradient by `table`; added to.
        d_loose: gradient by `loose`; added to.
    """
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
    """Write emission scores of sentences first..last: [sentences, longest, c].

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out (`PlannedRows`).
        table: weights of dense attributes, [dense attributes, width].
        loose: weights of the other attributes.
        emissions: [sentences, longest, c]; written.
    """
    c = emissions.shape[2]
    scores = np.empty(table.shape[1])
    for s in range(first, last):
        for i in range(rows.lengths[s]):
            add_up(rows, rows.starts[s] + i, table, loose, scores)
            for j in range(c):
                emissions[s - first, i, j] = scores[j]


@kernel(FAST)
def observe(gold, share, emissions, transitions, d_emissions, d_transitions):
    """Return the score of known labels [n], and take share · their parts off the gradient of log Z.

    `transitions` are shared, [1, c, c], or by position, [n-1, c, c].

    Args:
        gold: labels, [n].
        share: how much the sentence counts.
        emissions: [n, c].
        transitions: [1 or n - 1, c, c].
        d_emissions: the same shape as emissions; taken off from.
        d_transitions: the same shape as transitions; taken off from.

    Returns:
        The score.
    """
    # [S4.115]
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
def score(begin, n, rows, gold, weights, room):
    """Fill in e^{emission - highest} of the tokens of a sentence; returns Σ highest, less the score of its labels.

    Args:
        begin: the first token of the sentence.
        n: tokens of the sentence.
        rows: the corpus as it is laid out (`PlannedRows`).
        gold: the label of each token, [tokens].
        weights: as they are laid out (`PlannedWeights`).
        room: memory for the sentence (`Room`); `emits` are written.
    """
    transitions, table, loose, _ = weights
    emits, scores, total, before = room.emits, room.scores, 0.0, -1
    for t in range(n):
        label = gold[begin + t]
        add_up(rows, begin + t, table, loose, scores)
        top = highest(scores, transitions.shape[2])
        total += top - scores[label]
        if t > 0:
            total -= transitions[0, 0, before, label]
        before = label
        for j in range(transitions.shape[2], scores.shape[0]):
            scores[j] = top
        for j in range(scores.shape[0]):
            emits[t, j] = exp(scores[j] - top)
    return total


@kernel(FAST)
def forward(n, factors, room):
    """Return whether a weight vanishes, Σ_j α_n(j) end_j, and log Z of the factors; fills in α as distributions.

    `emits` are divided by the scale of each position. Without a path, log Z is -inf.

    Args:
        n: tokens of the sentence.
        factors: scores of arcs and ends in exp space (`Factors`).
        room: memory for the sentence (`Room`); `alphas` and `emits` are written.
    """  # [S4.63, 92, 109; S4.108]
    arcs, starts, ends, shift = factors
    emits, alphas, arrived, alpha = room.emits, room.alphas, room.beta, room.alpha
    width, log_z, product = arcs.shape[1], (n - 1) * shift, 1.0
    for t in range(n):
        for j in range(width):
            arrived[j] = starts[j] if t == 0 else 0.0
        for i in range(0, width if t > 0 else 0, 4):
            a0, a1, a2, a3 = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
            for j in range(width):
                arrived[j] += a0 * arcs[i, j] + a1 * arcs[i + 1, j] + a2 * arcs[i + 2, j] + a3 * arcs[i + 3, j]
        scale, n_small = 0.0, 0
        for j in range(width):
            weight = arrived[j] * emits[t, j]
            alpha[j] = weight
            scale += weight
            n_small += (weight < SMALLEST) & (arrived[j] > 0.0)  # a path may have been lost
        if n_small > 0 or scale == 0.0:
            return n_small > 0, 0.0, NEG_INF
        inverse = 1.0 / scale
        for j in range(width):
            alpha[j] *= inverse
            alphas[t, j] = alpha[j]
            emits[t, j] *= inverse
        product *= scale
        if product < SMALLEST or product > 1.0 / SMALLEST:
            log_z, product = log_z + math.log(product), 1.0
    final = 0.0
    for j in range(width):
        final += alpha[j] * ends[j]
    if final == 0.0:
        return False, 0.0, NEG_INF
    return False, final, log_z + math.log(product) + math.log(final)


@kernel(FAST)
def backward(begin, n, rows, gold, share, arcs, room, gradient):
    """Add share · (posteriors - observed labels) to the gradient. `room.beta` is share · β of the last token.

    Args:
        begin: the first token of the sentence.
        n: tokens of the sentence.
        rows: the corpus as it is laid out (`PlannedRows`).
        gold: the label of each token, [tokens].
        share: how much the sentence counts.
        arcs: scores of arcs in exp space, [width, width].
        room: memory for the sentence (`Room`), as `forward` leaves it; `flows` are added to.
        gradient: by all weights (`PlannedWeights`); added to.
    """
    d_transitions, d_table, d_loose, _ = gradient  # [S4.107, 115; S4.96; S4.106]
    emits, alphas, d_scores, _, beta, out, flows, _ = room
    width = arcs.shape[1]
    for t in range(n - 1, -1, -1):
        for j in range(width):
            # β of an unreachable label is unbounded and meets only α = 0: keep 0 * inf out.
            reached = beta[j] if alphas[t, j] > 0.0 else 0.0
            d_scores[j] = alphas[t, j] * reached
            out[j] = emits[t, j] * reached
        label = gold[begin + t]
        d_scores[label] -= share
        spread(rows, begin + t, d_scores, d_table, d_loose)
        if t == 0:
            break
        d_transitions[0, 0, gold[begin + t - 1], label] -= share
        for i in range(0, width, 4):
            b0 = b1 = b2 = b3 = 0.0
            for j in range(width):
                b0 += arcs[i, j] * out[j]
                b1 += arcs[i + 1, j] * out[j]
                b2 += arcs[i + 2, j] * out[j]
                b3 += arcs[i + 3, j] * out[j]
            beta[i], beta[i + 1], beta[i + 2], beta[i + 3] = b0, b1, b2, b3
        for i in range(0, width, 2):
            a0, a1 = alphas[t - 1, i], alphas[t - 1, i + 1]
            for j in range(width):
                flows[i, j] += a0 * out[j]
                flows[i + 1, j] += a1 * out[j]


@kernel(FAST)
def add_loss(first, last, rows, observed, weights, factors, room, gradient):
    """Return Σ_s shares_s (log Z_s - score_s) of sentences first..last; adds its gradient. All labels are known.

    Sums over paths are taken in scaled exp space, as in `structures.chain.kernels`, one sentence at a time. Those where
    that fails are left out and marked in `room.wide`, for `add_loss_in_log_space`.

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out (`PlannedRows`).
        observed: what is known of the labels (`Observed`).
        weights: as they are laid out (`PlannedWeights`).
        factors: scores of arcs and ends in exp space (`Factors`).
        room: memory for a sentence (`Room`).
        gradient: by all weights (`PlannedWeights`); added to.
    """
    gold, ends, beta, total = observed.gold, factors.ends, room.beta, 0.0
    for s in range(first, last):
        begin, n, share = rows.starts[s], rows.lengths[s], observed.shares[s]
        tops = score(begin, n, rows, gold, weights, room)
        vanished, final, log_z = forward(n, factors, room)
        room.wide[s - first] = vanished
        if vanished:
            continue
        total += share * (tops + log_z)
        for j in range(ends.shape[0]):
            beta[j] = ends[j] * share / final if final > 0.0 else 0.0
        backward(begin, n, rows, gold, share, factors.arcs, room, gradient)
    return total


@kernel(FAST)
def in_log_space(emissions, n, share, transitions, ends, d_emissions, d_transitions):
    """Return log Z of a sentence whose scores are too wide for exp space; gradients as in `chain.backward_log`.

    Args:
        emissions: [1, n, c].
        n: tokens of the sentence.
        share: how much the sentence counts.
        transitions: [1, 1, c, c].
        ends: scores of first and of last labels, [c] each.
        d_emissions: [1, n, c]; added to.
        d_transitions: [1, 1, c, c]; added to.
    """
    c, (start, end) = emissions.shape[2], ends
    row, length, log_z = np.zeros(1, np.int64), np.full(1, n), np.empty(1)
    log_alphas, arrivals = np.empty((1, n, c)), np.empty((1, n, c))
    forward_log(row, emissions, transitions, start, end, length, log_alphas, arrivals, log_z)
    backward_log(
        row, transitions, end, length, log_alphas, arrivals, log_z, np.full(1, share), d_emissions, d_transitions
    )
    return log_z[0]


@kernel(FAST)
def add_loss_in_log_space(s, rows, observed, weights, ends, gradient):
    """Return the loss of sentence s, as `add_loss`, where weights in exp space vanish.

    Args:
        s: the sentence.
        rows: the corpus as it is laid out (`PlannedRows`).
        observed: what is known of the labels (`Observed`).
        weights: as they are laid out (`PlannedWeights`).
        ends: scores of first and of last labels, [c] each.
        gradient: by all weights (`PlannedWeights`); added to.
    """
    begin, n, share, transitions = rows.starts[s], rows.lengths[s], observed.shares[s], weights.transitions
    shape, gold = (1, n, transitions.shape[2]), observed.gold[begin : begin + n]
    emissions, d_emissions, d_scores = np.empty(shape), np.zeros(shape), np.zeros(weights.table.shape[1])
    emissions_of(s, s + 1, rows, weights.table, weights.loose, emissions)
    log_z = in_log_space(emissions, n, share, transitions, ends, d_emissions, gradient.transitions)
    score = observe(gold, share, emissions[0], transitions[0], d_emissions[0], gradient.transitions[0])
    for i in range(n):
        for j in range(shape[2]):
            d_scores[j] = d_emissions[0, i, j]
        spread(rows, begin + i, d_scores, gradient.table, gradient.loose)
    return share * (log_z - score)


def loss_and_gradient(
    first: int, last: int, rows: PlannedRows, observed: Observed, weights: PlannedWeights, ends: tuple[Array, Array]
) -> tuple[float, PlannedWeights]:
    """Return Σ_s shares_s (log Z_s - score_s) of sentences first..last, and its gradient; all labels are known.

    The kernel for log space is compiled when a sentence first needs it: few corpora have any.

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out.
        observed: the labels, all of them known.
        weights: as they are laid out.
        ends: scores of first and of last labels, [c] each.

    Returns:
        The loss, and its gradient as the weights are laid out.
    """
    transitions, loose = map(np.zeros_like, (weights.transitions, weights.loose))
    table = aligned(weights.table.shape)
    table[:] = 0.0
    gradient, loss = PlannedWeights(transitions, table, loose, np.empty(0)), 0.0
    factors, room = _factors(weights, ends), _room(rows.lengths[first:last], table.shape[1])
    if factors is not None:
        loss = add_loss(first, last, rows, observed, weights, factors, room, gradient)
        c = transitions.shape[2]
        transitions += (room.flows * factors.arcs)[:c, :c]
    for s in np.flatnonzero(room.wide).tolist():
        loss += add_loss_in_log_space(first + s, rows, observed, weights, ends, gradient)
    return loss, gradient


def _room(lengths: Array, width: int) -> Room:
    shape, flows = (int(lengths.max(initial=0)), width), aligned((width, width))
    flows[:] = 0.0
    scores, alpha, beta, out = aligned((4, width))
    return Room(aligned(shape), aligned(shape), scores, alpha, beta, out, flows, np.ones(len(lengths), np.bool_))


def _factors(weights: PlannedWeights, ends: tuple[Array, Array]) -> Factors | None:
    """Return the factors of arcs; None if some vanish that are possible."""
    scores, (c, width) = weights.transitions[0, 0], (len(ends[0]), weights.table.shape[1])
    shift = float(scores.max())
    shift = shift if shift > NEG_INF else 0.0
    arcs, starts, finals = aligned((width, width)), np.zeros(width), np.zeros(width)
    arcs[:] = 0.0
    for factors, given in (arcs[:c, :c], scores - shift), (starts[:c], ends[0]), (finals[:c], ends[1]):
        np.exp(given, out=factors)
        if ((factors < SMALLEST) & (given > NEG_INF)).any():
            return None
    return Factors(arcs, starts, finals, shift)
