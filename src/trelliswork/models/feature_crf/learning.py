"""From a corpus of attributes to weights, by any of the learners."""

from __future__ import annotations

from collections.abc import Iterator
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

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {self.algorithm!r}")
        if self.c1 and self.algorithm != "lbfgs":
            raise ScoreError(f"c1 needs the algorithm lbfgs; got {self.algorithm}")
        check_settings(self.c1, self.c2, self.max_iterations)
        check_attribute_settings(self.cutoff, self.hash_bits, self.induce)
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
    rows: AttributeRows, gold: Array, n_attributes: int, n_labels: int, config: LearningConfig, *, arcs: bool = True
) -> Parameters:
    """The weights that the settings ask for; without `arcs` none between neighbouring labels."""
    found = Parameters.of(
        rows, gold, n_attributes, n_labels, all_states=config.all_states, all_transitions=config.all_transitions
    )
    found = found.frequent(rows, gold, config.min_count).common(rows, config.cutoff)
    return found if arcs else replace(found, arcs=found.arcs[:0])


def learn(rows: AttributeRows, gold: Array, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned."""
    if config.algorithm == "lbfgs":
        learner = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
        for step in learner.minimise(Likelihood(rows, gold, parameters), np.zeros(len(parameters))):
            yield Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
        return
    for epoch in _online(config).learn(rows, gold, parameters):
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def _online(config: LearningConfig) -> OnlineLearner | StochasticDescent:
    if config.algorithm == "sgd":
        return StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    return OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
