"""Stochastic gradient descent on the regularised likelihood, with the rate found by trial [S4.134-135]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.feature_crf.online import Epoch
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.sgd_kernels import sgd_epoch

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

    def learn(self, rows: AttributeRows, gold: Array, parameters: Parameters) -> Iterator[Epoch]:
        order, random = np.flatnonzero(rows.lengths), np.random.default_rng(self.seed)
        run = _Run(rows, gold, parameters, self.l2 / max(len(order), 1))
        random.shuffle(order)
        first_clock = self._calibrated(run, order[: self.n_sentences])
        weights, scale, clock, losses = np.zeros(len(parameters)), 1.0, 0.0, list[float]()
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            loss, scale, clock = run(order, weights, scale, clock, first_clock)
            losses.append(loss + self.l2 * scale * scale * float(weights @ weights))
            yield Epoch(number, scale * weights, losses[-1] / max(len(order), 1), float("nan"))
            if number > self.period and losses[-1 - self.period] - losses[-1] < self.delta * abs(losses[-1]):
                return

    def _calibrated(self, run: _Run, order: Array) -> float:
        """The first clock that makes the best of the rates tried; higher ones first, then lower ones."""
        best, best_rate, found, up, rate = np.inf, self.rate, 0, True, self.rate
        start = _loss_at_zero(run, order)
        for _ in range(self.max_trials):
            weights = np.zeros(len(run.parameters))
            loss, scale, _ = run(order, weights, 1.0, 0.0, 1.0 / (2 * run.l2 * rate))
            loss += self.l2 * scale * scale * float(weights @ weights) * len(order) / max(len(run.rows.lengths), 1)
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


def _loss_at_zero(run: _Run, order: Array) -> float:
    return float(run.rows.lengths[order].sum() * np.log(run.parameters.n_labels))


@dataclass(frozen=True)
class _Run:
    """Passes over one corpus; `l2` is the share of one sentence."""

    rows: AttributeRows
    gold: Array
    parameters: Parameters
    l2: float

    def __call__(
        self, order: Array, weights: Array, scale: float, clock: float, first_clock: float
    ) -> tuple[float, float, float]:
        rows, parameters = self.rows, self.parameters
        values = np.empty(0) if rows.values is None else rows.values
        found: tuple[float, float, float] = sgd_epoch(
            parameters.n_labels, order, rows.lengths, rows.starts, rows.offsets, rows.ids, values, parameters.offsets,
            parameters.labels, parameters.arcs, self.gold, weights, scale, clock, first_clock, self.l2,
        )  # fmt: skip
        return found
