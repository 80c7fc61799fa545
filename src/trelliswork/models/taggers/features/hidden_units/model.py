"""A hidden-unit CRF: its parameters, and a feature CRF whose scores pass through binary units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes import AttributeRows, Conjunctions, KeyIndex
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.units import score_tokens
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True)
class HiddenUnitCRF(FeatureCRF):
    """p(y | x) with H units at every token summed out, a linear chain; `weights` are float32.

    π and τ belong to one token each, so they are part of its scores.
    van der Maaten et al. (2011), Hidden-unit conditional random fields.
    """

    # [S4.141-144]

    parameters: HiddenParameters

    @cached_property
    def units(self) -> Units:
        return self.parameters.units(self.weights)

    def emissions(self, rows: AttributeRows) -> Array:
        """Return scores [tokens, labels]: c_y + Σ_h ln(1 + e^{b_h + w_h·x + V_hy}), π at first and τ at last tokens."""
        scores = np.empty((rows.n_tokens, len(self.labels)))
        score_tokens(rows.arrays, self.units, scores)
        return scores

    def compact(self) -> tuple[FeatureCRF, Array]:
        """Return the same model without attributes that drive no unit, and the numbers that those left had before."""
        kept = np.flatnonzero(self.units.w.any(1))
        parameters = HiddenParameters.dense(len(kept), len(self.labels), self.parameters.n_units)
        parameters = replace(parameters, legal=self.parameters.legal)
        units = self.units._replace(w=self.units.w[kept])
        assert isinstance(self.index, KeyIndex), "hidden units have names for their attributes"
        index = KeyIndex.of(self.index.keys()[kept])
        none = Conjunctions.none(len(index))
        return replace(self, index=index, parameters=parameters, weights=units.flat(), conjunctions=none), kept


# The parameters of a hidden-unit CRF: as named arrays for the kernels, as one vector for the disk.


class Units(NamedTuple):
    """Weights: attributes drive units by W and b, units and labels meet in V, labels follow each other by A."""

    # [S4.142]
    w: Array  # [attributes, units] float32, the others are float64
    b: Array  # [units]
    v: Array  # [labels, units]
    c: Array  # [labels]
    start: Array  # [labels], π
    end: Array  # [labels], τ
    transitions: Array  # [labels, labels], A

    @classmethod
    def zeros(cls, n_attributes: int, n_units: int, n_labels: int) -> Units:
        """Return weights that are all 0.

        Args:
            n_attributes: Number of attributes.
            n_units: Number of hidden units.
            n_labels: Number of labels.

        Returns:
            W, b, V and A.
        """
        shapes = ((n_units,), (n_labels, n_units), (n_labels,), (n_labels,), (n_labels,), (n_labels, n_labels))
        return cls(np.zeros((n_attributes, n_units), np.float32), *map(np.zeros, shapes))

    def flat(self) -> Array:
        """Return all of them behind one another, float32, A last."""
        return np.concatenate([each.reshape(-1).astype(np.float32, copy=False) for each in self])


@dataclass(frozen=True)
class HiddenParameters(Parameters):
    """Every attribute has a weight for every unit; no pair of an attribute and a label has one."""

    n_units: int = 0

    @classmethod
    def dense(cls, n_attributes: int, n_labels: int, n_units: int) -> HiddenParameters:
        """Return the parameters of units that every attribute drives.

        Args:
            n_attributes: Number of attributes.
            n_labels: Number of labels.
            n_units: Number of hidden units.

        Returns:
            The parameters.
        """
        arcs = np.stack(np.divmod(np.arange(n_labels * n_labels), n_labels), 1)
        return cls(n_labels, np.zeros(n_attributes + 1, np.int64), np.empty(0, np.int32), arcs, n_units=n_units)

    @property
    def n_attributes(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_states(self) -> int:
        """Number of weights before those of the arcs."""
        return (self.n_attributes + 1) * self.n_units + self.n_labels * (self.n_units + 3)

    def __len__(self) -> int:
        return self.n_states + len(self.arcs)

    def units(self, weights: Array) -> Units:
        """Return the inverse of `Units.flat`; W is a view."""
        like, done, arrays = Units.zeros(0, self.n_units, self.n_labels), 0, []
        for shape in ((self.n_attributes, self.n_units), *(each.shape for each in like[1:])):
            size = int(np.prod(shape))
            arrays.append(weights[done : done + size].reshape(shape))
            done += size
        return Units(arrays[0], *(np.ascontiguousarray(each, np.float64) for each in arrays[1:]))
