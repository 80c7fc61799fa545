"""CPU kernels over the labels of single spans."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def best_by_size(shares, chains, n_items, right, labels):
    """Fill in for each span and number of constituents the label that is expected to have most right, and how many.

    Args:
        shares: Probabilities of the labels 1, 2, ... of each span, float64 [m, c - 1].
        chains: (starts, items) of each label: items[starts[y]:starts[y + 1]] are its constituents, the second of a name
            being another one than the first.
        n_items: Number of different items.
        right: How many constituents are expected to be right, float64 [m, sizes], filled in.
        labels: The label that has most right, [m, sizes], filled in.
    """
    starts, items = chains
    held = np.empty(n_items)
    for s in range(shares.shape[0]):
        held[:], right[s] = 0.0, -1.0
        for y in range(shares.shape[1]):
            for at in range(starts[y], starts[y + 1]):
                held[items[at]] += shares[s, y]
        for y in range(shares.shape[1]):
            size, total = starts[y + 1] - starts[y], 0.0
            for at in range(starts[y], starts[y + 1]):
                total += held[items[at]]
            if total > right[s, size - 1]:
                right[s, size - 1], labels[s, size - 1] = total, y + 1
