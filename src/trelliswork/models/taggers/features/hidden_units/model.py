"""A trained hidden-unit CRF: a feature CRF whose scores pass through binary units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trelliswork.data.attributes import AttributeRows, Conjunctions, KeyIndex
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.hidden_units.parameters import HiddenParameters, Units
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
        """Scores [tokens, labels]: c_y + Σ_h ln(1 + e^{b_h + w_h·x + V_hy}), with π at first and τ at last tokens."""
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
