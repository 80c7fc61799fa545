"""CPU kernel of the curvature of the likelihood."""

from __future__ import annotations

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def add_variances(rows, index, spread, out):
    """Compute out[p] += Σ value² · spread[t, label of p], over the tokens t that have the attribute of weight p.

    Args:
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        spread: p (1 - p) of each label, [tokens, c].
        out: [weights]; added to.
    """
    for t in range(spread.shape[0]):
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a, square = rows.ids[e], rows.values[e] * rows.values[e] if rows.values.shape[0] > 0 else 1.0
            for p in range(index.offsets[a], index.offsets[a + 1]):
                out[p] += square * spread[t, index.labels[p]]
