"""Stochastic gradient descent on the regularised likelihood, with the rate found by trial [S4.134-135]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.edges import edge_rows
from trelliswork.models.taggers.features.crf.observed import follows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.models.taggers.features.kernels.records import EdgeRows, Observed
from trelliswork.models.taggers.features.kernels.sets import Room, room_for
from trelliswork.models.taggers.features.kernels.sgd import Clock, sgd_epoch
from trelliswork.models.taggers.features.learners.base import Corpus, Progress, first_weights

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StochasticDescent:
    """Minimises Σ -log p + l2 ‖w‖² [S4.134-135].

    It stops when the loss fell by less than `delta` (relative) over the last `period` epochs.

    The first rate is the one, among rate · factor^k, after which a pass over some sentences leaves the lowest loss.
    """

    l2: float = 1.0
    max_epochs: int = 1000
    period: int = 10
    delta: float = 1e-6
    rate: float = 0.1
    factor: float = 2.0
    n_sentences: int = 1000
    n_candidates: int = 10
    max_trials: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.l2 > 0:
            raise ScoreError(f"c2 must be above 0 here, as the rate follows from it; got {self.l2:g}; give 0.001")

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        """One `Progress` an epoch."""
        order, random = np.flatnonzero(corpus.rows.lengths), np.random.default_rng(self.seed)
        run = _Run.of(corpus, parameters, self.l2 / max(len(order), 1), first_weights(parameters, self.seed))
        random.shuffle(order)
        first_clock = self._calibrated(run, order[: self.n_sentences])
        weights, clock, losses = run.first.copy(), Clock(1.0, 0.0, first_clock), list[float]()
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            loss, clock = run(order, weights, clock)
            losses.append(loss + self.l2 * clock.scale**2 * float(weights @ weights))
            yield Progress(number, clock.scale * weights, losses[-1] / max(len(order), 1))
            if number > self.period and losses[-1 - self.period] - losses[-1] < self.delta * abs(losses[-1]):
                return

    def _calibrated(self, run: _Run, order: Array) -> float:
        """The first clock that makes the best of the rates tried; higher ones first, then lower ones."""
        best, best_rate, found, up, rate = np.inf, self.rate, 0, True, self.rate
        start = run.loss_at_start(order)
        for _ in range(self.max_trials):
            weights = run.first.copy()
            loss, clock = run(order, weights, Clock(1.0, 0.0, 1.0 / (2 * run.l2 * rate)))
            loss += self.l2 * clock.scale**2 * float(weights @ weights) * len(order) / max(len(run.rows.lengths), 1)
            if np.isfinite(loss) and loss < start:
                found += 1
                if loss < best:
                    best, best_rate = loss, rate
            elif up:
                up, rate = False, self.rate
            if found >= self.n_candidates:
                break
            rate = rate * self.factor if up else rate / self.factor
        return 1.0 / (2 * run.l2 * best_rate)


@dataclass(frozen=True)
class _Run:
    """Passes over one corpus; `l2` is the share of one sentence."""

    rows: AttributeRows
    observed: Observed
    parameters: Parameters
    l2: float
    first: Array
    edges: EdgeRows
    room: Room

    @classmethod
    def of(cls, corpus: Corpus, parameters: Parameters, l2: float, first: Array) -> _Run:
        rows, shares = corpus.rows, corpus.sentence_weights
        edges = edge_rows(rows, parameters)
        gold, sets = StateSpace.of(parameters).gold(corpus.gold, corpus.sets, follows(rows))
        shares = np.ones(len(rows.lengths)) if shares is None else shares.astype(np.float64)
        room = room_for(int(rows.lengths.max(initial=0)), parameters.n_labels, bool(len(edges.ids)))
        return cls(rows, Observed(gold, sets, shares), parameters, l2, first, edges, room)

    def loss_at_start(self, order: Array) -> float:
        """The loss of these sentences if every labelling were as likely as any other."""
        sets, gold = self.observed.sets, self.observed.gold
        sizes = np.append(sets.sum(1)[::-1], np.ones(self.parameters.n_labels))  # of the codes, lowest first
        free = np.log(self.parameters.n_labels) - np.log(sizes[gold + len(sets)])
        totals = np.diff(np.concatenate([[0.0], np.cumsum(free)])[self.rows.starts])
        return float((self.observed.shares * totals)[order].sum())

    def __call__(self, order: Array, weights: Array, clock: Clock) -> tuple[float, Clock]:
        found: tuple[float, Clock] = sgd_epoch(
            order, self.rows.arrays, self.parameters.weight_index, self.edges, self.observed, self.room, weights,
            clock, self.l2,
        )  # fmt: skip
        return found
