"""From a corpus of attributes to weights, by any of the learners."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.hidden_units.learning import HiddenUnitLearner
from trelliswork.models.taggers.features.hidden_units.parameters import HiddenParameters
from trelliswork.models.taggers.features.learners.config import PROBABILISTIC, LearningConfig
from trelliswork.models.taggers.features.learners.counting import log_frequencies
from trelliswork.models.taggers.features.learners.herding import Herding
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.learners.margin import MarginLearner
from trelliswork.models.taggers.features.learners.online import OnlineLearner, Rule
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
Objective = Callable[[Array], tuple[float, Array]]  # loss and gradient
ON_PAIRS = ("lbfgs", "sgd", "perceptron", "pa", "arow")  # know weights of (attribute, label before, label)
SPREAD = 0.1  # of the first weights of latent states


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one.

    `measures` are further figures by name; `samples` [members, weights] are there if the settings ask for them.
    """

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: Array | None = None


@dataclass(frozen=True)
class Corpus:
    """What there is to learn from; `gold` with `sets`, and `sentence_weights`, are as for `Likelihood`."""

    rows: AttributeRows
    gold: Array
    sentence_weights: Array | None = None
    sets: Array | None = None


def parameters_of(
    rows: AttributeRows,
    gold: Array,
    n_attributes: int,
    n_labels: int,
    config: LearningConfig,
    *,
    arcs: bool = True,
    sets: Array | None = None,
    on_pairs: Array | None = None,
) -> Parameters:
    """The weights that the settings ask for, for labels as they are seen; without `arcs` none between neighbours.

    `gold`, `sets` and `on_pairs` are as for `Parameters.of`.
    """
    found = Parameters.of(
        rows, gold, n_attributes, n_labels, all_states=config.all_states, all_transitions=config.all_transitions,
        sets=sets, on_pairs=on_pairs,
    )  # fmt: skip
    found = found.frequent(rows, gold, config.min_count, sets).common(rows, config.cutoff)
    return found if arcs else replace(found, arcs=found.arcs[:0])


