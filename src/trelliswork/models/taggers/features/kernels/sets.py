"""CPU kernels for what the plain ones leave out: transitions that see attributes, and labels that are not known.

One sentence at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.likelihood import add_up, observe, spread
from trelliswork.models.taggers.features.kernels.records import Arcs, PlannedWeights
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain import kernels as chain


class Room(NamedTuple):
    """Memory for the longest sentence; what is as long as the sentence is taken from the front of it."""

    emissions: Array
    d_emissions: Array
    kept: Array
    d_kept: Array
    alphas: Array
    emits: Array
    outgoing: Array
    transitions: Array
    d_transitions: Array
    arcs: Array
    shifts: Array
    finals: Array
    log_z: Array
    wide: Array
    length: Array
    share: Array


def room_for(longest: int, c: int, by_position: bool) -> Room:
    """Return room for sentences of up to `longest` tokens; `by_position` if transitions may differ from token to token.

    Args:
        longest: tokens of the longest sentence.
        c: number of labels.
        by_position: whether transitions may differ from token to token.

    Returns:
        The memory.
    """
    width, n = (c + 7) // 8 * 8, max(longest, 2)
    m = n - 1 if by_position else 1
    return Room(
        emissions=np.empty(n * c), d_emissions=np.empty(n * c), kept=np.empty(n * c), d_kept=np.empty(n * c),
        alphas=np.empty(n * c), emits=np.empty(n * c), outgoing=np.empty(n * width),
        transitions=np.empty(m * c * c), d_transitions=np.empty(m * c * c), arcs=np.empty(m * c * width),
        shifts=np.empty(m), finals=np.empty(1), log_z=np.empty(1), wide=np.empty(1, np.bool_),
        length=np.empty(1, np.int64), share=np.empty(1),
    )  # fmt: skip


@kernel(FAST)
def zero(numbers):
    for i in range(numbers.shape[0]):  # a loop: a slice assignment would take a second to compile
        numbers[i] = 0.0


@kernel(FAST)
def add_pairs(first, n, scale, edges, weights, shared, matrices):
    """Fill in matrices[0, i-1] = the shared scores, and scale · value · weight of the edge observations of token i.

    Args:
        first: the first token of the sentence.
        n: tokens of the sentence.
        scale: what all weights are multiplied by.
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        weights: of pairs, [pair weights].
        shared: scores of transitions at all tokens, [1, 1, c, c].
        matrices: [1, n - 1, c, c]; written.
    """
    # [S4.81]
    c, m = shared.shape[2], max(n - 1, 1)
    flat, base, valued = matrices.reshape(matrices.shape[1], c * c), shared.ravel(), edges.values.shape[0] > 0
    for i in range(m):
        row = flat[i]
        for k in range(c * c):
            row[k] = base[k]
        if i + 1 == n:  # a sentence of one token: one matrix that is not used
            break
        for e in range(edges.offsets[first + i + 1], edges.offsets[first + i + 2]):
            value = scale * (edges.values[e] if valued else 1.0)
            for p in range(edges.pair_offsets[edges.ids[e]], edges.pair_offsets[edges.ids[e] + 1]):
                row[edges.pair_arcs[p]] += value * weights[p]


@kernel(FAST)
def spread_arcs(first, n, amount, edges, d_transitions, d_weights):
    """Add amount · value · d_transitions to each pair weight of the sentence: the transpose of `add_pairs`.

    Args:
        first: the first token of the sentence.
        n: tokens of the sentence.
        amount: what the gradient is multiplied by.
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        d_transitions: [1, n - 1, c, c].
        d_weights: of pairs, [pair weights]; added to.
    """
    c = d_transitions.shape[2]
    flat = d_transitions.reshape(d_transitions.shape[1], c * c)
    valued = edges.values.shape[0] > 0
    for i in range(n - 1):
        for e in range(edges.offsets[first + i + 1], edges.offsets[first + i + 2]):
            value = amount * (edges.values[e] if valued else 1.0)
            for p in range(edges.pair_offsets[edges.ids[e]], edges.pair_offsets[edges.ids[e] + 1]):
                d_weights[p] += value * flat[i, edges.pair_arcs[p]]


@kernel(FAST)
def sum_over_paths(emissions, arcs, share, room, d_emissions, d_transitions):
    """Return log Z; share · posteriors are written to d_emissions and added to d_transitions.

    Args:
        emissions: [1, n, c].
        arcs: scores of transitions (`Arcs`).
        share: how much the sentence counts.
        room: memory for the longest sentence (`Room`).
        d_emissions: [1, n, c]; written.
        d_transitions: [1, 1 or n - 1, c, c]; added to.
    """
    _, n, c = emissions.shape
    width, shared = arcs.exp.shape[3], arcs.scores.shape[1] == 1
    alphas, emits = room.alphas[: n * c].reshape(1, n, c), room.emits[: n * c].reshape(1, n, c)
    room.length[0], room.share[0] = n, share
    scores = (emissions, arcs.scores, arcs.start, arcs.end, room.length)
    run = (alphas, emits, room.finals, room.log_z, room.wide)
    chain.forward_scaled(0, 1, scores, arcs.exp, arcs.shifts, run)
    if room.wide[0]:
        row, log_alphas, arrivals = np.zeros(1, np.int64), np.empty((1, n, c)), np.empty((1, n, c))
        chain.forward_log(
            row, emissions, arcs.scores, arcs.start, arcs.end, room.length, log_alphas, arrivals, room.log_z
        )
        zero(d_emissions.ravel())
        chain.backward_log(
            row, arcs.scores, arcs.end, room.length, log_alphas, arrivals, room.log_z, room.share, d_emissions,
            d_transitions,
        )  # fmt: skip
        return room.log_z[0]
    outgoing = np.empty((0, 0, 0)) if shared else room.outgoing[: n * width].reshape(1, n, width)
    left = (alphas, emits, room.finals)
    sums = chain.backward_scaled(0, 1, left, arcs.exp, arcs.end, room.length, room.share, d_emissions, outgoing, False)
    for t in range(1, 2 if shared else n):
        for i in range(c):
            for j in range(c):
                flow = sums[0, i, j] if shared else alphas[0, t - 1, i] * outgoing[0, t, j]
                d_transitions[0, t - 1, i, j] += flow * arcs.exp[0, t - 1, i, j]
    return room.log_z[0]


@kernel(FAST)
def sentence_loss(first, observed, share, emissions, arcs, room, d_emissions, d_transitions):
    """Return share (log Z - log Z of what `gold` allows); add its gradients as `sum_over_paths` gives them.

    Args:
        first: the first token of the sentence.
        observed: what is known of the labels (`Observed`).
        share: how much the sentence counts.
        emissions: [1, n, c].
        arcs: scores of transitions (`Arcs`).
        room: memory for the longest sentence (`Room`).
        d_emissions: [1, n, c]; written.
        d_transitions: [1, 1 or n - 1, c, c]; added to.
    """
    # [S4.113, 131]
    _, n, c = emissions.shape
    log_z = sum_over_paths(emissions, arcs, share, room, d_emissions, d_transitions)
    known, gold = True, observed.gold[first : first + n]
    for i in range(n):
        known = known and gold[i] >= 0
    if known:
        score = observe(gold, share, emissions[0], arcs.scores[0], d_emissions[0], d_transitions[0])
        return share * (log_z - score)
    kept, d_kept = room.kept[: n * c].reshape(1, n, c), room.d_kept[: n * c].reshape(1, n, c)
    for i in range(n):
        code = gold[i]
        for j in range(c):
            allowed = code == j if code >= 0 else observed.sets[-1 - code, j]
            kept[0, i, j] = emissions[0, i, j] if allowed else NEG_INF
    log_kept = sum_over_paths(kept, arcs, -share, room, d_kept, d_transitions)
    for i in range(n):
        for j in range(c):
            d_emissions[0, i, j] += d_kept[0, i, j]
    return share * (log_z - log_kept)


@kernel(FAST)
def loss_and_gradient(first, last, rows, edges, observed, weights, columns, ends, room):
    """Return Σ_s shares_s (log Z_s - log Z_s of what gold allows) of sentences first..last, and its gradient.

    State j of the chain has the emission score of column columns[j]; `ends` are scores of the first and last state.

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out (`PlannedRows`).
        edges: attributes that look at neighbouring labels (`EdgeRows`).
        observed: what is known of the labels (`Observed`).
        weights: as they are laid out (`PlannedWeights`).
        columns: the column of `table` that scores each state, [c].
        ends: scores of first and of last states, [c] each.
        room: memory for the longest sentence (`Room`).

    Returns:
        The loss, and its gradient as the weights are laid out.
    """
    transitions, table, loose = weights.transitions, weights.table, weights.loose
    c, width = transitions.shape[2], (transitions.shape[2] + 7) // 8 * 8
    scores, d_scores = np.zeros(table.shape[1]), np.zeros(table.shape[1])
    shared_exp, shared_shifts = np.empty((1, 1, c, width)), np.empty((1, 1))
    chain.exp_arcs(transitions, shared_exp, shared_shifts)
    d_transitions, d_pairs = np.zeros((1, 1, c, c)), np.zeros(weights.pairs.shape)
    d_table, d_loose, total = np.zeros(table.shape), np.zeros(loose.shape), 0.0
    by_position = edges.ids.shape[0] > 0
    for s in range(first, last):
        n, begin = rows.lengths[s], rows.starts[s]
        if n == 0:
            continue
        emissions, d_emissions = room.emissions[: n * c].reshape(1, n, c), room.d_emissions[: n * c].reshape(1, n, c)
        for i in range(n):
            add_up(rows, begin + i, table, loose, scores)
            for j in range(c):
                emissions[0, i, j] = scores[columns[j]]
        scores_here, exp_here, shifts, d_here = transitions, shared_exp, shared_shifts, d_transitions
        if by_position:
            m = max(n - 1, 1)
            scores_here = room.transitions[: m * c * c].reshape(1, m, c, c)
            add_pairs(begin, n, 1.0, edges, weights.pairs, transitions, scores_here)
            exp_here, shifts = room.arcs[: m * c * width].reshape(1, m, c, width), room.shifts[:m].reshape(1, m)
            chain.exp_arcs(scores_here, exp_here, shifts)
            d_here = room.d_transitions[: m * c * c].reshape(1, m, c, c)
            zero(d_here.ravel())
        arcs = Arcs(scores_here, exp_here, shifts, ends[0], ends[1])
        total += sentence_loss(begin, observed, observed.shares[s], emissions, arcs, room, d_emissions, d_here)
        if by_position:
            spread_arcs(begin, n, 1.0, edges, d_here, d_pairs)
            for t in range(n - 1):
                for i in range(c):
                    for j in range(c):
                        d_transitions[0, 0, i, j] += d_here[0, t, i, j]
        for i in range(n):
            for j in range(table.shape[1]):
                d_scores[j] = 0.0
            for j in range(c):
                d_scores[columns[j]] += d_emissions[0, i, j]
            spread(rows, begin + i, d_scores, d_table, d_loose)
    return total, PlannedWeights(d_transitions, d_table, d_loose, d_pairs)
