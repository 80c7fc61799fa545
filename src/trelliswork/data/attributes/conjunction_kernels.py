"""Kernels over pairs of attributes of the same token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel


class Partners(NamedTuple):
    """Attribute a, with others[p], has the conjunction numbers[p], for p in offsets[a]:offsets[a+1]."""

    offsets: Array
    others: Array
    numbers: Array


@kernel(EXACT)
def extend_rows(rows, partners, n_attributes, offsets, counts, out_ids, out_values):
    """Write the attributes of each token and then its conjunctions, or only count them.

    Args:
        rows: Attributes of the tokens.
        partners: Which pairs of attributes have a conjunction.
        n_attributes: Number of attributes, conjunctions not counted.
        offsets: Where the entries of each token begin, int64 [tokens + 1]; empty to count alone.
        counts: Number of entries of each token, int64 [tokens], filled in if they are counted.
        out_ids: Attributes and conjunctions, int32 [entries], filled in.
        out_values: Their values, float64 [entries], filled in; empty if all are 1.
    """
    writing, valued = offsets.shape[0] > 0, rows.values.shape[0] > 0
    seen, total = np.full(n_attributes, -1, np.int32), np.empty(n_attributes if valued else 1)
    present = np.empty(n_attributes, np.int32)
    for t in range(counts.shape[0]):
        n_present, n_out = 0, 0
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a = rows.ids[e]
            if seen[a] != t:
                seen[a] = t
                present[n_present] = a
                n_present += 1
                if valued:
                    total[a] = 0.0
            if valued:
                total[a] += rows.values[e]
            if writing:
                out_ids[offsets[t] + n_out] = a
                if valued:
                    out_values[offsets[t] + n_out] = rows.values[e]
            n_out += 1
        k = 0
        while k < n_present:  # grows: a conjunction may be the later one of another
            a = present[k]
            for p in range(partners.offsets[a], partners.offsets[a + 1]):
                other = partners.others[p]
                if seen[other] == t:
                    new = partners.numbers[p]
                    seen[new] = t
                    present[n_present] = new
                    n_present += 1
                    if valued:
                        total[new] = total[a] * total[other]
                    if writing:
                        out_ids[offsets[t] + n_out] = new
                        if valued:
                            out_values[offsets[t] + n_out] = total[new]
                    n_out += 1
            k += 1
        counts[t] = n_out
