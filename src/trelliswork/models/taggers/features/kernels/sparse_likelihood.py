"""CPU kernel of the likelihood of a corpus with many labels (see `sparse`)."""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.likelihood import add_up, emissions_of, in_log_space, spread
from trelliswork.models.taggers.features.kernels.records import PlannedWeights
from trelliswork.models.taggers.features.kernels.sparse import (
    LANES,
    backward_lanes,
    clear_lanes,
    dense,
    fill_lane,
    forward_lanes,
    lanes_for,
    pair_of,
    weighed,
)
from trelliswork.runtime.compilation import FAST, kernel


@kernel(FAST)
def loss_and_gradient(first, last, rows, observed, weights, arcs):
    """Return the loss and gradient; `weights.transitions` are the scores of the listed pairs, [1, 1, 1, pairs].

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out (`PlannedRows`).
        observed: what is known of the labels (`Observed`).
        weights: as they are laid out (`PlannedWeights`).
        arcs: the listed pairs (`ListedArcs`).

    Returns:
        The loss, and its gradient as the weights are laid out.
    """
    scores_of, c, longest, total = weights.transitions[0, 0, 0], arcs.offsets.shape[0] - 1, 0, 0.0
    for s in range(first, last):
        longest = max(longest, rows.lengths[s])
    lanes, weighed_arcs, d_arcs = lanes_for(longest, c), weighed(scores_of, arcs), np.zeros(scores_of.shape[0])
    d_table, d_loose = np.zeros(weights.table.shape), np.zeros(weights.loose.shape)
    full = d_full = np.empty((1, 1, 0, 0))
    for s in range(first, last, LANES):
        n = _score(s, last, rows, observed, weights, lanes)
        forward_lanes(n, lanes, arcs, weighed_arcs)
        backward_lanes(n, lanes, arcs, weighed_arcs, d_arcs)
        for lane in range(min(LANES, last - s)):
            if lanes.wide[lane]:
                if full.shape[2] == 0:
                    full, d_full = dense(arcs, scores_of), np.zeros((1, 1, c, c))
                _score_wide(s, lane, rows, observed, weights, full, lanes, d_full)
            total += lanes.shares[lane] * lanes.log_z[lane]
            total -= _spread(s, lane, rows, observed, weights, arcs, lanes, (d_arcs, d_table, d_loose))
    for i in range(c if full.shape[2] > 0 else 0):
        for k in range(arcs.offsets[i], arcs.offsets[i + 1]):
            d_arcs[k] += d_full[0, 0, i, arcs.targets[k]]
    return total, PlannedWeights(d_arcs.reshape((1, 1, 1, -1)), d_table, d_loose, np.empty(0))


@kernel(FAST)
def _score(s, last, rows, observed, weights, lanes):
    """Fill the lanes with sentences from s on; returns the length of the longest.

    `log_z` begins with the highest scores, which are taken off, less those of the gold labels.
    """
    n, scores = 0, np.empty(weights.table.shape[1])
    for lane in range(LANES):
        there = s + lane < last
        lanes.lengths[lane] = rows.lengths[s + lane] if there else 0
        lanes.shares[lane] = observed.shares[s + lane] if there else 0.0
        lanes.log_z[lane], n = 0.0, max(n, lanes.lengths[lane])
        for t in range(lanes.lengths[lane]):
            token = rows.starts[s + lane] + t
            add_up(rows, token, weights.table, weights.loose, scores)
            lanes.log_z[lane] -= scores[observed.gold[token]]
            lanes.log_z[lane] += fill_lane(scores, t, lane, lanes.emits)
    clear_lanes(n, lanes)
    return n


@kernel(FAST)
def _score_wide(s, lane, rows, observed, weights, full, lanes, d_full):
    """Score the lane again in log space."""
    n, c = lanes.lengths[lane], full.shape[2]
    emissions, d_emissions = np.empty((1, n, c)), np.zeros((1, n, c))
    emissions_of(s + lane, s + lane + 1, rows, weights.table, weights.loose, emissions)
    share, ends = lanes.shares[lane], (np.zeros(c), np.zeros(c))
    lanes.log_z[lane] = in_log_space(emissions, n, share, full, ends, d_emissions, d_full)
    for t in range(n):
        lanes.log_z[lane] -= emissions[0, t, observed.gold[rows.starts[s + lane] + t]]
        for j in range(c):
            lanes.alphas[t, j, lane] = d_emissions[0, t, j]


@kernel(FAST)
def _spread(s, lane, rows, observed, weights, arcs, lanes, gradient):
    """Take the gold labels off the posteriors and add both to the gradient; returns share · the score of its arcs."""
    d_arcs, d_table, d_loose = gradient
    score, share, before, d_scores = 0.0, lanes.shares[lane], -1, np.zeros(d_table.shape[1])
    for t in range(lanes.lengths[lane]):
        token = rows.starts[s + lane] + t
        label = observed.gold[token]
        for j in range(lanes.alphas.shape[1]):
            d_scores[j] = lanes.alphas[t, j, lane]
        d_scores[label] -= share
        spread(rows, token, d_scores, d_table, d_loose)
        pair = pair_of(before, label, arcs) if t > 0 else -1
        if pair >= 0:
            score += weights.transitions[0, 0, 0, pair]
            d_arcs[pair] -= share
        before = label
    return share * score
