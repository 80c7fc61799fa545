"""Kernels over pairs of attributes of the same token."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def extend_rows(
    entries, ids, values, n_attributes, pair_offsets, partners, numbers, offsets, counts, out_ids, out_values
):
    """The attributes of each token, then its conjunctions: into out_ids from offsets[t] on, or if `offsets` is
    empty only their number, into counts[t].
    """
    writing, valued = offsets.shape[0] > 0, values.shape[0] > 0
    seen, total = np.full(n_attributes, -1, np.int32), np.empty(n_attributes if valued else 1)
    present = np.empty(n_attributes, np.int32)
    for t in range(counts.shape[0]):
        n_present, n_out = 0, 0
        for e in range(entries[t], entries[t + 1]):
            a = ids[e]
            if seen[a] != t:
                seen[a] = t
                present[n_present] = a
                n_present += 1
                if valued:
                    total[a] = 0.0
            if valued:
                total[a] += values[e]
            if writing:
                out_ids[offsets[t] + n_out] = a
                if valued:
                    out_values[offsets[t] + n_out] = values[e]
            n_out += 1
        k = 0
        while k < n_present:  # grows: a conjunction may be the later one of another
            a = present[k]
            for p in range(pair_offsets[a], pair_offsets[a + 1]):
                if seen[partners[p]] == t:
                    new = numbers[p]
                    seen[new] = t
                    present[n_present] = new
                    n_present += 1
                    if valued:
                        total[new] = total[a] * total[partners[p]]
                    if writing:
                        out_ids[offsets[t] + n_out] = new
                        if valued:
                            out_values[offsets[t] + n_out] = total[new]
                    n_out += 1
            k += 1
        counts[t] = n_out
