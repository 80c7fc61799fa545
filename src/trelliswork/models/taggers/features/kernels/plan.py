"""Kernels that lay a corpus out for the passes over it, without a number more than the result takes."""

from __future__ import annotations

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def count_entries(tokens, rows, dense_row, weights, n_dense, n_loose):
    """n_dense[t] and n_loose[t]: how many dense rows and how many loose weights the t-th of `tokens` has.

    Attribute a has the row dense_row[a] or, if that is -1, the weights weights[a]..weights[a + 1].
    """
    for t in range(tokens.shape[0]):
        dense = loose = 0
        for e in range(rows.offsets[tokens[t]], rows.offsets[tokens[t] + 1]):
            a = rows.ids[e]
            if dense_row[a] >= 0:
                dense += 1
            else:
                loose += weights[a + 1] - weights[a]
        n_dense[t], n_loose[t] = dense, loose


@kernel(EXACT)
def lay_out(tokens, rows, dense_row, index, place, dense, loose):
    """Fill dense = (rows, values) and loose = (places, labels, values), token by token; no values are all 1."""
    valued = rows.values.shape[0] > 0
    d = n = 0
    for t in range(tokens.shape[0]):
        for e in range(rows.offsets[tokens[t]], rows.offsets[tokens[t] + 1]):
            a = rows.ids[e]
            if dense_row[a] >= 0:
                dense[0][d] = dense_row[a]
                if valued:
                    dense[1][d] = rows.values[e]
                d += 1
                continue
            for w in range(index.offsets[a], index.offsets[a + 1]):
                loose[0][n], loose[1][n] = place[w], index.labels[w]
                if valued:
                    loose[2][n] = rows.values[e]
                n += 1


@kernel(EXACT)
def mark_pairs(entries, ids, gold, first, seen):
    """seen[attribute - first, label] = True for the pairs that occur; tokens whose label is below 0 are passed over."""
    for t in range(gold.shape[0]):
        if gold[t] >= 0:
            for e in range(entries[t], entries[t + 1]):
                a = ids[e] - first
                if 0 <= a < seen.shape[0]:
                    seen[a, gold[t]] = True
