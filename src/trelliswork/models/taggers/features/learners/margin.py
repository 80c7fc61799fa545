"""Max-margin learning with cost-augmented decoding: the structured support vector machine.

The loss is Σ max_y [score(y) + Δ(y)] - score(gold) + c2 ‖w‖², Δ the number of wrong labels. Its dual is maximised one
sentence at a time by Frank-Wolfe steps with exact line search (Lacoste-Julien and others 2013); the dual value is a
bound from below, so that loss less bound, the gap, says how far from the minimum the weights can be at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.margin import Dual, frank_wolfe_epoch, hinge
from trelliswork.models.taggers.features.kernels.records import Moving
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True, kw_only=True)
class MarginEpoch(Progress):
    """With a bound that the loss of no weights can be below."""

    bound: float


@dataclass(frozen=True)
class MarginLearner:
    """Passes over the sentences in random order until gap ≤ tolerance · loss, or `max_epochs` are done.

    The weights of an epoch are the average of those after each sentence, later ones counting more.
    """

    c2: float = 1.0
    max_epochs: int = 100
    tolerance: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.c2 > 0:
            raise ScoreError(f"c2 must be above 0 here: without it the weights have no bound; got {self.c2:g}; give 1")

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[MarginEpoch]:
        """Yield one `MarginEpoch` a pass; the last has the weights that were learned."""
        rows, gold = corpus.rows, corpus.gold
        run = _Run(rows, gold, parameters)
        weights, sums, clock = np.zeros(len(parameters)), np.zeros(len(parameters)), 1.0
        moving, dual = Moving(weights, sums, np.empty(0)), run.dual_of_gold()
        order, random = np.flatnonzero(rows.lengths), np.random.default_rng(self.seed)
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            clock, _ = frank_wolfe_epoch(
                order, rows.arrays, parameters.weight_index, gold, moving, dual, clock, self.c2
            )
            bound = run.expected_cost(dual) - self.c2 * float(weights @ weights)
            average = weights - sums / max(clock * (clock - 1) / 2, 1.0)
            loss = run.hinge(average) + self.c2 * float(average @ average)
            yield MarginEpoch(number, average, loss, measures={"gap": loss - bound}, bound=bound)
            if loss - bound <= self.tolerance * loss:
                return


class _Run:
    """A corpus as the kernels take it."""

    def __init__(self, rows: AttributeRows, gold: Array, parameters: Parameters) -> None:
        self.rows, self.gold, self.parameters = rows, gold, parameters

    def dual_of_gold(self) -> Dual:
        """Return dual variables that are all on the gold labels."""
        rows, gold = self.rows, self.gold
        shares = np.zeros((rows.n_tokens, self.parameters.n_labels))
        shares[np.arange(rows.n_tokens), gold] = 1.0
        arc_shares = np.zeros((len(rows.lengths), len(self.parameters.arcs)))
        sentence = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
        after = np.flatnonzero(sentence[1:] == sentence[:-1]) + 1
        places = self.parameters.weight_index.places[gold[after - 1], gold[after]]
        known = places >= 0
        np.add.at(arc_shares, (sentence[after][known], places[known] - self.parameters.n_states), 1.0)
        return Dual(shares, arc_shares)

    def expected_cost(self, dual: Dual) -> float:
        """Return Σ Δ under the dual variables."""
        return float((1.0 - dual.labels[np.arange(len(self.gold)), self.gold]).sum())

    def hinge(self, weights: Array) -> float:
        """Return Σ max_y [score(y) + Δ(y)] - score(gold)."""
        order = np.flatnonzero(self.rows.lengths)
        return float(hinge(order, self.rows.arrays, self.parameters.weight_index, self.gold, weights))
