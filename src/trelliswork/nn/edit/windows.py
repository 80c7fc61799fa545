"""The part of a lattice's column that has mass: at any time, a long source is being read near one position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array

NEGLIGIBLE = 60.0  # nats below the largest probability of a column: adding e^-60 to 1 changes nothing in float64
AHEAD = 64  # positions after the last one with mass, which consecutive deletions can reach


@dataclass(frozen=True)
class Windows:
    """Positions `first`..`last` of the source of each hypothesis, and the mass that arrives in the cells there.

    Before `first` no mass arrives. After `last` it can only arrive by deleting `AHEAD` symbols in a row, which `cut`
    reports. A window is `whole` if its `last` position is the end of the source.
    """

    first: Array
    last: Array
    whole: Array
    arriving: Array

    @staticmethod
    def around(base: Array, arriving: Array, lengths: Array) -> Windows:
        """Return the windows of columns.

        Args:
            base: Position of the first entry of each column.
            arriving: Log mass that arrives at each position from `base` on, [hypothesis, positions].
            lengths: Lengths of the sources.
        """
        # Only positions between the first and the last one with mass are kept, and AHEAD more.
        heavy = arriving >= arriving.max(1, keepdims=True) - NEGLIGIBLE
        skipped = heavy.argmax(1)
        end = heavy.shape[1] - 1 - heavy[:, ::-1].argmax(1)
        first, last = base + skipped, np.minimum(lengths, base + end + AHEAD)
        places = skipped[:, None] + np.arange(int((last - first).max()) + 1)
        known = np.take_along_axis(arriving, places.clip(max=arriving.shape[1] - 1), 1)
        return Windows(first, last, last == lengths, np.where(places < arriving.shape[1], known, NEG_INF))

    @property
    def sizes(self) -> Array:
        """Return the number of source symbols in each window."""
        sizes: Array = self.last - self.first
        return sizes

    def of(self, table: Array, rows: Array) -> Array:
        """Return the entries of a table [batch, n, ...] in each window; entries after its end are arbitrary."""
        width = max(self.arriving.shape[1] - 1, 1)
        places = self.first[:, None] + np.arange(width)
        entries: Array = table[rows[:, None], places.clip(max=table.shape[1] - 1)]
        return entries

    def cut(self, alpha: Array) -> Array:
        """Return for each window whether mass has reached its last position although that is not the end."""
        at_last = np.take_along_axis(alpha, self.sizes[:, None], 1)[:, 0]
        is_cut: Array = ~self.whole & (at_last >= alpha.max(1) - NEGLIGIBLE)
        return is_cut
