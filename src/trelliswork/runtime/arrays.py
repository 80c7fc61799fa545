"""Names that nearly every module of arrays and scores uses.

    >>> from trelliswork.runtime.arrays import INF, NEG_INF
    >>> NEG_INF < -1e300 < INF
    True

`Array` is an array of any shape and dtype: shapes stand in comments and docstrings, as `[batch, n, c]`. A score of
`NEG_INF` forbids what it scores; kernels read it as a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["INF", "NEG_INF", "Array"]

Array = np.ndarray[Any, Any]
INF = float("inf")
NEG_INF = -INF
