"""The part of a lattice's column that matters: a long source is read near one place at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trelliswork.runtime.bridge import Array

NEGLIGIBLE = 60.0  # nats below the largest probability of a column: e^-60 is less than float64 can add to 1
AHEAD = 64  # places behind the last one of any weight, for deletions in a row
NEG_INF = -np.inf


@dataclass(frozen=True)
class Windows:
    """Places `first`..`last` of the source of each hypothesis, and what comes into the cells there.

    Before `first`, nothing of weight arrives. Behind `last` it could only by deleting `AHEAD` symbols in a row; if it
    does, `cut` says so. A window is `whole` if its `last` place is the end of the source.
    """

    first: Array
    last: Array
    whole: Array
    arriving: Array

    @staticmethod
    def around(base: Array, arriving: Array, lengths: Array) -> Windows:
        """The windows of columns that are known from place `base` on, in sources of these lengths."""
        heavy = arriving >= arriving.max(1, keepdims=True) - NEGLIGIBLE
        skipped = heavy.argmax(1)
        end = heavy.shape[1] - 1 - heavy[:, ::-1].argmax(1)
        first, last = base + skipped, np.minimum(lengths, base + end + AHEAD)
        places = skipped[:, None] + np.arange(int((last - first).max()) + 1)
        known = np.take_along_axis(arriving, places.clip(max=arriving.shape[1] - 1), 1)
        return Windows(first, last, last == lengths, np.where(places < arriving.shape[1], known, NEG_INF))

    @property
    def sizes(self) -> Array:
        """How many symbols of the source lie in each window."""
        found: Array = self.last - self.first
        return found

    def of(self, table: Array, rows: Array) -> Array:
        """The entries of a table [batch, n, ...] in each window; what lies behind it is not read."""
        width = max(self.arriving.shape[1] - 1, 1)
        places = self.first[:, None] + np.arange(width)
        found: Array = table[rows[:, None], places.clip(max=table.shape[1] - 1)]
        return found

    def cut(self, alpha: Array) -> Array:
        """Whether something of weight has reached the last place of a window that is not the end."""
        at_last = np.take_along_axis(alpha, self.sizes[:, None], 1)[:, 0]
        found: Array = ~self.whole & (at_last >= alpha.max(1) - NEGLIGIBLE)
        return found
