"""Imports numba and has it compile something, after which it compiles a small function in no time (`tests/fresh.py`)."""

import numba
import numpy as np


@numba.njit
def total(row):  # type: ignore[no-untyped-def]
    found = 0.0
    for i in range(row.shape[0]):
        found += row[i]
    return found


total(np.ones(1))
