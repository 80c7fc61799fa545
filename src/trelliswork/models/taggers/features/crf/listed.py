"""Pairs of labels with a weight, listed: for the kernels of chains with many labels, most of whose pairs have none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes.rows import offsets_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.sparse import ListedArcs
from trelliswork.runtime.arrays import Array

MANY_LABELS = 64
LEAST_SHARE = 8  # at most one pair in this many is listed: else a whole table is faster


def is_worth_listing(n_labels: int, n_pairs: int) -> bool:
    """Return whether going through the pairs that have a weight is faster than going through all."""
    return n_labels >= MANY_LABELS and n_pairs * LEAST_SHARE <= n_labels**2


class Listed(NamedTuple):
    """The pairs as the kernels read them; pair k has the arc weight owners[k]."""

    arcs: ListedArcs
    owners: Array

    def scores(self, arc_weights: Array) -> Array:
        """Return those of the pairs."""
        return np.ascontiguousarray(arc_weights[self.owners], np.float64)

    @classmethod
    def of(cls, parameters: Parameters) -> Listed | None:
        """Return those of a chain of labels, if they are many and few of their pairs have a weight; else None."""
        c, arcs = parameters.n_labels, parameters.arcs
        single = parameters.order == 1 and parameters.latent == 1 and parameters.legal is None
        if not single or parameters.n_pairs or not is_worth_listing(c, len(arcs)):
            return None
        owners = np.lexsort((arcs[:, 1], arcs[:, 0]))
        before, label = arcs[owners].T
        order = np.lexsort((before, label))
        counts = (np.bincount(each, minlength=c) for each in (before, label))
        offsets, in_offsets = map(offsets_of, counts)
        small = (each.astype(np.int32) for each in (label, before[order]))
        targets, sources = small
        return cls(ListedArcs(offsets, targets, in_offsets, sources, order), owners)
