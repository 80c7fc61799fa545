"""L-BFGS on the regularised likelihood, and weights drawn from the posterior around its optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus, Progress, first_weights
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.learners.local_likelihood import LocalLikelihood
from trelliswork.models.taggers.features.learners.posterior import Posterior, curvature
from trelliswork.training.lbfgs import LBFGS, Objective


@dataclass(frozen=True)
class LikelihoodLearner:
    """Minimises Σ -log p and the regularizer of the `minimiser`; `local` judges each label given the one before."""

    minimiser: LBFGS = field(default_factory=LBFGS)
    local: bool = False
    posterior: Posterior | None = None
    seed: int = 0

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[Progress]:
        objective = self._objective(corpus, parameters)
        rows = corpus.rows if self.posterior is not None else None
        del corpus  # the objective has its own
        progress = Progress(0, first_weights(parameters, self.seed), float("nan"))
        for step in self.minimiser.minimise(objective, progress.weights):
            progress = Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
            yield progress
        if self.posterior is not None and rows is not None:
            curved = curvature(rows, parameters, progress.weights)
            samples = self.posterior.draw(objective, self.minimiser.l2, progress.weights, curved)
            yield replace(progress, samples=samples)

    def _objective(self, corpus: Corpus, parameters: Parameters) -> Objective:
        if self.local:
            return LocalLikelihood(corpus.rows, corpus.gold, parameters)
        return Likelihood(corpus.rows, corpus.gold, parameters, corpus.sentence_weights, corpus.sets)
