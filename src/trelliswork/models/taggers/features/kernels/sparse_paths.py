"""CPU kernel that finds the best path of a chain with many labels, few of whose pairs have a score (see `sparse`)."""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.sparse import pair_of
from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import first_best, insert, subtract_highest
from trelliswork.structures.chain.path_kernels import SHIFT_EVERY

MOST_TRIED = 32  # of the best labels before, that are tried as one without a listed pair


@kernel(FAST)
def sparse_best_labels(starts, emissions, arcs, scores, tags):
    """Write the labels that `decoding.best_labels` finds, ties included.

    Args:
        starts: the first token of each sentence, and the number of tokens, [sentences + 1].
        emissions: [tokens, c].
        arcs: the listed pairs (`ListedArcs`).
        scores: their scores, [pairs].
        tags: [tokens]; written.
    """
    c, longest, scores_in = emissions.shape[1], 1, scores[arcs.order]
    for s in range(starts.shape[0] - 1):
        longest = max(longest, starts[s + 1] - starts[s])
    deltas, arrived = np.empty((longest, c)), np.empty(c)
    tops, labels = np.empty(min(MOST_TRIED, c)), np.empty(min(MOST_TRIED, c), np.int64)
    for s in range(starts.shape[0] - 1):
        begin, n = starts[s], starts[s + 1] - starts[s]
        if n == 0:
            continue
        for j in range(c):
            deltas[0, j] = emissions[begin, j]
        for t in range(1, n):
            _best_arrivals(deltas[t - 1], arcs, scores_in, tops, labels, arrived)
            for j in range(c):
                deltas[t, j] = arrived[j] + emissions[begin + t, j]
            if t % SHIFT_EVERY == 0:
                subtract_highest(deltas[t])
        tag, _ = first_best(deltas[n - 1], c)
        tags[begin + n - 1] = tag
        for t in range(n - 2, -1, -1):
            _into(tag, deltas[t], arcs, scores_in, arrived)
            tag, _ = first_best(arrived, c)
            tags[begin + t] = tag


@kernel(FAST)
def _into(j, delta, arcs, scores_in, arrived):
    """Set arrived[i] = delta[i] + a_ij of one label j."""
    for i in range(delta.shape[0]):
        arrived[i] = delta[i]
    for k in range(arcs.in_offsets[j], arcs.in_offsets[j + 1]):
        arrived[arcs.sources[k]] += scores_in[k]


@kernel(FAST)
def _best_arrivals(delta, arcs, scores_in, tops, labels, arrived):
    """Set arrived[j] = max_i delta[i] + a_ij.

    The best label before that has no listed pair with j is looked for among the best ones; as soon as these score no
    more than the best listed pair, none can.
    """
    c = delta.shape[0]
    for r in range(tops.shape[0]):
        tops[r] = NEG_INF
    for i in range(c):
        if delta[i] > tops[-1]:
            insert(delta[i], i, tops, labels)
    for j in range(c):
        best, r = NEG_INF, 0
        for k in range(arcs.in_offsets[j], arcs.in_offsets[j + 1]):
            best = max(best, delta[arcs.sources[k]] + scores_in[k])
        while r < tops.shape[0] and tops[r] > best and pair_of(labels[r], j, arcs) >= 0:
            r += 1
        arrived[j] = max(best, tops[r]) if r < tops.shape[0] else _best_into(j, delta, arcs, scores_in)


@kernel(FAST)
def _best_into(j, delta, arcs, scores_in):
    """Return max_i delta[i] + a_ij of one label j, over all labels."""
    best, k, last = NEG_INF, arcs.in_offsets[j], arcs.in_offsets[j + 1]
    for i in range(delta.shape[0]):
        if k < last and arcs.sources[k] == i:
            best = max(best, delta[i] + scores_in[k])
            k += 1
        else:
            best = max(best, delta[i])
    return best
