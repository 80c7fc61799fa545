"""CPU kernels over the labels of arcs, [batch, n+1, n+1, l] in any precision; read only where an arc can be."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import LARGEST_SCORE, exp, highest, log


@kernel(EXACT)
def labels_are_scores(labels, lengths):
    """False if a label that is read is NaN or +inf."""
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
    """folded = arcs + log Σ_y exp(labels), or arcs + max_y labels; -inf where the arc is impossible."""
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
    """Derivatives of Σ grad * summed: grad by the arc, grad times p(label | arc) by each label."""
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
