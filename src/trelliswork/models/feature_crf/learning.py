"""From a corpus of attributes to weights, by any of the learners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from trelliswork.data.attributes import AttributeRows, HashedIndex
from trelliswork.errors import ScoreError
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.online import OnlineLearner, Rule
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.sgd import StochasticDescent
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow")
ON_PAIRS = ("lbfgs", "sgd", "perceptron", "pa", "arow")  # know weights of (attribute, label before, label)
SPREAD = 0.1  # of the first weights of latent states
PROBABILISTIC = ("lbfgs", "sgd")  # know what an unknown label is, and a sentence that counts twice


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as CRFsuite has it).

    `min_count` leaves out rare pairs (attribute with label, label with label), as CRFsuite's feature.minfreq does;
    `cutoff` rare attributes, whatever their labels, as CRF++'s -f does. With `hash_bits` attributes are numbered by
    2^bits hashes and no names are kept. `induce` so many conjunctions of attributes are added (see `induction`).
    """

    algorithm: Algorithm = "lbfgs"
    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int | None = None
    min_count: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    seed: int = 0
    cutoff: int = 0
    hash_bits: int | None = None
    induce: int = 0
    latent: int = 1  # states of each label, which the data does not show [S4.128]
    order: int = 1  # labels before a label that its score looks at

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {self.algorithm!r}")
        if self.c1 and self.algorithm != "lbfgs":
            raise ScoreError(f"c1 needs the algorithm lbfgs; got {self.algorithm}")
        check_settings(self.c1, self.c2, self.max_iterations)
        check_attribute_settings(self.cutoff, self.hash_bits, self.induce)
        if self.latent < 1:
            raise ScoreError(f"latent must be at least 1, the number of states of each label; got {self.latent}")
        if self.order not in (1, 2):
            raise ScoreError(f"order must be 1 or 2; got {self.order}")
        if self.latent > 1 and (self.order == 2 or self.algorithm not in PROBABILISTIC):
            got = f"{self.algorithm} with order {self.order}"
            raise ScoreError(f"latent needs the algorithm {' or '.join(PROBABILISTIC)} and order 1; got {got}")
        if self.order == 2 and self.algorithm != "lbfgs":
            raise ScoreError(f"order 2 needs the algorithm lbfgs; got {self.algorithm}")
        if self.algorithm == "sgd" and self.c2 == 0:
            raise ScoreError("c2 must be above 0 for the algorithm sgd, whose rate follows from it; got 0; give 0.001")


def check_settings(c1: float, c2: float, max_iterations: int | None) -> None:
    """Refuse what no learner can work with."""
    for name, value in (("c1", c1), ("c2", c2)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be at least 0 and finite; got {value:g}")
    if max_iterations is not None and max_iterations < 1:
        raise ScoreError(f"max_iterations must be at least 1; got {max_iterations}; leave it out for no limit")


def check_attribute_settings(cutoff: int, hash_bits: int | None, induce: int) -> None:
    """Refuse what no attributes can be made by."""
    for name, value in (("cutoff", cutoff), ("induce", induce)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be a whole number from 0 on; got {value}")
    if hash_bits is not None:
        HashedIndex(hash_bits)


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one."""

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None


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
) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned.

    `gold` with `sets`, and `sentence_weights`, are as for `Likelihood`.
    """
    _check_fit(config.algorithm, gold, parameters, sentence_weights)
    start = _start(parameters, config.seed)
    if config.algorithm == "lbfgs":
        learner = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
        likelihood = Likelihood(rows, gold, parameters, sentence_weights, sets)
        for step in learner.minimise(likelihood, start):
            yield Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
        return
    online = _online(config)
    if isinstance(online, StochasticDescent):
        epochs = online.learn(rows, gold, parameters, sentence_weights=sentence_weights, sets=sets, start=start)
    else:
        epochs = online.learn(rows, gold, parameters)
    for epoch in epochs:
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def _start(parameters: Parameters, seed: int) -> Array:
    """Weights of 0; small random ones where the states of a label would stay alike for ever."""
    if parameters.latent == 1:
        return np.zeros(len(parameters))
    return SPREAD * np.random.default_rng(seed).normal(size=len(parameters))


def _check_fit(algorithm: str, gold: Array, parameters: Parameters, sentence_weights: Array | None) -> None:
    """Refuse data that an algorithm cannot learn from."""
    if parameters.n_pairs and parameters.order == 2:
        raise ScoreError("templates such as B01:%x[0,1] need order 1; got 2; write B alone or leave out the order")
    if parameters.n_pairs and algorithm not in ON_PAIRS:
        got = f"templates such as B01:%x[0,1] need the algorithm {', '.join(ON_PAIRS)}; got {algorithm}"
        raise ScoreError(f"{got}; write B alone or choose another")
    if algorithm not in PROBABILISTIC:
        check_complete(algorithm, gold, sentence_weights, PROBABILISTIC)


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


def _online(config: LearningConfig) -> OnlineLearner | StochasticDescent:
    if config.algorithm == "sgd":
        return StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    return OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
