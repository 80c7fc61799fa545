"""The k best assignments along a junction tree by numba; trees and their arrays are as in `kernels.py`.

A message has, for each entry of the separator, a descending list of k scores. A score remembers the value of the
eliminated variable and its rank in the list of each child, so different scores stand for different assignments.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.factors.kernels import _entry


@kernel(EXACT)
def _place(scores, score):
    """Put a score into a descending list, behind its equals; lower ones move back, and the last one falls out.

    Returns the place, or the length of the list if there is none.
    """
    k = scores.shape[0]
    if not score > scores[k - 1]:
        return k
    at = k - 1
    while at > 0 and scores[at - 1] < score:
        scores[at] = scores[at - 1]
        at -= 1
    scores[at] = score
    return at


@kernel(EXACT)
def _join(scores, ranks, slot, other, new_scores, new_ranks):
    """The k best sums of two descending lists, back in `scores`; the rank in the other list goes to ranks[:, slot].

    Pair (i, j) has (i + 1)(j + 1) - 1 pairs that are no worse: beyond k it cannot be among the best.
    """
    k = scores.shape[0]
    new_scores[:] = NEG_INF
    for i in range(k):
        for j in range(k // (i + 1)):
            at = _place(new_scores, scores[i] + other[j])
            if at == k:
                break
            for r in range(k - 1, at, -1):
                for c in range(slot + 1):
                    new_ranks[r, c] = new_ranks[r - 1, c]
            for c in range(slot):
                new_ranks[at, c] = ranks[i, c]
            new_ranks[at, slot] = j
    for r in range(k):
        scores[r] = new_scores[r]
        for c in range(slot + 1):
            ranks[r, c] = new_ranks[r, c]


@kernel(EXACT)
def _collect_bucket(flat, tree, b, lists, values, ranks, scores, own, spare_scores, spare):
    """The lists of one bucket's message: for each value of the variable the best sums with its children's, merged."""
    k, n_values = scores.shape[0], tree.n_values[b]
    n_children = tree.child_ptr[b + 1] - tree.child_ptr[b]
    for s in range(tree.message_start[b + 1] - tree.message_start[b]):
        here = tree.message_start[b] + s
        lists[here] = NEG_INF
        for x in range(n_values):
            e, base = s * n_values + x, flat[tree.own[b] + x]
            for r in range(tree.read_ptr[b], tree.read_ptr[b + 1]):
                base += flat[tree.maps[tree.reads[r] + e]]
            scores[:] = NEG_INF
            scores[0] = base
            for c in range(n_children):
                i = tree.child_ptr[b] + c
                below = tree.message_start[tree.children[i]] + tree.maps[tree.arrivals[i] + e]
                _join(scores, own, c, lists[below], spare_scores, spare)
            for rank in range(k):
                at = _place(lists[here], scores[rank])
                if at == k:
                    break
                for r in range(k - 1, at, -1):
                    values[here, r] = values[here, r - 1]
                    for c in range(n_children):
                        ranks[here, r, c] = ranks[here, r - 1, c]
                values[here, at] = x
                for c in range(n_children):
                    ranks[here, at, c] = own[rank, c]


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
    own, spare = np.zeros((k, most_children), np.int64), np.zeros((k, most_children), np.int64)
    scores, spare_scores = np.empty(k), np.empty(k)
    for row in range(first, last):
        for b in range(n_buckets):
            _collect_bucket(flat[row], tree, b, lists, values, ranks, scores, own, spare_scores, spare)
        scores[:] = NEG_INF
        scores[0] = 0.0
        n_roots = 0
        for b in range(n_buckets):
            if tree.is_root[b]:
                _join(scores, own, n_roots, lists[tree.message_start[b]], spare_scores, spare)
                n_roots += 1
        for rank in range(k):
            totals[rank, row] = scores[rank]
            if scores[rank] == NEG_INF:
                continue
            n_roots = 0
            for b in range(n_buckets):
                if tree.is_root[b]:
                    of_bucket[b] = own[rank, n_roots]
                    n_roots += 1
            _descend(tree, values, ranks, of_bucket, assignments[rank, row])
