"""Stochastic gradient descent on the regularised likelihood, with the rate found by trial.

Bottou (2010), Large-scale machine learning with stochastic gradient descent.
"""  # [S4.134-135]

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.observed import follows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.plan import edge_rows
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.models.taggers.features.kernels.decoding import clear, no_change
from trelliswork.models.taggers.features.kernels.records import EdgeRows, Observed
from trelliswork.models.taggers.features.kernels.sets import Room, room_for
from trelliswork.models.taggers.features.kernels.sgd import Clock, add_sentences, sgd_epoch
from trelliswork.models.taggers.features.learners.base import Corpus, Progress, first_weights
from trelliswork.runtime.arrays import Array
from trelliswork.training.together import OneProcess

EACH = 64  # sentences of a step, for each of several processes
SMALLEST_SCALE = 1e-9


@dataclass(frozen=True)
class StochasticDescent:
    """Minimiser of Σ -log p + l2 ‖w‖².

    It stops when the loss fell by less than `delta` (relative) over the last `period` epochs.

    The first rate is the one, among rate · factor^k, after which a pass over some sentences leaves the lowest loss.
    A step takes `batch` sentences. Several processes share out the sentences of a step, and so do what one process with
    the same `batch` does; 0 is one sentence, or for several processes `EACH` in each of them.
    """

    # [S4.134-135]

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
    batch: int = 0

    def __post_init__(self) -> None:
        if not self.l2 > 0:
            raise ScoreError(f"c2 must be above 0 here, as the rate follows from it; got {self.l2:g}; give 0.001")

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        """Yield one `Progress` an epoch."""
        together = corpus.where.together
        order, random = np.flatnonzero(_lengths_of_all(corpus.rows.lengths, together)), np.random.default_rng(self.seed)
        batch = self.batch or (1 if together.alone else EACH * together.size)
        first = first_weights(parameters, self.seed)
        run = _Run.of(corpus, parameters, Steps(self.l2 / max(len(order), 1), batch), first)
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
        """Return the first clock that makes the best of the rates tried; higher ones first, then lower ones."""
        best, best_rate, n_good, up, rate = np.inf, self.rate, 0, True, self.rate
        start = run.loss_at_start(order)
        for _ in range(self.max_trials):
            weights = run.first.copy()
            loss, clock = run(order, weights, Clock(1.0, 0.0, 1.0 / (2 * run.steps.l2 * rate)))
            loss += self.l2 * clock.scale**2 * float(weights @ weights) * len(order) / max(run.n_sentences, 1)
            if np.isfinite(loss) and loss < start:
                n_good += 1
                if loss < best:
                    best, best_rate = loss, rate
            elif up:
                up, rate = False, self.rate
            if n_good >= self.n_candidates:
                break
            rate = rate * self.factor if up else rate / self.factor
        return 1.0 / (2 * run.steps.l2 * best_rate)


class Steps(NamedTuple):
    """The L2 term of one sentence, and how many sentences a step has."""

    l2: float
    batch: int


@dataclass(frozen=True)
class _Run:
    """Passes over the sentences of all processes, which are numbered as a single one numbers them."""

    rows: AttributeRows
    observed: Observed
    parameters: Parameters
    steps: Steps
    first: Array
    edges: EdgeRows
    room: Room
    together: OneProcess
    n_sentences: int

    @classmethod
    def of(cls, corpus: Corpus, parameters: Parameters, steps: Steps, first: Array) -> _Run:
        rows, shares, together = corpus.rows, corpus.sentence_weights, corpus.where.together
        edges = edge_rows(rows, parameters)
        gold, sets = StateSpace.of(parameters).gold(corpus.gold, corpus.sets, follows(rows))
        shares = np.ones(len(rows.lengths)) if shares is None else shares.astype(np.float64)
        room = room_for(int(rows.lengths.max(initial=0)), parameters.n_labels, bool(len(edges.ids)))
        n_sentences = int(together.total(len(rows.lengths)))
        return cls(
            rows, Observed(gold, sets, shares), parameters, steps, first, edges, room, together, n_sentences
        )  # fmt: skip

    def _own(self, order: Array) -> Array:
        """Return those of some sentences that this process has, by its own numbers."""
        together = self.together
        return order if together.alone else order[order % together.size == together.rank] // together.size

    def loss_at_start(self, order: Array) -> float:
        """Return the loss of these sentences if every labelling were as likely as any other."""
        sets, gold = self.observed.sets, self.observed.gold
        sizes = np.append(sets.sum(1)[::-1], np.ones(self.parameters.n_labels))  # of the codes, lowest first
        free = np.log(self.parameters.n_labels) - np.log(sizes[gold + len(sets)])
        totals = np.diff(np.concatenate([[0.0], np.cumsum(free)])[self.rows.starts])
        return self.together.total(float((self.observed.shares * totals)[self._own(order)].sum()))

    def __call__(self, order: Array, weights: Array, clock: Clock) -> tuple[float, Clock]:
        """Move the weights; the loss of the sentences as they were met, and the clock after them."""
        if self.steps.batch > 1:
            return self._in_batches(order, weights, clock)
        loss_and_clock: tuple[float, Clock] = sgd_epoch(
            order, self.rows.arrays, self.parameters.weight_index, self.edges, self.observed, self.room, weights,
            clock, self.steps.l2,
        )  # fmt: skip
        return loss_and_clock

    def _in_batches(self, order: Array, weights: Array, clock: Clock) -> tuple[float, Clock]:
        loss, change, (l2, batch) = 0.0, no_change(len(weights)), self.steps
        for first in range(0, len(order), batch):
            some = order[first : first + batch]
            loss += add_sentences(
                self._own(some), self.rows.arrays, self.parameters.weight_index, self.edges, self.observed, self.room,
                weights, clock.scale, change,
            )  # fmt: skip
            touched = change.touched[: change.n_touched[0]].astype(np.int32)
            parts = self.together.parts(touched, change.amounts[touched], len(weights))
            rate = 1.0 / (2.0 * l2 * (clock.first + clock.now + len(some) - 1))
            scale = clock.scale * (1.0 - 2.0 * l2 * rate * len(some))
            for places, amounts in parts:
                weights[places] -= rate / scale * amounts
            clear(change)
            if scale < SMALLEST_SCALE:
                weights *= scale
                scale = 1.0
            clock = Clock(scale, clock.now + len(some), clock.first)
        return self.together.total(loss), clock


def _lengths_of_all(lengths: Array, together: OneProcess) -> Array:
    """Return the length of every sentence, those of each process in turn."""
    each = together.each(lengths)
    of_all = np.empty(sum(map(len, each)), np.int64)
    for rank, own in enumerate(each):
        of_all[rank :: len(each)] = own
    return of_all
