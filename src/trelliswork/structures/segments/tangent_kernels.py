"""CPU kernels that carry a direction along: how posteriors of segments change when scores move.

All in conditional probabilities, which lie in 0..1 whatever the scores: of the label before a segment, given its own,
and of the duration of a segment, given where it ends. Directions may hold anything, so NaN is kept.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.compilation import FAST_WITH_NAN, kernel
from trelliswork.runtime.kernel_math import exp

NEG_INF = -np.inf


@kernel(FAST_WITH_NAN)
def _share(part, whole):
    """exp(part - whole), a probability; 0 where nothing is possible."""
    return exp(min(part - whole, 0.0)) if part > NEG_INF else 0.0


@kernel(FAST_WITH_NAN)
def _go_on(alpha, alpha_moved, arcs, v_arcs, gamma, gamma_moved):
    """γ(y) = log Σ_x exp(α(x) + a(x, y)), and how it moves."""
    c = gamma.shape[0]
    for y in range(c):
        top = NEG_INF
        for x in range(c):
            top = max(top, alpha[x] + arcs[x, y])
        weight, moved = 0.0, 0.0
        for x in range(c):
            share = _share(alpha[x] + arcs[x, y], top)
            weight += share
            moved += share * (alpha_moved[x] + v_arcs[x, y])
        gamma[y] = top + math.log(weight) if weight > 0.0 else NEG_INF
        gamma_moved[y] = moved / weight if weight > 0.0 else 0.0


@kernel(FAST_WITH_NAN)
def _arrive(j, segments, v_segments, gamma, gamma_moved, alpha, alpha_moved):
    """α_j(y) = log Σ_d exp(γ_{j-d}(y) + f(j-d, d, y)), and how it moves."""
    k, c = segments.shape[1:]
    for y in range(c):
        top = NEG_INF
        for d in range(1, min(k, j) + 1):
            top = max(top, gamma[j - d, y] + segments[j - d, d - 1, y])
        weight, moved = 0.0, 0.0
        for d in range(1, min(k, j) + 1):
            share = _share(gamma[j - d, y] + segments[j - d, d - 1, y], top)
            weight += share
            moved += share * (gamma_moved[j - d, y] + v_segments[j - d, d - 1, y])
        alpha[j, y] = top + math.log(weight) if weight > 0.0 else NEG_INF
        alpha_moved[j, y] = moved / weight if weight > 0.0 else 0.0


@kernel(FAST_WITH_NAN)
def _at_end(alpha, alpha_moved, end, ends, ends_moved):
    """p(the last label) and its change p_y (x_y - Σ p x); False if the row has no segmentation."""
    c = end.shape[0]
    top = NEG_INF
    for y in range(c):
        top = max(top, alpha[y] + end[y])
    if top == NEG_INF:
        return False
    total, mean = 0.0, 0.0
    for y in range(c):
        ends[y] = _share(alpha[y] + end[y], top)
        total += ends[y]
    for y in range(c):
        ends[y] /= total
        mean += ends[y] * alpha_moved[y]
    for y in range(c):
        ends_moved[y] = ends[y] * (alpha_moved[y] - mean)
    return True


@kernel(FAST_WITH_NAN)
def _leave(i, length, segments, v_segments, gammas, alphas, all_ends, d_segments, begins):
    """The changes of p(i, d, y), and begins[0] = Σ_d p(i, d, y), begins[1] its change; pairs are values and moves."""
    (gamma, gamma_moved), (alpha, alpha_moved), (ends, ends_moved) = gammas, alphas, all_ends
    k, c = segments.shape[1:]
    begins[:] = 0.0
    for d in range(1, min(k, length - i) + 1):
        j = i + d
        for y in range(c):
            share = _share(gamma[i, y] + segments[i, d - 1, y], alpha[j, y])
            against = gamma_moved[i, y] + v_segments[i, d - 1, y] - alpha_moved[j, y]
            moved = share * (ends_moved[j, y] + ends[j, y] * against)
            d_segments[i, d - 1, y] = moved
            begins[0, y] += share * ends[j, y]
            begins[1, y] += moved


@kernel(FAST_WITH_NAN)
def _return(alpha, alpha_moved, arcs, v_arcs, gamma, gamma_moved, begins, ends, ends_moved, d_arcs):
    """From the segments that begin here to those that end here; adds the changes of label pairs to d_arcs."""
    c = gamma.shape[0]
    for x in range(c):
        ends[x], ends_moved[x] = 0.0, 0.0
        for y in range(c):
            share = _share(alpha[x] + arcs[x, y], gamma[y])
            moved = share * (begins[1, y] + begins[0, y] * (alpha_moved[x] + v_arcs[x, y] - gamma_moved[y]))
            ends[x] += share * begins[0, y]
            ends_moved[x] += moved
            d_arcs[x, y] += moved


@kernel(FAST_WITH_NAN)
def posterior_changes(first, last, segments, arcs, start, end, lengths, v_segments, v_arcs, d_segments):
    """d/dε of the posteriors at scores + ε v: forwards how log α and log γ move, backwards posteriors and changes.

    `v_arcs` is [batch, c, c]. Returns the changes of label pairs, start and end, summed over rows.
    """
    _, n, _, c = segments.shape
    d_arcs, d_start, d_end = np.zeros((c, c)), np.zeros(c), np.zeros(c)
    alpha, alpha_moved = np.empty((n + 1, c)), np.zeros((n + 1, c))
    gamma, gamma_moved = np.empty((n + 1, c)), np.zeros((n + 1, c))
    ends, ends_moved, begins = np.zeros((n + 1, c)), np.zeros((n + 1, c)), np.empty((2, c))
    for b in range(first, last):
        length = lengths[b]
        gamma[0, :] = start
        gamma_moved[0, :] = 0.0
        for j in range(1, length + 1):
            _arrive(j, segments[b], v_segments[b], gamma, gamma_moved, alpha, alpha_moved)
            if j < length:
                _go_on(alpha[j], alpha_moved[j], arcs, v_arcs[b], gamma[j], gamma_moved[j])
        if not _at_end(alpha[length], alpha_moved[length], end, ends[length], ends_moved[length]):
            continue
        d_end += ends_moved[length]
        for i in range(length - 1, -1, -1):
            _leave(
                i, length, segments[b], v_segments[b], (gamma, gamma_moved), (alpha, alpha_moved),
                (ends, ends_moved), d_segments[b], begins,
            )  # fmt: skip
            if i > 0:
                _return(
                    alpha[i], alpha_moved[i], arcs, v_arcs[b], gamma[i], gamma_moved[i], begins, ends[i],
                    ends_moved[i], d_arcs,
                )  # fmt: skip
        d_start += begins[1]
    return d_arcs, d_start, d_end
