"""Learners that look at one sentence at a time: perceptron, passive-aggressive, AROW."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.crf.edges import edge_rows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.online import Update, epoch
from trelliswork.models.taggers.features.kernels.records import Moving

Array = np.ndarray[Any, Any]
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
class Epoch:
    """The weights after a pass (their average over all steps, if asked for) and how it went."""

    number: int
    weights: Array
    loss: float  # mean over sentences
    accuracy: float  # of labels, while learning
    moment_error: float | None = None  # of the perceptron: see `cycling`


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

    def learn(self, rows: AttributeRows, gold: Array, parameters: Parameters) -> Iterator[Epoch]:
        weights, sums = np.zeros(len(parameters)), np.zeros(len(parameters))
        variance = np.full(len(parameters) if self.rule == "arow" else 1, self.variance)
        moving, edges = Moving(weights, sums, variance), edge_rows(rows, parameters)
        order, random = np.flatnonzero(rows.lengths), np.random.default_rng(self.seed)
        clock = 1.0
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            total, clock, n_wrong = epoch(
                order, rows.arrays, parameters.weight_index, edges, gold, moving, clock, UPDATES[self.rule],
                self.aggressiveness, self.error_sensitive,
            )  # fmt: skip
            average = weights - sums / clock if self.averaging and self.rule != "arow" else weights.copy()
            loss = total / max(len(order), 1)
            moment_error = (
                float(np.linalg.norm(weights)) / (clock - 1) if self.rule == "perceptron" else None
            )  # [S4.222]
            yield Epoch(number, average, loss, 1.0 - n_wrong / max(len(gold), 1), moment_error)
            if loss < self.epsilon:
                return