def learn(
    rows: AttributeRows,
    gold: Array,
    parameters: Parameters,
    config: LearningConfig,
    *,
    sentence_weights: Array | None = None,
    sets: Array | None = None,
    start: Array | None = None,
) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned. Hidden units may have a `start`."""
    corpus = Corpus(rows, gold, sentence_weights, sets)
    _check_fit(config, corpus, parameters)
    if kind_of(config.model).counted:
        return iter([Progress(1, *log_frequencies(rows, gold, parameters, config.smoothing))])
    if isinstance(parameters, HiddenParameters):
        return _hidden_units(corpus, parameters, config, start)
    learner = _LEARNERS.get(config.algorithm, _online)
    return learner(corpus, parameters, config)


def _lbfgs(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    learner = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
    likelihood = _objective(corpus, parameters, config)
    start = _start(parameters, config.seed)
    rows = corpus.rows if config.samples else None
    del corpus  # the likelihood has its own
    progress = Progress(0, start, float("nan"))
    for step in learner.minimise(likelihood, start):
        progress = Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
        yield progress
    if rows is not None:
        from trelliswork.models.taggers.features.learners.posterior import curvature, draw

        curved = curvature(rows, parameters, progress.weights)
        found = draw(
            likelihood, config.c2, progress.weights, curved, config.samples, config.posterior, config.seed,
            config.temperature,
        )  # fmt: skip
        yield replace(progress, samples=found)


def _objective(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Objective:
    if kind_of(config.model).normalised == "locally" or config.model == "logistic":
        from trelliswork.models.taggers.features.learners.local_likelihood import LocalLikelihood

        return LocalLikelihood(corpus.rows, corpus.gold, parameters)
    return Likelihood(corpus.rows, corpus.gold, parameters, corpus.sentence_weights, corpus.sets)


def _sgd(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    learner = StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    epochs = learner.learn(
        corpus.rows, corpus.gold, parameters, sentence_weights=corpus.sentence_weights, sets=corpus.sets,
        start=_start(parameters, config.seed),
    )  # fmt: skip
    for epoch in epochs:
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def _margin(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    learner = MarginLearner(c2=config.c2, max_epochs=config.max_iterations or 30, seed=config.seed)
    for epoch in learner.learn(corpus.rows, corpus.gold, parameters):
        yield Progress(epoch.number, epoch.weights, epoch.loss, measures={"gap": epoch.gap})


def _herding(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    learner = Herding(max_epochs=config.max_iterations or 50, seed=config.seed)
    voters: deque[Array] = deque(maxlen=config.samples)
    for epoch in learner.learn(corpus.rows, corpus.gold, parameters):
        voters.append(epoch.weights)
        measures = {"moment error": epoch.trajectory.moment_error}
        last = np.array(voters) if config.samples else None
        yield Progress(epoch.number, epoch.average, epoch.loss, measures=measures, samples=last)


def _online(corpus: Corpus, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    learner = OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
    for epoch in learner.learn(corpus.rows, corpus.gold, parameters):
        measures = {} if epoch.moment_error is None else {"moment error": epoch.moment_error}
        yield Progress(epoch.number, epoch.weights, epoch.loss, measures=measures)


def _hidden_units(
    corpus: Corpus, parameters: HiddenParameters, config: LearningConfig, start: Array | None
) -> Iterator[Progress]:
    for epoch in hidden_unit_learner(config).learn(corpus.rows, corpus.gold, parameters, start):
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def hidden_unit_learner(config: LearningConfig) -> HiddenUnitLearner:
    """Rare attributes begin without a say, as random weights of theirs would only be noise."""
    epochs = config.max_iterations or 15
    return HiddenUnitLearner(l2=config.c2, max_epochs=epochs, seed=config.seed, spread_w=0.0, spread_v=0.5)


_LEARNERS = {"lbfgs": _lbfgs, "sgd": _sgd, "margin": _margin, "herding": _herding}


def _start(parameters: Parameters, seed: int) -> Array:
    """Weights of 0; small random ones where the states of a label would stay alike for ever."""
    if parameters.latent == 1:
        return np.zeros(len(parameters))
    return SPREAD * np.random.default_rng(seed).normal(size=len(parameters))


def _check_fit(config: LearningConfig, corpus: Corpus, parameters: Parameters) -> None:
    """Refuse data that an algorithm cannot learn from."""
    if parameters.n_pairs and parameters.order == 2:
        raise ScoreError("templates such as B01:%x[0,1] need order 1; got 2; write B alone or leave out the order")
    if parameters.n_pairs and (config.algorithm not in ON_PAIRS or config.samples):
        got = f"{config.algorithm} with {config.samples} samples" if config.samples else config.algorithm
        wanted = f"templates such as B01:%x[0,1] need the algorithm {', '.join(ON_PAIRS)} without samples"
        raise ScoreError(f"{wanted}; got {got}; write B alone or choose another")
    if config.hidden_units:
        check_complete("that of hidden units", corpus.gold, corpus.sentence_weights, PROBABILISTIC)
    if config.model != "crf":
        if parameters.n_pairs:
            got = "templates such as B01:%x[0,1] need the model crf"
            raise ScoreError(f"{got}; got {config.model}; write B alone or choose it")
        check_complete(config.model, corpus.gold, corpus.sentence_weights, ["lbfgs of the model crf"])
    if config.algorithm not in PROBABILISTIC:
        check_complete(config.algorithm, corpus.gold, corpus.sentence_weights, PROBABILISTIC)


def check_complete(algorithm: str, gold: Array, sentence_weights: Array | None, others: Sequence[str]) -> None:
    """Refuse unknown labels and sentence weights, which only `others` can learn from."""
    if len(gold) and gold.min() < 0:
        got = f"labels that are not known need the algorithm {' or '.join(others)}; got {algorithm}"
        raise ScoreError(f"{got}; label all tokens or choose another")
    if sentence_weights is not None:
        got = f"sentence weights need the algorithm {' or '.join(others)}; got {algorithm}"
        raise ScoreError(f"{got}; leave them out or choose another")


def check_weights(weights: Any, n_sentences: int) -> Array:
    """Sentence weights as an array; one finite number that is not negative for each sentence."""
    try:
        found = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise ScoreError(
            f"weights must be numbers, one for each of {n_sentences} sentences; got {weights!r}"
        ) from error
    if found.shape != (n_sentences,):
        raise ScoreError(f"weights must be {n_sentences} numbers, one a sentence; got the shape {found.shape}")
    bad = np.flatnonzero(~((found >= 0) & (found < np.inf)))
    if len(bad):
        raise ScoreError(f"weights must be at least 0 and finite; got {found[bad[0]]:g} for sentence {bad[0] + 1}")
    return found
