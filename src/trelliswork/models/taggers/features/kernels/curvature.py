"""CPU kernel of the curvature of the likelihood."""

from __future__ import annotations

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def add_variances(entries, ids, values, offsets, labels, spread, out):
    """out[p] += Σ value² · spread[t, label of p], over the tokens t that have the attribute of weight p."""
    valued = values.shape[0] > 0
    for t in range(spread.shape[0]):
        for e in range(entries[t], entries[t + 1]):
            square = values[e] * values[e] if valued else 1.0
            for p in range(offsets[ids[e]], offsets[ids[e] + 1]):
                out[p] += square * spread[t, labels[p]]
