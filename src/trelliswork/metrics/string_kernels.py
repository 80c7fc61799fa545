"""Edit distances of numbered symbols."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def distance(source, target, row):
    """Return the fewest insertions, deletions and substitutions.

    Args:
        source: Symbols of the one string.
        target: Symbols of the other.
        row: Room for one number more than the target has symbols, int64.
    """
    m = target.shape[0]
    for j in range(m + 1):
        row[j] = j
    for i in range(source.shape[0]):
        diagonal, row[0] = row[0], i + 1
        for j in range(m):
            cost = diagonal + (source[i] != target[j])
            diagonal = row[j + 1]
            row[j + 1] = min(cost, diagonal + 1, row[j] + 1)
    return row[m]


@kernel(EXACT)
def distances(sources, source_offsets, targets, target_offsets, found):
    """Compute the edit distance of each pair of strings.

    Args:
        sources: Symbols of all sources, whole numbers.
        source_offsets: Where each source begins, int64 [pairs + 1].
        targets: Symbols of all targets.
        target_offsets: Where each target begins, int64 [pairs + 1].
        found: Distances, int64 [pairs], filled in.
    """
    longest = 0
    for p in range(found.shape[0]):
        longest = max(longest, target_offsets[p + 1] - target_offsets[p])
    row = np.empty(longest + 1, np.int64)
    for p in range(found.shape[0]):
        source = sources[source_offsets[p] : source_offsets[p + 1]]
        found[p] = distance(source, targets[target_offsets[p] : target_offsets[p + 1]], row)
