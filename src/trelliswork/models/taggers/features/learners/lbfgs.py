"""L-BFGS on the regularised likelihood, and weights drawn from the posterior around its optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus, Progress, first_weights
from trelliswork.models.taggers.features.learners.likelihood import Likelihood, LocalLikelihood
from trelliswork.models.taggers.features.learners.posterior import Posterior, curvature
from trelliswork.runtime.arrays import Array
from trelliswork.training.lbfgs import LBFGS, Objective
from trelliswork.training.together import OneProcess


@dataclass(frozen=True)
class LikelihoodLearner:
    """Minimises Σ -log p and the regularizer of the `minimiser`; `local` judges each label given the one before."""

    minimiser: LBFGS = field(default_factory=LBFGS)
    local: bool = False
    posterior: Posterior | None = None
    seed: int = 0

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        together = corpus.where.together
        objective = Shared(self._objective(corpus, parameters), len(parameters), together)
        rows = corpus.rows if self.posterior is not None else None
        del corpus  # the objective has its own
        first = first_weights(parameters, self.seed)
        progress, minimiser = Progress(0, first, float("nan")), replace(self.minimiser, sums=together.sums)
        for step in minimiser.minimise(objective, together.own(first)):
            progress = Progress(step.iteration, objective.weights, step.loss, step.gradient_norm)
            yield progress
        if self.posterior is not None and rows is not None:
            curved = curvature(rows, parameters, progress.weights)
            samples = self.posterior.draw(objective, self.minimiser.l2, progress.weights, curved)
            yield replace(progress, samples=samples)

    def _objective(self, corpus: Corpus, parameters: Parameters) -> Objective:
        scratch = corpus.where.scratch
        if self.local:
            return LocalLikelihood(corpus.rows, corpus.gold, parameters, scratch)
        return Likelihood(corpus.rows, corpus.gold, parameters, corpus.sentence_weights, corpus.sets, scratch)


class Shared:
    """An objective over the data of all processes, each of which looks after its own part of the weights.

    `weights` are the whole ones that were asked for last. If the objective fails in one process, it fails in all.

    Args:
        own: the objective over the data of this process.
        n_weights: number of all weights.
        together: the processes.
    """

    def __init__(self, own: Objective, n_weights: int, together: OneProcess) -> None:
        self._own, self._together, self.weights = own, together, np.empty(n_weights)

    def __call__(self, part: Array) -> tuple[float, Array]:
        self.weights = self._together.joined(part, len(self.weights))
        gradients = list[Array]()
        loss = self._together.summed(lambda: self._loss(gradients))
        return loss, self._together.own_sum(gradients.pop())

    def _loss(self, gradients: list[Array]) -> float:
        """Return the loss of this process, whose gradient is added to the list."""
        loss, gradient = self._own(self.weights)
        gradients.append(gradient)
        return loss
