"""From settings to a learner, and from a corpus to weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.hidden_units.learning import HiddenUnitLearner
from trelliswork.models.taggers.features.learners.base import Corpus, Learner, Progress
from trelliswork.models.taggers.features.learners.config import PROBABILISTIC, Algorithm, LearningConfig
from trelliswork.models.taggers.features.learners.counting import Counting
from trelliswork.models.taggers.features.learners.herding import Herding
from trelliswork.models.taggers.features.learners.likelihood import LikelihoodLearner
from trelliswork.models.taggers.features.learners.margin import MarginLearner
from trelliswork.models.taggers.features.learners.online import OnlineLearner
from trelliswork.models.taggers.features.learners.posterior import Posterior
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.runtime.arrays import Array
from trelliswork.training.lbfgs import LBFGS
from trelliswork.training.together import OneProcess

ON_PAIRS = ("lbfgs", "sgd", "perceptron", "pa", "arow")  # know weights of (attribute, label before, label)


def learn(
    rows: AttributeRows,
    gold: Array,
    parameters: Parameters,
    config: LearningConfig,
    *,
    sentence_weights: Array | None = None,
) -> Iterator[Progress]:
    """Yield one `Progress` an iteration; the last has the weights that were learned.

    Args:
        rows: attributes of the tokens.
        gold: a label for each token, or a code of `sets`, [tokens].
        parameters: the weights that there are.
        config: the settings of learning.
        sentence_weights: how much each sentence counts; 1 if None.

    Returns:
        The progress.
    """
    return learn_from(Corpus(rows, gold, sentence_weights), parameters, config)


def learn_from(
    corpus: Corpus, parameters: Parameters, config: LearningConfig, start: Array | None = None
) -> Iterator[Progress]:
    """Return the same from a corpus. Hidden units may have a `start`.

    Args:
        corpus: the data to learn from.
        parameters: the weights that there are.
        config: the settings of learning.
        start: the first weights, of hidden units.

    Returns:
        The progress.
    """
    _check_fit(config, corpus, parameters)
    learner: Learner = learner_of(config) if start is None else replace(hidden_unit_learner(config), start=start)
    return learner.learn(corpus, parameters)


def check_together(config: LearningConfig, together: OneProcess) -> None:
    """Refuse what several processes cannot learn together."""
    if together.alone:
        return
    kind = kind_of(config.model)
    refused = {
        f"--model {config.model}": kind.counted,
        "hidden units": config.hidden_units > 0,
        f"--algorithm {config.algorithm}": config.algorithm not in PROBABILISTIC,
        "--samples": config.samples > 0,
        "--induce": config.induce > 0,
    }
    for what, is_asked in refused.items():
        if is_asked:
            fix = "start one process, or choose --algorithm lbfgs or sgd without samples, hidden units and induction"
            raise ScoreError(f"{what} cannot be learned by several processes, got {together.size}; {fix}")


def learner_of(config: LearningConfig) -> Learner:
    """Return the learner that the settings ask for."""
    if kind_of(config.model).counted:
        return Counting(config.smoothing)
    return hidden_unit_learner(config) if config.hidden_units else _LEARNERS[config.algorithm](config)


def _lbfgs(config: LearningConfig) -> LikelihoodLearner:
    local = kind_of(config.model).normalised == "locally" or config.model == "logistic"
    minimiser = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
    posterior = Posterior(config.samples, config.posterior, config.temperature, config.seed) if config.samples else None
    return LikelihoodLearner(minimiser, local, posterior, config.seed)


_LEARNERS: dict[Algorithm, Callable[[LearningConfig], Learner]] = {
    "lbfgs": _lbfgs,
    "sgd": lambda c: StochasticDescent(
        l2=c.c2, max_epochs=c.max_iterations or 100, seed=c.seed, batch=c.batch_sentences
    ),
    "perceptron": lambda c: OnlineLearner("perceptron", max_epochs=c.max_iterations or 50, seed=c.seed),
    "pa": lambda c: OnlineLearner("pa-1", max_epochs=c.max_iterations or 50, seed=c.seed),
    "arow": lambda c: OnlineLearner("arow", max_epochs=c.max_iterations or 50, seed=c.seed),
    "margin": lambda c: MarginLearner(c2=c.c2, max_epochs=c.max_iterations or 30, seed=c.seed),
    "herding": lambda c: Herding(max_epochs=c.max_iterations or 50, seed=c.seed, samples=c.samples),
}


def hidden_unit_learner(config: LearningConfig) -> HiddenUnitLearner:
    """Return the learner; rare attributes begin without a say, as random weights of theirs would only be noise."""
    epochs = config.max_iterations or 15
    return HiddenUnitLearner(l2=config.c2, max_epochs=epochs, seed=config.seed, spread_w=0.0, spread_v=0.5)


def parameters_of(
    corpus: Corpus, n_attributes: int, n_labels: int, config: LearningConfig, *, arcs: bool = True
) -> Parameters:
    """Return the weights that the settings ask for, for labels as they are seen; without `arcs` none of neighbours.

    Args:
        corpus: the data to learn from.
        n_attributes: number of attributes.
        n_labels: number of labels.
        config: the settings of learning.
        arcs: whether neighbouring labels have weights.

    Returns:
        The weights.
    """
    rows, gold, sets, every, together = corpus.rows, corpus.gold, corpus.sets, config.all_states, corpus.where.together
    parameters = Parameters.of(
        rows, gold, n_attributes, n_labels, all_states=every, all_transitions=config.all_transitions, sets=sets
    )
    parameters = parameters.with_pairs(rows, gold, corpus.on_pairs, every=every, sets=sets).united(together.union)
    parameters = parameters.frequent(rows, gold, config.min_count, sets, together.sums)
    parameters = parameters.common(rows, config.cutoff, together.sums)
    parameters = parameters.within(corpus.legal)
    return parameters if arcs else replace(parameters, arcs=parameters.arcs[:0])


def _check_fit(config: LearningConfig, corpus: Corpus, parameters: Parameters) -> None:
    """Refuse data that an algorithm cannot learn from."""
    if parameters.n_pairs:
        _check_pairs(config, parameters)
    if config.hidden_units:
        check_complete("that of hidden units", corpus, PROBABILISTIC)
    if config.model != "crf":
        check_complete(config.model, corpus, ["lbfgs of the model crf"])
    if config.algorithm not in PROBABILISTIC:
        check_complete(config.algorithm, corpus, PROBABILISTIC)


def _check_pairs(config: LearningConfig, parameters: Parameters) -> None:
    """Refuse templates that look at two labels where only one can be looked at."""
    templates = "templates such as B01:%x[0,1] need"
    if parameters.order == 2:
        raise ScoreError(f"{templates} order 1; got 2; write B alone or leave out the order")
    if config.algorithm not in ON_PAIRS or config.samples:
        got = f"{config.algorithm} with {config.samples} samples" if config.samples else config.algorithm
        wanted = f"the algorithm {', '.join(ON_PAIRS)} without samples"
        raise ScoreError(f"{templates} {wanted}; got {got}; write B alone or choose another")
    if config.model != "crf":
        raise ScoreError(f"{templates} the model crf; got {config.model}; write B alone or choose it")


def check_complete(algorithm: str, corpus: Corpus, others: Sequence[str]) -> None:
    """Refuse unknown labels and sentence weights, which only `others` can learn from.

    Args:
        algorithm: the one that is chosen.
        corpus: the data to learn from.
        others: those that can learn from such data.
    """
    if len(corpus.gold) and corpus.gold.min() < 0:
        got = f"labels that are not known need the algorithm {' or '.join(others)}; got {algorithm}"
        raise ScoreError(f"{got}; label all tokens or choose another")
    if corpus.sentence_weights is not None:
        got = f"sentence weights need the algorithm {' or '.join(others)}; got {algorithm}"
        raise ScoreError(f"{got}; leave them out or choose another")


def check_weights(weights: ArrayLike, n_sentences: int) -> Array:
    """Return sentence weights as an array; one finite number that is not negative for each sentence."""
    try:
        shares = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise ScoreError(
            f"weights must be numbers, one for each of {n_sentences} sentences; got {weights!r}"
        ) from error
    if shares.shape != (n_sentences,):
        raise ScoreError(f"weights must be {n_sentences} numbers, one per sentence; got the shape {shares.shape}")
    bad = np.flatnonzero(~((shares >= 0) & (shares < np.inf)))
    if len(bad):
        raise ScoreError(f"weights must be at least 0 and finite; got {shares[bad[0]]:g} for sentence {bad[0] + 1}")
    return shares
