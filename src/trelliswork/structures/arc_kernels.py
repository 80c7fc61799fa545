"""CPU kernels that both families of dependency trees use: reading scores, shifts, checking heads, gradients.

Labels of arcs are [batch, n+1, n+1, l] in any precision, and are read only where an arc can be.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import LARGEST_SCORE, exp, highest, log

STEP = 1e-20  # the size of a dual number's change: its square vanishes beside 1


@kernel(EXACT)
def read_arcs(raw, lengths, arcs):
    """Read the scores of possible arcs in float64, -inf elsewhere; return False if one of them is NaN or +inf.

    Args:
        raw: scores as they were given, [batch, n+1, n+1], float32 or float64.
        lengths: words of each row, int64 [batch].
        arcs: float64 [batch, n+1, n+1], filled in.
    """
    size, bad = raw.shape[1], 0
    for b in range(raw.shape[0]):
        n = lengths[b]
        for h in range(size):
            if h > n:
                arcs[b, h] = NEG_INF
                continue
            for m in range(n + 1):
                arcs[b, h, m] = raw[b, h, m]
            arcs[b, h, n + 1 :] = NEG_INF
            arcs[b, h, 0] = NEG_INF
            arcs[b, h, h] = NEG_INF
            for m in range(n + 1):
                bad += not (arcs[b, h, m] <= LARGEST_SCORE)
    return bad == 0


@kernel(EXACT)
def highest_heads(arcs, n, low, tops):
    """Compute the highest score of each word's arcs from nodes low..n, 0 where there is none.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        low: the first node that may be a head: 0, or 1 without the root.
        tops: highest score of each column, float64 [n+1], filled in.
    """
    tops[: n + 1] = NEG_INF
    for h in range(low, n + 1):
        for m in range(1, n + 1):
            tops[m] = max(tops[m], arcs[h, m])
    for m in range(n + 1):
        if tops[m] == NEG_INF:
            tops[m] = 0.0


@kernel(EXACT)
def highest_root(arcs, n, tops):
    """Return the highest of arcs[0, m] - tops[m]: a root word does not use the arc that its column is shifted by.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        tops: highest score of each column, float64 [n+1].
    """
    root_top = NEG_INF
    for m in range(1, n + 1):
        root_top = max(root_top, arcs[0, m] - tops[m])
    return root_top


@kernel(EXACT)
def scale_direction(along):
    """Scale a direction to STEP at most. Returns its extent, the highest |direction|; NaN if that is not finite."""
    top = 0.0
    for row in along:
        for value in row:
            if top < np.inf and not abs(value) <= top:
                top = abs(value)
    finite = 0.0 < top < np.inf
    for row in along:
        for m in range(row.shape[0]):
            row[m] = row[m] / top * STEP if finite else 0.0
    return top if finite else top * 0.0


@kernel(EXACT)
def read_direction(arcs, n, direction, along):
    """`along` gets the direction at possible arcs, scaled to STEP at most, and 0 elsewhere; its extent is returned.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        direction: how the scores of a row move, float64 [n+1, n+1].
        along: float64 [n+1, n+1], filled in.
    """
    for h in range(n + 1):
        for m in range(n + 1):
            along[h, m] = direction[h, m] if arcs[h, m] > NEG_INF else 0.0
    return scale_direction(along[: n + 1, : n + 1])


@kernel(EXACT)
def _is_tree(heads, n, single_root, state):
    """Return whether heads in 0..n lead every word to the root; state[m] is the word whose walk has passed m."""
    n_roots = 0
    for m in range(1, n + 1):
        if heads[m - 1] < 0 or heads[m - 1] > n:
            return False
        n_roots += heads[m - 1] == 0
        state[m] = 0
    for m in range(1, n + 1):
        node = m
        while node != 0 and state[node] == 0:
            state[node] = m
            node = heads[node - 1]
        if node != 0 and state[node] == m:
            return False
    return n_roots == 1 or not single_root


@kernel(EXACT)
def _no_arcs_cross(heads, n):
    for m in range(1, n + 1):
        low, high = min(m, heads[m - 1]), max(m, heads[m - 1])
        for other in range(low + 1, high):
            if heads[other - 1] < low or heads[other - 1] > high:
                return False
    return True


@kernel(EXACT)
def tree_scores(arcs, lengths, single_root, projective, heads, scores):
    """Compute the score of one tree a row; return False if some heads are not a tree of the family.

    Args:
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        projective: whether arcs must not cross.
        heads: head of each word, int64 [batch, n].
        scores: score of each tree, float64 [batch], filled in.
    """  # [S2, edge-factored score]
    state = np.empty(arcs.shape[1], np.int64)
    for b in range(arcs.shape[0]):
        n, total = lengths[b], 0.0
        if not _is_tree(heads[b], n, single_root, state) or (projective and not _no_arcs_cross(heads[b], n)):
            return False
        for m in range(1, n + 1):
            total += arcs[b, heads[b, m - 1], m]
        scores[b] = total
    return True


@kernel(FAST)
def expected_gradient(grad, posteriors, gradient):
    """Compute gradient = grad[b] posteriors, in whatever precision the gradient has.

    Args:
        grad: weight of each row, float64 [batch].
        posteriors: probabilities of arcs, float64 [batch, n+1, n+1].
        gradient: [batch, n+1, n+1] of either precision, filled in.
    """
    flat_posteriors, flat = posteriors.reshape(len(grad), -1), gradient.reshape(len(grad), -1)
    for b in range(len(grad)):
        for i in range(flat.shape[1]):
            flat[b, i] = grad[b] * flat_posteriors[b, i]


@kernel(FAST)
def likelihood_gradient(grad, heads, lengths, log_probs, posteriors, gradient):
    """grad[b] times what is observed less what is expected; 0 in rows whose heads are impossible.

    Args:
        grad: weight of each row, float64 [batch].
        heads: head of each word, int64 [batch, n].
        lengths: words of each row, int64 [batch].
        log_probs: log probability of each tree, float64 [batch].
        posteriors: probabilities of arcs, float64 [batch, n+1, n+1].
        gradient: [batch, n+1, n+1] of either precision, filled in.
    """
    weights = np.empty(len(grad))
    for b in range(len(grad)):
        weights[b] = -grad[b] if log_probs[b] > NEG_INF else 0.0
    expected_gradient(weights, posteriors, gradient)
    for b in range(len(grad)):
        for m in range(1, lengths[b] + 1):
            gradient[b, heads[b, m - 1], m] -= weights[b]


@kernel(EXACT)
def labels_are_scores(labels, lengths):
    """Return False if a label that is read is NaN or +inf.

    Args:
        labels: scores of labels on arcs, [batch, n+1, n+1, l], float32 or float64.
        lengths: words of each row, int64 [batch].
    """
    bad = 0
    for b in range(labels.shape[0]):
        n = lengths[b]
        for h in range(n + 1):
            for m in range(1, n + 1):
                if h != m:
                    for y in range(labels.shape[3]):
                        bad += not (labels[b, h, m, y] <= LARGEST_SCORE)
    return bad == 0


@kernel(FAST)
def fold_labels(labels, arcs, best, folded):
    """Compute folded = arcs + log Σ_y exp(labels), or arcs + max_y labels; -inf where the arc is impossible.

    Args:
        labels: scores of labels on arcs, [batch, n+1, n+1, l], float32 or float64.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        best: whether the best label counts alone, instead of the sum over all.
        folded: scores of arcs with their labels, float64 [batch, n+1, n+1], filled in.
    """
    folded[:] = NEG_INF
    for b in range(arcs.shape[0]):
        for h in range(arcs.shape[1]):
            for m in range(arcs.shape[2]):
                if arcs[b, h, m] > NEG_INF:
                    row = labels[b, h, m]
                    top, total = np.float64(highest(row, row.shape[0])), 0.0
                    if not best and top > NEG_INF:
                        for y in range(row.shape[0]):
                            total += exp(np.float64(row[y]) - top)
                        top += log(total)
                    folded[b, h, m] = arcs[b, h, m] + top


@kernel(FAST)
def label_gradients(grad, labels, arcs, summed, d_labels, d_arcs):
    """Compute derivatives of Σ grad * summed: grad by the arc, grad times p(label | arc) by each label.

    Args:
        grad: derivative by each arc with its labels, float64 [batch, n+1, n+1].
        labels: scores of labels on arcs, [batch, n+1, n+1, l], float32 or float64.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        summed: what `fold_labels` has filled in, float64 [batch, n+1, n+1].
        d_labels: derivatives by labels, shaped like them, filled in.
        d_arcs: derivatives by arcs, float64 [batch, n+1, n+1], filled in.
    """
    for b in range(arcs.shape[0]):
        for h in range(arcs.shape[1]):
            for m in range(arcs.shape[2]):
                possible = summed[b, h, m] > NEG_INF
                d_arcs[b, h, m] = grad[b, h, m] if possible else 0.0
                row, d_row = labels[b, h, m], d_labels[b, h, m]
                if not possible:
                    d_row[:] = 0.0
                    continue
                shift, amount = summed[b, h, m] - arcs[b, h, m], grad[b, h, m]
                for y in range(row.shape[0]):
                    d_row[y] = amount * exp(np.float64(row[y]) - shift)
