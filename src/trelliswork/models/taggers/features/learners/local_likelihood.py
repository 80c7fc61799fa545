"""The likelihood of models that are normalised token by token: logistic regression and the MEMM.

McCallum et al. (2000), Maximum entropy Markov models for information extraction and segmentation.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.observed import all_labels
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.plan import IN_MEMORY, Plan
from trelliswork.models.taggers.features.kernels.local import local_loss_and_gradient
from trelliswork.models.taggers.features.kernels.records import Observed
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch


class LocalLikelihood:
    """`loss, gradient = likelihood(weights)`: Σ -log p(y_t | y_{t-1}, x), without regularizer.

    Every label is judged given the gold label before it, so that sentences need no recursion. Without transitions it is
    logistic regression, the conditional twin of naive Bayes.
    """

    # [S4.68, 70]

    def __init__(self, rows: AttributeRows, gold: Array, parameters: Parameters, scratch: Scratch = IN_MEMORY) -> None:
        if len(gold) and gold.min() < 0:
            raise ScoreError("this model needs a label for every token; some are unknown; learn a crf from those")
        self.parameters, self.plan = parameters, Plan.of(rows, parameters, scratch)
        known = scratch.taken(gold, self.plan.tokens).astype(np.int64, copy=False)
        self._observed = Observed(known, all_labels(parameters.n_labels), np.ones(len(rows.lengths)))
        self._ranges = self.plan.shares(16 * parameters.n_labels)

    def __call__(self, weights: Array) -> tuple[float, Array]:
        c, chained = self.parameters.n_labels, len(self.parameters.arcs) > 0
        transitions = self.parameters.transitions(weights) if chained else np.zeros((c, c))
        planned = self.plan.spread_out(weights, transitions, np.empty(0))
        pass_over = partial(local_loss_and_gradient, rows=self.plan.rows, observed=self._observed, weights=planned)
        loss, sums = self.plan.add_up(pass_over, self._ranges)
        gradient = np.zeros(len(self.parameters))
        self.plan.collect(sums, gradient)
        gradient[self.parameters.n_states :] = sums.transitions[0, 0][tuple(self.parameters.arcs.T)]
        return loss, gradient
