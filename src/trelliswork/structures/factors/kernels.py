"""Messages along a junction tree by numba, one row after the other. `structure.py` is the reference.

A tree is given as `solver.TreeArrays`. The table of bucket b is tables[row, table_start[b]:table_start[b + 1]],
n_values[b] entries in a row for each entry of the separator; its message is
messages[row, message_start[b]:message_start[b + 1]]. Its variable's own scores begin at own[b] in the score vector.
A map is as long as the table of its bucket: reads[read_ptr[b]:read_ptr[b + 1]] say where those into the score
vector begin within `maps`, arrivals[child_ptr[b]:child_ptr[b + 1]] where those into the messages of `children` do.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, first_best, insert_moved, log, pick


@kernel(FAST)
def _fill(flat, tree, b, table, messages):
    """Compute table = the variable's own scores + those of factors that the bucket reads + messages from below."""
    size, n_values, own = table.shape[0], tree.n_values[b], tree.own[b]
    for s in range(size // n_values):
        for x in range(n_values):
            table[s * n_values + x] = flat[own + x]
    for r in range(tree.read_ptr[b], tree.read_ptr[b + 1]):
        places = tree.maps[tree.reads[r] : tree.reads[r] + size]
        for e in range(size):
            table[e] += flat[places[e]]
    for i in range(tree.child_ptr[b], tree.child_ptr[b + 1]):
        places = tree.maps[tree.arrivals[i] : tree.arrivals[i] + size]
        child = tree.children[i]
        message = messages[tree.message_start[child] : tree.message_start[child + 1]]
        for e in range(size):
            table[e] += message[places[e]]


@kernel(FAST)
def _tops(table, n_values, tops):
    """Compute the highest entry for each entry of the separator."""
    for s in range(tops.shape[0]):
        top = table[s * n_values]
        for x in range(1, n_values):
            top = max(top, table[s * n_values + x])
        tops[s] = top


@kernel(FAST)
def _normalise(table, n_values, message):
    """log-sum-exp over the variable; the table becomes p(variable | separator), 0 where nothing is possible."""
    _tops(table, n_values, message)
    for s in range(message.shape[0]):
        first, top = s * n_values, message[s]
        if top == NEG_INF:
            for x in range(n_values):
                table[first + x] = 0.0
            continue
        weight = 0.0
        for x in range(n_values):
            table[first + x] = exp(table[first + x] - top)
        for x in range(n_values):
            weight += table[first + x]
        message[s] = top + log(weight)
        for x in range(n_values):
            table[first + x] /= weight


@kernel(FAST)
def collect(first, last, flat, tree, best, tables, messages, totals):
    """Compute messages from the leaves to the roots; totals [rows] are log Z, and the tables conditionals.

    If `best`, messages are maxima, totals the best scores, and the tables stay scores.

    Args:
        first: the first row.
        last: the row behind the last.
        flat: scores, float64 [rows, scores].
        tree: the junction tree, as `solver.TreeArrays`.
        best: whether the best assignment counts alone.
        tables: float64 [rows, entries of all tables], filled in.
        messages: float64 [rows, entries of all messages], filled in.
        totals: float64 [rows], filled in.
    """  # [S4.66]
    for row in range(first, last):
        total = 0.0
        for b in range(tree.n_values.shape[0]):
            table = tables[row, tree.table_start[b] : tree.table_start[b + 1]]
            message = messages[row, tree.message_start[b] : tree.message_start[b + 1]]
            _fill(flat[row], tree, b, table, messages[row])
            if best:
                _tops(table, tree.n_values[b], message)
            else:
                _normalise(table, tree.n_values[b], message)
            if tree.is_root[b]:
                total += message[0]
        totals[row] = total


@kernel(FAST)
def distribute(first, last, tree, tables, totals, weights, marginals):
    """weights[row] times the marginals of variables and factors, added into `marginals`, laid out like the scores.

    `above` holds weights[row] p(separator) of each bucket, filled by its parent.

    Args:
        first: the first row.
        last: the row behind the last.
        tree: the junction tree, as `solver.TreeArrays`.
        tables: conditionals by `collect`, float64 [rows, entries of all tables].
        totals: log Z of each row, float64 [rows].
        weights: weight of each row, float64 [rows].
        marginals: float64 [rows, scores], added to.
    """
    joints, above = np.empty(tree.largest), np.empty(tree.message_start[-1])
    for row in range(first, last):
        if totals[row] == NEG_INF:
            continue
        for i in range(above.shape[0]):
            above[i] = 0.0
        for b in range(tree.n_values.shape[0] - 1, -1, -1):
            table = tables[row, tree.table_start[b] : tree.table_start[b + 1]]
            size, joint = table.shape[0], joints[: table.shape[0]]
            if tree.is_root[b]:
                above[tree.message_start[b]] = weights[row]
            for s in range(size // tree.n_values[b]):  # p(clique) = p(separator) p(variable | separator)
                weight, first_entry = above[tree.message_start[b] + s], s * tree.n_values[b]
                for x in range(tree.n_values[b]):
                    joint[first_entry + x] = weight * table[first_entry + x]
                    marginals[row, tree.own[b] + x] += joint[first_entry + x]
            for i in range(tree.child_ptr[b], tree.child_ptr[b + 1]):
                places = tree.maps[tree.arrivals[i] : tree.arrivals[i] + size]
                start = tree.message_start[tree.children[i]]
                for e in range(size):
                    above[start + places[e]] += joint[e]
            for r in range(tree.read_ptr[b], tree.read_ptr[b + 1]):
                places = tree.maps[tree.reads[r] : tree.reads[r] + size]
                for e in range(size):
                    marginals[row, places[e]] += joint[e]


@kernel(EXACT)
def _entry(tree, b, values):
    """Return the entry of bucket b's separator that agrees with the values chosen so far."""
    entry = 0
    for i in range(tree.separator_ptr[b], tree.separator_ptr[b + 1]):
        entry += values[tree.separators[i]] * tree.strides[i]
    return entry


@kernel(EXACT)
def descend_best(first, last, tree, tables, values):
    """From the roots to the leaves, the best value of each variable given its separator; the lowest among ties.

    Args:
        first: the first row.
        last: the row behind the last.
        tree: the junction tree, as `solver.TreeArrays`.
        tables: scores by `collect`, float64 [rows, entries of all tables].
        values: value of each variable, int64 [rows, n], filled in.
    """
    for row in range(first, last):
        for b in range(tree.n_values.shape[0] - 1, -1, -1):
            start = tree.table_start[b] + _entry(tree, b, values[row]) * tree.n_values[b]
            values[row, tree.variables[b]], _ = first_best(tables[row, start:], tree.n_values[b])


@kernel(EXACT)
def descend_sample(first, last, tree, tables, uniforms, values):
    """From the roots to the leaves, a value of each variable drawn given its separator; values [samples, rows, n].

    Args:
        first: the first row.
        last: the row behind the last.
        tree: the junction tree, as `solver.TreeArrays`.
        tables: conditionals by `collect`, float64 [rows, entries of all tables].
        uniforms: a number in [0, 1) for each bucket, float64 [samples, rows, n].
        values: value of each variable, int64 [samples, rows, n], filled in.
    """
    for s in range(values.shape[0]):
        for row in range(first, last):
            for b in range(tree.n_values.shape[0] - 1, -1, -1):
                start = tree.table_start[b] + _entry(tree, b, values[s, row]) * tree.n_values[b]
                values[s, row, tree.variables[b]] = pick(tables[row, start:], tree.n_values[b], uniforms[s, row, b])


# --- the k best assignments --------------------------------------------------------------------------------
# A message has, for each entry of the separator, a descending list of k scores. A score remembers the value of the
# eliminated variable and its rank in the list of each child, so different scores stand for different assignments.


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
    """assignments [k, rows, n] and totals [k, rows], best first; -inf where a row has fewer.

    Args:
        first: the first row.
        last: the row behind the last.
        flat: scores, float64 [rows, scores].
        tree: the junction tree, as `solver.TreeArrays`.
        most_children: the most children of a bucket, or the number of roots if that is higher.
        assignments: value of each variable, int64 [k, rows, n], filled in.
        totals: scores of the assignments, float64 [k, rows], filled in.
    """
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
