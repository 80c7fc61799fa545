"""The k best assignments along a junction tree by numba; trees and their arrays are as in `kernels.py`.

A message has, for each entry of the separator, a descending list of k scores. A score remembers the value of the
eliminated variable and its rank in the list of each child, so different scores stand for different assignments.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import insert_moved
from trelliswork.structures.factors.kernels import _entry


@kernel(EXACT)
def _join(scores, ranks, slot, other, work):
    """The k best sums of two descending lists, back in `scores`; the rank in the other list goes to ranks[:, slot].

    Pair (i, j) has (i + 1)(j + 1) - 1 pairs that are no worse: beyond k it cannot be among the best.
    """
    (sums, origins, old_ranks), k = work, scores.shape[0]
    sums[:], old_ranks[:] = NEG_INF, ranks
    for i in range(k):
        insert_moved(other[: k // (i + 1)], scores[i], i * k, sums, origins)
    for r in range(k):
        scores[r], ranks[r, slot] = sums[r], origins[r] % k
        for c in range(slot):
            ranks[r, c] = old_ranks[origins[r] // k, c]


@kernel(EXACT)
def _collect_bucket(flat, tree, b, lists, values, ranks, own, work):
    """The lists of one bucket's message: for each value of the variable the best sums with its children's, merged."""
    (scores, of_values), k, n_children = own, lists.shape[1], tree.child_ptr[b + 1] - tree.child_ptr[b]
    origins = np.zeros(k, np.int64)
    for here in range(tree.message_start[b], tree.message_start[b + 1]):
        lists[here] = NEG_INF
        for x in range(tree.n_values[b]):
            e, base = (here - tree.message_start[b]) * tree.n_values[b] + x, flat[tree.own[b] + x]
            for r in range(tree.read_ptr[b], tree.read_ptr[b + 1]):
                base += flat[tree.maps[tree.reads[r] + e]]
            scores[:] = NEG_INF
            scores[0] = base
            for c in range(n_children):
                i = tree.child_ptr[b] + c
                below = tree.message_start[tree.children[i]] + tree.maps[tree.arrivals[i] + e]
                _join(scores, of_values[x], c, lists[below], work)
            insert_moved(scores, 0.0, x * k, lists[here], origins)
        for r in range(k):
            values[here, r] = origins[r] // k
            for c in range(n_children):
                ranks[here, r, c] = of_values[origins[r] // k, origins[r] % k, c]


@kernel(EXACT)
def _descend(tree, values, ranks, of_bucket, assignment):
    """Compute the assignment in which the root buckets have these ranks."""
    for b in range(tree.n_values.shape[0] - 1, -1, -1):
        here = tree.message_start[b] + _entry(tree, b, assignment)
        rank = of_bucket[b]
        assignment[tree.variables[b]] = values[here, rank]
        for c in range(tree.child_ptr[b + 1] - tree.child_ptr[b]):
            of_bucket[tree.children[tree.child_ptr[b] + c]] = ranks[here, rank, c]


@kernel(EXACT)
def top_k(first, last, flat, tree, most_children, assignments, totals):
    """assignments [k, rows, n] and totals [k, rows], best first; -inf where a row has fewer."""
    k, n_buckets, n_entries = totals.shape[0], tree.n_values.shape[0], tree.message_start[-1]
    lists, values = np.empty((n_entries, k)), np.zeros((n_entries, k), np.int64)
    ranks, of_bucket = np.zeros((n_entries, k, most_children), np.int64), np.zeros(n_buckets, np.int64)
    own = np.empty(k), np.zeros((tree.n_values.max(), k, most_children), np.int64)  # of each value, while it is merged
    work = np.empty(k), np.zeros(k, np.int64), np.empty((k, most_children), np.int64)
    scores, of_roots = own[0], own[1][0]
    for row in range(first, last):
        for b in range(n_buckets):
            _collect_bucket(flat[row], tree, b, lists, values, ranks, own, work)
        scores[:] = NEG_INF
        scores[0] = 0.0
        n_roots = 0
        for b in range(n_buckets):
            if tree.is_root[b]:
                _join(scores, of_roots, n_roots, lists[tree.message_start[b]], work)
                n_roots += 1
        for rank in range(k):
            totals[rank, row] = scores[rank]
            if scores[rank] == NEG_INF:
                continue
            n_roots = 0
            for b in range(n_buckets):
                if tree.is_root[b]:
                    of_bucket[b] = of_roots[rank, n_roots]
                    n_roots += 1
            _descend(tree, values, ranks, of_bucket, assignments[rank, row])
