"""Import numba and compile something with it, so that it compiles the next function at once (`tests/fresh.py`)."""

import numba
import numpy as np


@numba.njit
def total(row):  # type: ignore[no-untyped-def]
    found = 0.0
    for i in range(row.shape[0]):
        found += row[i]
    return found


total(np.ones(1))
