"""Names that nearly every module of arrays and scores uses.

    >>> from trelliswork.runtime.arrays import INF, NEG_INF
    >>> NEG_INF < -1e300 < INF
    True

`Array` is an array of any shape and dtype: shapes stand in comments and docstrings, as `[batch, n, c]`. A score of
`NEG_INF` forbids what it scores; kernels read it as a constant.

`Bool`, `Float` and `Int` put shapes into signatures: `Float[Tensor, "batch n c"]` is a tensor of floats with these
axes. For type checkers and `typing.get_type_hints` it is a tensor; the axes are there to be read.
"""

from __future__ import annotations

from typing import Annotated as Bool
from typing import Annotated as Float
from typing import Annotated as Int
from typing import Any

import numpy as np

__all__ = ["INF", "NEG_INF", "Array", "Bool", "Float", "Int"]

Array = np.ndarray[Any, Any]
INF = float("inf")
NEG_INF = -INF
