"""Learning a hidden-unit CRF: its loss and gradient, and Adam on small batches, the rate falling to 0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import RowArrays
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters, Units
from trelliswork.models.taggers.features.kernels.adam import KEPT_MEAN, KEPT_SQUARE, adam, adam_rows, move_rows
from trelliswork.models.taggers.features.kernels.sets import room_for
from trelliswork.models.taggers.features.kernels.units import batch_gradient
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.threads import row_ranges, side_by_side


@dataclass(frozen=True)
class HiddenUnitLearner:
    """Lowers Σ -log p + l2 ‖w‖², which has many local minima: the seed decides which one is found.

    The rate falls linearly to 0 over `max_epochs`. A row of W is moved only by batches that have its attribute, and
    shrunk then for all the sentences since it was moved last.
    """

    l2: float = 0.1
    max_epochs: int = 30
    batch: int = 10  # sentences, at most: fewer than a thousand make a hundred batches
    rate: float = 0.003
    dropout: float = 0.0  # share of a token's attributes that an epoch leaves out, at random
    spread_w: float = 0.1  # standard deviation of the first W
    spread_v: float = 0.1  # and V
    seed: int = 0
    start: Array | None = None  # weights to begin with, instead of random ones

    def learn(self, corpus: Corpus, parameters: HiddenParameters) -> Iterator[Progress]:
        """Yield one `Progress` an epoch."""
        random, given = np.random.default_rng(self.seed), self.start
        units = self.first_units(parameters, random) if given is None else _copied(parameters.units(given))
        likelihood, order = Likelihood(corpus.rows, corpus.gold, parameters), np.flatnonzero(corpus.rows.lengths)
        size = max(1, min(self.batch, len(order) // 100))
        n_batches, whole = -(-len(order) // size), likelihood.rows
        step = _Adam(units, self.rate, self.max_epochs * n_batches, 2 * self.l2 / max(len(order), 1))
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            likelihood.rows, total = self._thinned(whole, random), 0.0
            for first in range(0, len(order), size):
                sentences = order[first : first + size]
                loss, touched = likelihood(units, sentences)
                step(likelihood.gradient, touched, len(sentences))
                total += loss
            yield Progress(number, units.flat(), total / max(len(order), 1))

    def _thinned(self, rows: RowArrays, random: np.random.Generator) -> RowArrays:
        """Return some attributes with value 0; the others larger, so that sums stay the same on average."""
        if not self.dropout:
            return rows
        kept = (random.random(len(rows.ids)) >= self.dropout) / (1 - self.dropout)
        return rows._replace(values=kept * rows.values if len(rows.values) else kept)

    def first_units(self, parameters: HiddenParameters, random: np.random.Generator) -> Units:
        """Return random W and V, without which all units would stay alike; the rest is 0."""
        units = Units.zeros(parameters.n_attributes, parameters.n_units, parameters.n_labels)
        units.w[:] = random.standard_normal(units.w.shape, np.float32) * np.float32(self.spread_w)
        units.v[:] = random.standard_normal(units.v.shape) * self.spread_v
        return units


class _Adam:
    """Running means of the gradient and its square, and the steps that follow from them."""

    def __init__(self, units: Units, rate: float, n_steps: int, shrink: float) -> None:
        n_attributes, (n_labels, n_units) = len(units.w), units.v.shape
        self._units, self._rate, self._n_steps, self._shrink, self._done = units, rate, n_steps, shrink, 0
        self._seen, self._seen_by = 0, np.zeros(n_attributes, np.int64)  # sentences, until now and until a row moved
        self._means, self._squares = (Units.zeros(n_attributes, n_units, n_labels) for _ in range(2))

    def __call__(self, gradient: Units, touched: Array, n_sentences: int) -> None:
        self._done += 1
        self._seen += n_sentences
        t, shrink = self._done, self._shrink * n_sentences
        bias = math.sqrt(1 - KEPT_SQUARE**t) / (1 - KEPT_MEAN**t)
        rate = self._rate * (1 - t / (self._n_steps + 1)) * bias
        w, *others = zip(self._units, gradient, self._means, self._squares, strict=True)
        adam_rows(touched, self._shrink * (self._seen - self._seen_by[touched]), *w, rate)
        self._seen_by[touched] = self._seen
        for each in others:
            adam(*(part.reshape(-1) for part in each), rate, shrink)


def _copied(units: Units) -> Units:
    return Units(*(each.copy() for each in units))


# The loss and gradient of some sentences under a hidden-unit CRF, shared out over threads.


class Likelihood:
    """`loss, touched = likelihood(units, sentences)` adds the gradient to `likelihood.gradient`.

    Only the rows `touched` of the gradient by W can differ from 0; who takes the gradient clears it.

    Args:
        rows: attributes of the tokens.
        gold: the label of each token.
        parameters: the shape of the weights.
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
