"""Learners that look at one sentence at a time: perceptron, passive-aggressive, AROW."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.plan import edge_rows
from trelliswork.models.taggers.features.kernels.online import Update, epoch
from trelliswork.models.taggers.features.kernels.records import Moving
from trelliswork.models.taggers.features.learners.base import Corpus, Progress

Rule = Literal["perceptron", "pa", "pa-1", "pa-2", "arow"]
UPDATES: dict[Rule, Update] = {
    "perceptron": Update.PERCEPTRON,
    "pa": Update.PASSIVE_AGGRESSIVE,
    "pa-1": Update.PASSIVE_AGGRESSIVE_1,
    "pa-2": Update.PASSIVE_AGGRESSIVE_2,
    "arow": Update.AROW,
}
RULES: tuple[Rule, ...] = tuple(UPDATES)


@dataclass(frozen=True)
class OnlineLearner:
    """Passes over the sentences in random order until the mean loss is below `epsilon` or `max_epochs` are done."""

    rule: Rule = "perceptron"
    max_epochs: int = 100
    epsilon: float = 0.0
    averaging: bool = True
    aggressiveness: float = 1.0  # C of PA-I and PA-II, r of AROW
    error_sensitive: bool = True
    variance: float = 1.0
    seed: int = 0

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        """Yield one `Progress` an epoch; the perceptron also tells its moment error (see `herding.Trajectory`)."""
        rows, weights, sums = corpus.rows, np.zeros(len(parameters)), np.zeros(len(parameters))
        variance = np.full(len(parameters) if self.rule == "arow" else 1, self.variance)
        moving, edges = Moving(weights, sums, variance), edge_rows(rows, parameters)
        order, random = np.flatnonzero(rows.lengths), np.random.default_rng(self.seed)
        clock, measures = 1.0, dict[str, float]()
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            total, clock, _ = epoch(
                order, rows.arrays, parameters.weight_index, edges, corpus.gold, moving, clock, UPDATES[self.rule],
                self.aggressiveness, self.error_sensitive,
            )  # fmt: skip
            average = weights - sums / clock if self.averaging and self.rule != "arow" else weights.copy()
            loss = total / max(len(order), 1)
            if self.rule == "perceptron":
                measures = {"moment error": float(np.linalg.norm(weights)) / (clock - 1)}  # [S4.222]
            yield Progress(number, average, loss, measures=measures)
            if loss < self.epsilon:
                return
