"""The negative log-likelihood of a corpus under a feature CRF with its gradient, and L-BFGS on it.

Lafferty, McCallum and Pereira (2001), Conditional random fields: probabilistic models for segmenting and labeling
sequence data.
"""  # [S4.113-120]

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.array_chain import Listed
from trelliswork.models.taggers.features.crf.observed import all_labels, follows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.plan import IN_MEMORY, Plan, edge_rows
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.models.taggers.features.kernels import likelihood as kernels
from trelliswork.models.taggers.features.kernels import sets as set_kernels
from trelliswork.models.taggers.features.kernels import sparse_likelihood as sparse_kernels
from trelliswork.models.taggers.features.kernels.local import local_loss_and_gradient
from trelliswork.models.taggers.features.kernels.records import Observed, PlannedWeights
from trelliswork.models.taggers.features.learners.base import Corpus, Progress, first_weights
from trelliswork.models.taggers.features.learners.posterior import Posterior, curvature
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch
from trelliswork.training.lbfgs import LBFGS, Objective
from trelliswork.training.together import OneProcess


class Likelihood:
    """`loss, gradient = likelihood(weights)`, without regularizer.

    `gold` has one label a token, or codes for labels that are not known, with `sets` (see `observed`): the loss is
    Σ_s weights_s (log Z_s - log Z_s of the labels that gold allows). So it is with latent variables, where
    gold allows every state of its label. What grows with the data is in `scratch`.

    Args:
        rows: attributes of the tokens.
        gold: a label for each token, or a code of `sets`, [tokens].
        parameters: the weights that there are.
        sentence_weights: how much each sentence counts, [sentences]; 1 if None.
        sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.
        scratch: the place of what grows with the data.
    """

    # [S4.128-133]

    def __init__(
        self,
        rows: AttributeRows,
        gold: Array,
        parameters: Parameters,
        sentence_weights: Array | None = None,
        sets: Array | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> None:
        self.parameters, self._space = parameters, StateSpace.of(parameters)
        self.plan = Plan.of(rows, parameters, scratch)
        codes, sets = self._space.gold(gold, sets, follows(rows))
        weights = np.ones(len(rows.lengths)) if sentence_weights is None else sentence_weights.astype(np.float64)
        known = scratch.taken(codes, self.plan.tokens).astype(np.int64, copy=False)
        self._observed = Observed(known, sets, weights[self.plan.order])
        self._edges = edge_rows(rows, parameters, self.plan.tokens)
        self.listed = Listed.of(parameters) if len(codes) and int(codes.min()) >= 0 else None
        self._plain = self._space.is_plain and not parameters.n_pairs and (not len(codes) or int(codes.min()) >= 0)
        self._ranges = self.plan.shares(self._space.c**2 if self.listed is None else 4 * len(self.listed.owners))

    def __call__(self, weights: Array) -> tuple[float, Array]:
        parameters, arcs = self.parameters, weights[self.parameters.arc_weights]
        transitions = self._space.transitions(arcs) if self.listed is None else self.listed.scores(arcs)[None]
        pairs = np.ascontiguousarray(weights[parameters.pair_weights])
        planned = self.plan.spread_out(weights, transitions, pairs)
        loss, sums = self.plan.add_up(partial(self._pass_over, planned), self._ranges)
        gradient = np.zeros(len(parameters))
        self.plan.collect(sums, gradient)
        if self.listed is None:
            gradient[parameters.arc_weights] = self._space.collect(sums.transitions)
        else:
            gradient[parameters.arc_weights][self.listed.owners] = sums.transitions.ravel()
        gradient[parameters.pair_weights] = sums.pairs
        return loss, gradient

    def _pass_over(self, weights: PlannedWeights, first: int, last: int) -> tuple[float, PlannedWeights]:
        rows, space, ends = self.plan.rows, self._space, (self._space.start, self._space.end)
        if self.listed is not None:
            return sparse_kernels.loss_and_gradient(first, last, rows, self._observed, weights, self.listed.arcs)
        if self._plain:
            return kernels.loss_and_gradient(first, last, rows, self._observed, weights, ends)
        longest = int(rows.lengths[first:last].max(initial=0))
        room = set_kernels.room_for(longest, space.c, bool(len(self._edges.ids)))
        return set_kernels.loss_and_gradient(
            first, last, rows, self._edges, self._observed, weights, space.columns, ends, room
        )


# Models that are normalised token by token: logistic regression and the MEMM. McCallum et al. (2000), Maximum entropy
# Markov models for information extraction and segmentation.


class LocalLikelihood:
    """`loss, gradient = likelihood(weights)`: Σ -log p(y_t | y_{t-1}, x), without regularizer.

    Every label is judged given the gold label before it, so that sentences need no recursion. Without transitions it is
    logistic regression, the conditional twin of naive Bayes.

    Args:
        rows: attributes of the tokens.
        gold: the label of each token.
        parameters: the weights that there are.
        scratch: the place of what grows with the data.
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


# L-BFGS on the regularised likelihood, and weights drawn from the posterior around its optimum.


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
