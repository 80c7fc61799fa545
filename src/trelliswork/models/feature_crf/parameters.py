"""Which weights a feature CRF has: (attribute, label) pairs and (label, label) pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.feature_crf.plan_kernels import mark_pairs

Array = np.ndarray[Any, Any]
MOST_MARKS = 1 << 28  # bytes; above, pairs are sorted instead


@dataclass(frozen=True)
class Parameters:
    """Attribute a has a weight for labels[offsets[a]:offsets[a+1]]; `arcs` [pairs, 2] lists the transitions with one.

    Weights are one vector: first those of the attributes, in this order, then those of the arcs.
    """

    n_labels: int
    offsets: Array  # [attributes + 1] int64
    labels: Array  # [state weights] int32
    arcs: Array  # [arc weights, 2] int64

    @classmethod
    def of(
        cls,
        rows: AttributeRows,
        gold: Array,
        n_attributes: int,
        n_labels: int,
        *,
        all_states: bool = False,
        all_transitions: bool = False,
    ) -> Parameters:
        """The pairs that occur in the data, or all: also those that never occur can then be made unlikely [S4.80]."""
        if all_states:
            pairs = np.arange(n_attributes * n_labels)
        else:
            pairs = _observed_states(rows, gold, n_attributes, n_labels)
        counts = np.bincount(pairs // n_labels, minlength=n_attributes)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        arcs = _all_arcs(n_labels) if all_transitions else _observed_arcs(rows, gold, n_labels)
        return cls(n_labels, offsets, (pairs % n_labels).astype(np.int32), arcs)

    def check(self, n_attributes: int) -> None:
        """Raise `ValueError` unless the weights of each attribute, their labels and arcs lie where they should."""
        offsets, labels, arcs = self.offsets, self.labels, self.arcs
        if (offsets.dtype, labels.dtype, arcs.dtype) != (np.int64, np.int32, np.int64):
            raise ValueError("offsets, labels and arcs must be whole numbers of 64, 32 and 64 bits")
        if offsets.shape != (n_attributes + 1,) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ValueError(f"offsets must rise from 0, one for each of {n_attributes} attributes")
        if labels.shape != (offsets[-1],) or arcs.shape[1:] != (2,):
            raise ValueError(f"{offsets[-1]} labels and pairs of labels expected, {labels.shape}, {arcs.shape} found")
        for name, found in (("labels", labels), ("arcs", arcs)):
            if found.size and not 0 <= found.min() <= found.max() < self.n_labels:
                raise ValueError(f"{name} must lie in 0..{self.n_labels - 1}")

    def frequent(self, rows: AttributeRows, gold: Array, min_frequency: float) -> Parameters:
        """Without the (attribute, label) pairs whose values sum up to less than `min_frequency` in the data."""
        if min_frequency <= 0:
            return self
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        places = owner * self.n_labels + self.labels
        labelled = gold[rows.tokens()]
        found = rows.ids.astype(np.int64) * self.n_labels + labelled
        values = np.ones(len(found)) if rows.values is None else rows.values
        at = np.minimum(np.searchsorted(places, found), len(places) - 1)
        hit = (labelled >= 0) & (places[at] == found)
        keep = np.bincount(at[hit], values[hit], minlength=len(places)) >= min_frequency
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[keep], minlength=len(self.offsets) - 1))])
        return Parameters(self.n_labels, offsets, self.labels[keep], self.arcs)

    @property
    def n_states(self) -> int:
        return len(self.labels)

    def __len__(self) -> int:
        return len(self.labels) + len(self.arcs)

    def transitions(self, weights: Array) -> Array:
        """Transition scores [labels, labels]; 0 where there is no weight."""
        scores = np.zeros((self.n_labels, self.n_labels))
        scores[self.arcs[:, 0], self.arcs[:, 1]] = weights[self.n_states :]
        return scores


def _observed_states(rows: AttributeRows, gold: Array, n_attributes: int, n_labels: int) -> Array:
    """attribute · labels + label of the pairs that occur, sorted."""
    if n_attributes * n_labels <= MOST_MARKS:
        seen = np.zeros((n_attributes, n_labels), np.bool_)
        mark_pairs(rows.offsets, rows.ids, gold.astype(np.int64, copy=False), seen)
        return np.flatnonzero(seen)
    labelled = gold[rows.tokens()]
    return np.unique(rows.ids.astype(np.int64)[labelled >= 0] * n_labels + labelled[labelled >= 0])


def _all_arcs(n_labels: int) -> Array:
    return np.stack(np.divmod(np.arange(n_labels * n_labels), n_labels), 1)


def _observed_arcs(rows: AttributeRows, gold: Array, n_labels: int) -> Array:
    inside = np.ones(len(gold), np.bool_)
    inside[rows.starts[:-1][rows.lengths > 0]] = False
    after = np.flatnonzero(inside)
    before, here = gold[after - 1], gold[after]
    known = (before >= 0) & (here >= 0)
    return np.stack(np.divmod(np.unique(before[known] * n_labels + here[known]), n_labels), 1)
