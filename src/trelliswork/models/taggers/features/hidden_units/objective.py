"""The loss and gradient of some sentences under a hidden-unit CRF, shared out over threads."""

from __future__ import annotations

from functools import partial

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import RowArrays
from trelliswork.models.taggers.features.hidden_units.parameters import HiddenParameters, Units
from trelliswork.models.taggers.features.kernels.adam import move_rows
from trelliswork.models.taggers.features.kernels.sets import room_for
from trelliswork.models.taggers.features.kernels.units import batch_gradient
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.threads import row_ranges, side_by_side


class Likelihood:
    """`loss, touched = likelihood(units, sentences)` adds the gradient to `likelihood.gradient`.

    Only the rows `touched` of the gradient by W can differ from 0; who takes the gradient clears it.
    """

    def __init__(self, rows: AttributeRows, gold: Array, parameters: HiddenParameters) -> None:
        self.parameters, self.rows, self._gold = parameters, rows.arrays, gold.astype(np.int64)
        self._parts: list[_Part] = []
        self.gradient = self._part(0).gradient

    def _part(self, number: int) -> _Part:
        while len(self._parts) <= number:
            self._parts.append(_Part(self.parameters))
        return self._parts[number]

    def __call__(self, units: Units, sentences: Array) -> tuple[float, Array]:
        n_tokens = int(self.rows.lengths[sentences].sum())
        ranges = row_ranges(len(sentences), 2 * n_tokens * units.v.size)
        passes = side_by_side(
            [
                partial(self._part(k).add, first, last, sentences, self.rows, self._gold, units)
                for k, (first, last) in enumerate(ranges)
            ]
        )
        for k, (_, touched) in enumerate(passes[1:], start=1):
            self._part(k).move(touched, self.gradient)
        touched = passes[0][1] if len(passes) == 1 else np.unique(np.concatenate([each for _, each in passes]))
        return sum(loss for loss, _ in passes), touched


class _Part:
    """The gradient that one thread adds up."""

    def __init__(self, parameters: HiddenParameters) -> None:
        n_attributes = parameters.n_attributes
        self.gradient = Units.zeros(n_attributes, parameters.n_units, parameters.n_labels)
        self._touched, self._seen = np.empty(n_attributes, np.int64), np.zeros(n_attributes, np.bool_)

    def add(
        self, first: int, last: int, order: Array, rows: RowArrays, gold: Array, units: Units
    ) -> tuple[float, Array]:
        room = room_for(int(rows.lengths[order[first:last]].max(initial=0)), units.v.shape[0], by_position=False)
        loss, n = batch_gradient(first, last, order, rows, gold, units, room, self.gradient, self._touched, self._seen)
        touched = self._touched[:n].copy()
        self._seen[touched] = False
        return loss, touched

    def move(self, touched: Array, total: Units) -> None:
        move_rows(touched, self.gradient.w, total.w)
        for mine, sums in zip(self.gradient[1:], total[1:], strict=True):
            sums += mine
            mine[:] = 0.0
