"""Shapes in signatures: `Float[Tensor, "batch n c"]` is a tensor of floats with these axes.

For type checkers and `typing.get_type_hints` it is a tensor; the axes are there to be read.
"""

from typing import Annotated as Bool
from typing import Annotated as Float
from typing import Annotated as Int

__all__ = ["Bool", "Float", "Int"]
