"""CPU kernels of chains with many labels: pairs of labels with a score of their own are listed, all others score 0.

A step costs O(labels + listed pairs) instead of O(labels²). With E the total of α, which is 1,

    Σ_i α_i e^{a_ij} = e^0 · E + Σ_{listed (i, j)} α_i (e^{a_ij} - 1),

and the same holds for β. Where these terms cancel, the sum is taken anew over all labels. `LANES` sentences go side by
side, so that each listed pair is read once for all of them and the lanes fill vector registers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.models.taggers.features.kernels.likelihood import in_log_space
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, highest
from trelliswork.structures.chain import kernels as chain

LANES = 8
CANCELLED = 1e-6  # of the total: a sum below it has lost six digits


class ListedArcs(NamedTuple):
    """The pairs of labels with a score of their own: sorted by label before, and by label."""

    offsets: Array  # [c + 1] label before i has the pairs offsets[i]..offsets[i + 1]
    targets: Array  # [pairs]
    in_offsets: Array  # [c + 1] label j is in the pairs order[in_offsets[j]]..order[in_offsets[j + 1]]
    sources: Array  # [pairs] the labels before, in that order
    order: Array  # [pairs]


class Weighed(NamedTuple):
    """e^score of the pairs over the same factor: `shared` for those that are not listed, shared + gains[k] for k."""

    shared: float
    gains: Array
    gains_in: Array  # the same, by label
    log_factor: float


class Lanes(NamedTuple):
    """Room for sentences that go side by side; `shares` is how much each counts."""

    lengths: Array  # [lanes]
    shares: Array
    log_z: Array
    wide: Array
    emits: Array  # [longest, c, lanes]
    alphas: Array


@kernel(EXACT)
def lanes_for(longest, c):
    lengths, shares, log_z = np.zeros(LANES, np.int64), np.ones(LANES), np.zeros(LANES)
    shape = (longest, c, LANES)
    return Lanes(lengths, shares, log_z, np.zeros(LANES, np.bool_), np.empty(shape), np.empty(shape))


@kernel(EXACT)
def weighed(scores, arcs):
    """Return scores of listed pairs in exp space."""
    top = 0.0
    for k in range(scores.shape[0]):
        top = max(top, scores[k])
    gains, shared = np.empty(scores.shape[0]), math.exp(-top)
    for k in range(scores.shape[0]):
        gains[k] = math.exp(scores[k] - top) - shared
    return Weighed(shared, gains, gains[arcs.order], top)


@kernel(EXACT)
def dense(arcs, scores):
    """Return transition scores [1, 1, c, c]."""
    c = arcs.offsets.shape[0] - 1
    out = np.zeros((1, 1, c, c))
    for i in range(c):
        for k in range(arcs.offsets[i], arcs.offsets[i + 1]):
            out[0, 0, i, arcs.targets[k]] = scores[k]
    return out


@kernel(FAST)
def _sums(numbers, offsets, labels, gains, shared, out):
    """Set out[i, lane] = Σ_j numbers[j, lane] e^score; the pairs of i are those with labels[offsets[i]:offsets[i + 1]].

    The lanes are written out, so that their sums stay in registers.
    """
    c, totals = numbers.shape[0], np.zeros(LANES)
    for j in range(c):
        for lane in range(LANES):
            totals[lane] += shared * numbers[j, lane]
    for i in range(c):
        s0, s1, s2, s3 = totals[0], totals[1], totals[2], totals[3]
        s4, s5, s6, s7 = totals[4], totals[5], totals[6], totals[7]
        for k in range(offsets[i], offsets[i + 1]):
            row, gain = numbers[labels[k]], gains[k]
            s0 += gain * row[0]
            s1 += gain * row[1]
            s2 += gain * row[2]
            s3 += gain * row[3]
            s4 += gain * row[4]
            s5 += gain * row[5]
            s6 += gain * row[6]
            s7 += gain * row[7]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = s0, s1, s2, s3
        out[i, 4], out[i, 5], out[i, 6], out[i, 7] = s4, s5, s6, s7
        for lane in range(LANES):
            if out[i, lane] < CANCELLED * totals[lane]:
                out[i, lane] = _anew(numbers, lane, labels[offsets[i] : offsets[i + 1]], gains[offsets[i] :], shared)


@kernel(FAST)
def _anew(numbers, lane, labels, gains, shared):
    """Compute one of these sums over all labels: its terms are positive, so that none cancels another."""
    total, k = 0.0, 0
    for j in range(numbers.shape[0]):
        if k < labels.shape[0] and labels[k] == j:
            total += numbers[j, lane] * (shared + gains[k])
            k += 1
        else:
            total += numbers[j, lane] * shared
    return total


@kernel(FAST)
def _add_pairs(alpha, out, arcs, sums):
    """Compute sums[k] += Σ_lane alpha[i, lane] out[j, lane] for each listed pair k = (i, j)."""
    for i in range(alpha.shape[0]):
        a0, a1, a2, a3 = alpha[i, 0], alpha[i, 1], alpha[i, 2], alpha[i, 3]
        a4, a5, a6, a7 = alpha[i, 4], alpha[i, 5], alpha[i, 6], alpha[i, 7]
        for k in range(arcs.offsets[i], arcs.offsets[i + 1]):
            row = out[arcs.targets[k]]
            low = a0 * row[0] + a1 * row[1] + a2 * row[2] + a3 * row[3]
            sums[k] += low + (a4 * row[4] + a5 * row[5] + a6 * row[6] + a7 * row[7])


@kernel(FAST)
def forward_lanes(n, lanes, arcs, weights):
    """Write α of every lane as distributions, with log Z added to what is in `log_z`; as `chain.forward_scaled`.

    A lane in which a weight vanishes is marked `wide`, and 0 from there on.

    Args:
        n: tokens of the longest of these sentences.
        lanes: room for sentences that go side by side (`Lanes`), with their emissions.
        arcs: the listed pairs (`ListedArcs`).
        weights: their scores in exp space.
    """
    lengths, wide, emits, alphas = lanes.lengths, lanes.wide, lanes.emits, lanes.alphas
    c = emits.shape[1]
    arrived, scales = np.ones((c, LANES)), np.empty(LANES)
    for lane in range(LANES):
        wide[lane] = False
    for t in range(n):
        if t > 0:
            _sums(alphas[t - 1], arcs.in_offsets, arcs.sources, weights.gains_in, weights.shared, arrived)
        for lane in range(LANES):
            scales[lane] = 0.0
        for j in range(c):
            for lane in range(LANES):
                alphas[t, j, lane] = arrived[j, lane] * emits[t, j, lane]
                scales[lane] += alphas[t, j, lane]
        for lane in range(LANES):
            used = t < lengths[lane] and not wide[lane]
            for j in range(c if used else 0):
                wide[lane] = wide[lane] or alphas[t, j, lane] < chain.SMALLEST
            if used and not wide[lane]:
                lanes.log_z[lane] += math.log(scales[lane]) + (weights.log_factor if t > 0 else 0.0)
                scales[lane] = 1.0 / scales[lane]
            else:
                scales[lane] = 0.0
        for j in range(c):
            for lane in range(LANES):
                alphas[t, j, lane] *= scales[lane]
                emits[t, j, lane] *= scales[lane]


@kernel(FAST)
def backward_lanes(n, lanes, arcs, weights, d_arcs):
    """Write share · posteriors in the place of the α; what arcs add up to goes to d_arcs. Lanes that are wide stay 0.

    Args:
        n: tokens of the longest of these sentences.
        lanes: as `forward_lanes` leaves them.
        arcs: the listed pairs (`ListedArcs`).
        weights: their scores in exp space.
        d_arcs: [pairs]; added to.
    """
    lengths, emits, alphas = lanes.lengths, lanes.emits, lanes.alphas
    c = emits.shape[1]
    beta, out, sums = np.zeros((c, LANES)), np.empty((c, LANES)), np.zeros(d_arcs.shape[0])
    for t in range(n - 1, -1, -1):
        for lane in range(LANES):
            used = t < lengths[lane] and not lanes.wide[lane]
            if t == lengths[lane] - 1 or not used:
                share = lanes.shares[lane] if used else 0.0
                for j in range(c):
                    beta[j, lane] = share
        for j in range(c):
            for lane in range(LANES):
                out[j, lane] = emits[t, j, lane] * beta[j, lane]
                alphas[t, j, lane] *= beta[j, lane]
        if t > 0:
            _add_pairs(alphas[t - 1], out, arcs, sums)
            _sums(out, arcs.offsets, arcs.targets, weights.gains, weights.shared, beta)
    for k in range(sums.shape[0]):
        d_arcs[k] += sums[k] * (weights.shared + weights.gains[k])


@kernel(FAST)
def fill_lane(scores, t, lane, emits):
    """Set emits[t, :, lane] = e^{scores - highest}; returns the highest.

    Args:
        scores: of the labels of a token, [c] or more.
        t: the token, from the beginning of its sentence.
        lane: the lane of the sentence.
        emits: [longest, c, lanes]; written.
    """
    c = emits.shape[1]
    top = highest(scores, c)
    for j in range(c):
        scores[j] = exp(scores[j] - top)
    for j in range(c):
        emits[t, j, lane] = scores[j]
    return top


@kernel(FAST)
def clear_lanes(n, lanes):
    """Set emissions to 0 where a sentence is over but others go on."""
    for lane in range(LANES):
        for t in range(lanes.lengths[lane], n):
            for j in range(lanes.emits.shape[1]):
                lanes.emits[t, j, lane] = 0.0


@kernel(EXACT)
def pair_of(i, j, arcs):
    """Return the number of a listed pair, -1 if it is not listed.

    Args:
        i: the label before.
        j: the label.
        arcs: the listed pairs (`ListedArcs`).
    """
    low, high = arcs.offsets[i], arcs.offsets[i + 1]
    while low < high:
        middle = (low + high) // 2
        if arcs.targets[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low if low < arcs.offsets[i + 1] and arcs.targets[low] == j else -1


@kernel(FAST)
def sparse_probabilities(emissions, lengths, arcs, scores_of, marginals):
    """Write P(label) of each token [batch, n, c].

    Args:
        emissions: [batch, n, c].
        lengths: tokens of each row, [batch].
        arcs: the listed pairs (`ListedArcs`).
        scores_of: their scores, [pairs].
        marginals: [batch, n, c]; written.
    """
    batch, longest, c = emissions.shape
    lanes, weighed_arcs, d_arcs = lanes_for(longest, c), weighed(scores_of, arcs), np.zeros(scores_of.shape[0])
    scores = np.empty(c)
    for s in range(0, batch, LANES):
        n = 0
        for lane in range(LANES):
            lanes.lengths[lane] = lengths[s + lane] if s + lane < batch else 0
            n = max(n, lanes.lengths[lane])
            for t in range(lanes.lengths[lane]):
                for j in range(c):
                    scores[j] = emissions[s + lane, t, j]
                fill_lane(scores, t, lane, lanes.emits)
        clear_lanes(n, lanes)
        forward_lanes(n, lanes, arcs, weighed_arcs)
        backward_lanes(n, lanes, arcs, weighed_arcs, d_arcs)
        for lane in range(min(LANES, batch - s)):
            one = marginals[s + lane : s + lane + 1]
            for t in range(lanes.lengths[lane]):
                for j in range(c):
                    one[0, t, j] = lanes.alphas[t, j, lane]
            if lanes.wide[lane]:
                full, n = dense(arcs, scores_of), lanes.lengths[lane]
                one_sentence, ends = emissions[s + lane : s + lane + 1], (np.zeros(c), np.zeros(c))
                in_log_space(one_sentence, n, 1.0, full, ends, one, np.zeros(full.shape))
