"""CPU kernel of conditional herding: batches of sentences against the best labels and hidden states of the moment.

Label y has the hidden states y · m .. y · m + m - 1 of the chain, m = `per_label`. Arrays as in `online.py`,
with states in the place of labels; `gold` are labels.
"""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.online import _collect, score_tokens
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.chain.path_kernels import best_paths

NEG_INF = -np.inf


@kernel(EXACT)
def herding_epoch(
    order, lengths, starts, entries, ids, values, offsets, labels, arcs, arc_places, gold, weights, sums, clock, rate,
    batch, per_label,
):  # fmt: skip
    """One pass [S4.230]; returns (clock, wrong labels, highest w · v, highest ‖v‖²), v the mean change of a batch.

    (y*, z*) is the best path over all states, z the best one over the states of the gold labels. `sums` collects
    clock · step, so that the average of the weights is weights - sums / clock.
    """
    c, longest, n_states = arc_places.shape[0], lengths.max(), labels.shape[0]
    emissions, transitions = np.empty((1, longest, c)), np.zeros((1, 1, c, c))
    tags, best = np.zeros((1, longest), np.int64), np.zeros((1, longest), np.int64)
    possible, edge = np.empty(1, np.bool_), np.zeros(c)
    wanted = gold.copy()
    change, touched = np.full(weights.shape[0], np.nan), np.empty(weights.shape[0], np.int64)
    n_wrong, highest, largest = 0, NEG_INF, 0.0
    for begin in range(0, order.shape[0], batch):
        members, n_touched = order[begin : begin + batch], 0
        for a in range(arcs.shape[0]):
            transitions[0, 0, arcs[a, 0], arcs[a, 1]] = weights[n_states + a]
        for s in members:
            n, first, length = lengths[s], starts[s], lengths[s : s + 1]
            score_tokens(first, first + n, entries, ids, values, offsets, labels, weights, emissions[0])
            best_paths(0, 1, emissions, transitions, edge, edge, length, tags, possible)
            wrong = 0
            for i in range(n):
                wrong += tags[0, i] // per_label != gold[first + i]
            n_wrong += wrong
            if wrong == 0:  # then z* is best among the states of the gold labels, too
                continue
            if per_label > 1:
                for i in range(n):
                    for j in range(c):
                        if j // per_label != gold[first + i]:
                            emissions[0, i, j] = NEG_INF
                best_paths(0, 1, emissions, transitions, edge, edge, length, best, possible)
                for i in range(n):
                    wanted[first + i] = best[0, i]
            n_touched += _collect(
                first, n, entries, ids, values, offsets, labels, arc_places, wanted, tags[0], change,
                touched[n_touched:],
            )  # fmt: skip
        product, square = 0.0, 0.0
        for k in range(n_touched):
            w, v = touched[k], change[touched[k]] / members.shape[0]
            product += v * weights[w]
            square += v * v
        for k in range(n_touched):
            w, step = touched[k], rate * change[touched[k]] / members.shape[0]
            weights[w] += step
            sums[w] += clock * step
            change[w] = np.nan
        highest, largest = max(highest, product), max(largest, square)
        clock += 1.0
    return clock, n_wrong, highest, largest
