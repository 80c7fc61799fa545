"""Kernels that lay a corpus out for the passes over it."""

from __future__ import annotations

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def lay_out(tokens, rows, dense_row, index, place, dense, loose):
    """Fill dense = (offsets, rows, values) and loose = (offsets, places, labels, values), token by token.

    Attribute a has the row dense_row[a] or, if that is -1, the weights index.offsets[a]..index.offsets[a + 1]. Where
    `rows` have no values, all are 1, and there are none here.

    Args:
        tokens: the tokens in the order of the plan.
        rows: attributes of the tokens (`RowArrays`).
        dense_row: row of each attribute in the table, -1 for none, [attributes].
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        place: place of each weight among the loose ones, [weights].
        dense: offsets, rows and values; written.
        loose: offsets, places, labels and values; written.
    """
    valued = rows.values.shape[0] > 0
    d = n = 0
    dense[0][0] = loose[0][0] = 0
    for t in range(tokens.shape[0]):
        for e in range(rows.offsets[tokens[t]], rows.offsets[tokens[t] + 1]):
            a = rows.ids[e]
            if dense_row[a] >= 0:
                dense[1][d] = dense_row[a]
                if valued:
                    dense[2][d] = rows.values[e]
                d += 1
                continue
            for w in range(index.offsets[a], index.offsets[a + 1]):
                loose[1][n], loose[2][n] = place[w], index.labels[w]
                if valued:
                    loose[3][n] = rows.values[e]
                n += 1
        dense[0][t + 1], loose[0][t + 1] = d, n


@kernel(EXACT)
def mark_pairs(entries, ids, gold, first, seen):
    """Set seen[attribute - first, label] = True for the pairs that occur; tokens with a label below 0 are passed over.

    Args:
        entries: offsets of the tokens, [tokens + 1].
        ids: attribute of each entry.
        gold: the label of each token, [tokens].
        first: the first attribute that is looked at.
        seen: [attributes, labels] bool; set.
    """
    for t in range(gold.shape[0]):
        if gold[t] >= 0:
            for e in range(entries[t], entries[t + 1]):
                a = ids[e] - first
                if 0 <= a < seen.shape[0]:
                    seen[a, gold[t]] = True
