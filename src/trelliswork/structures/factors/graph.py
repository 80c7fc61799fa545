"""The shape of a factor graph: which variables there are, which factors see which, and where their scores lie.

All scores of a row lie in one vector: first `n * c` entries for the variables themselves (variable v, value x at
v * c + x; what is beyond a variable's own size is never read), then the tables of the factors, one behind the other,
last variable fastest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trelliswork.runtime.arrays import Array


@dataclass(frozen=True)
class Graph:
    """`sizes[v]` values for variable v, at most c; `scopes[a]` are the variables of factor a, y_a."""  # [S4.65]

    sizes: tuple[int, ...]
    c: int
    scopes: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return len(self.sizes)

    def shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.sizes[variable] for variable in scope)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The place in the score vector where each factor's table begins; one more for the end of it."""
        starts = [self.n * self.c]
        for scope in self.scopes:
            starts.append(starts[-1] + math.prod(self.shape(scope)))
        return tuple(starts)

    @property
    def n_scores(self) -> int:
        return self.offsets[-1]

    def strides(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        """Return the distance of neighbouring values of each variable in a table over `scope`."""
        shape = self.shape(scope)
        return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))

    def index_within(self, scope: tuple[int, ...], part: tuple[int, ...]) -> Array:
        """Return the places of a table's entries in a smaller one.

        For each entry of a table over `scope` that is its entry in a table over `part`, some of the same variables.
        """
        entries = np.zeros(self.shape(scope), np.int64)
        for variable, stride in zip(part, self.strides(part), strict=True):
            place = scope.index(variable)
            axis = np.arange(self.sizes[variable]) * stride
            entries += axis.reshape([-1 if other == place else 1 for other in range(len(scope))])
        return entries.reshape(-1)
