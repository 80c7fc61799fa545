"""Max-margin learning: cost-augmented decoding by enumeration, and the minimum by another solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.models.test_feature_crf import corpus, model_of
from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.decoding import path_for
from trelliswork.models.taggers.features.kernels.margin import worst_labels
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.margin import MarginLearner, _Run


def small(valued: bool, n_labels: int = 3) -> tuple[AttributeRows, np.ndarray, Parameters]:
    """Six sentences of at most four tokens."""
    random = np.random.default_rng(4)
    lengths = np.array([1, 3, 4, 0, 2, 3])
    counts = random.integers(0, 4, lengths.sum())
    ids = random.integers(0, 6, counts.sum()).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), ids, values)
    gold = random.integers(0, n_labels, lengths.sum())
    return rows, gold, Parameters.of(rows, gold, 6, n_labels)


def features(rows: AttributeRows, parameters: Parameters, s: int, tags: tuple[int, ...]) -> np.ndarray:
    """What a sentence with these labels has, weight by weight."""
    out = np.zeros(len(parameters))
    for t, tag in enumerate(tags):
        for e in range(*rows.offsets[rows.starts[s] + t : rows.starts[s] + t + 2]):
            own = slice(*parameters.offsets[rows.ids[e] : rows.ids[e] + 2])
            value = 1.0 if rows.values is None else rows.values[e]
            out[own] += value * (parameters.labels[own] == tag)
    for a, arc in enumerate(parameters.arcs.tolist()):
        out[parameters.n_states + a] = sum(tags[t : t + 2] == tuple(arc) for t in range(len(tags) - 1))
    return out


def rivals(rows: AttributeRows, gold: np.ndarray, parameters: Parameters, s: int) -> tuple[np.ndarray, np.ndarray]:
    """(features of gold less features, cost) of every label sequence of a sentence."""
    wanted = tuple(gold[rows.starts[s] : rows.starts[s + 1]].tolist())
    every = list(product(range(parameters.n_labels), repeat=int(rows.lengths[s])))
    own = features(rows, parameters, s, wanted)
    costs = [sum(a != b for a, b in zip(tags, wanted, strict=True)) for tags in every]
    return np.array([own - features(rows, parameters, s, tags) for tags in every]), np.array(costs, float)


@pytest.mark.parametrize("valued", [False, True])
def test_the_worst_labels_are_those_of_enumeration(valued: bool) -> None:
    rows, gold, parameters = small(valued)
    run = _Run(rows, gold, parameters)
    for seed in range(5):
        weights = np.random.default_rng(seed).normal(size=len(parameters))
        total = 0.0
        for s in np.flatnonzero(rows.lengths):
            n = int(rows.lengths[s])
            path = path_for(n, parameters.bounds)
            cost, violated = worst_labels(s, rows.arrays, parameters.weight_index, gold, weights, path)
            tags = path.tags
            less, costs = rivals(rows, gold, parameters, s)
            assert violated == pytest.approx((costs - less @ weights).max())
            wanted = gold[rows.starts[s] : rows.starts[s + 1]]
            assert cost == (tags[0] != wanted).sum()
            own = features(rows, parameters, s, tuple(wanted)) - features(rows, parameters, s, tuple(tags[0]))
            assert cost - own @ weights == pytest.approx(violated)
            total += violated
        assert run.hinge(weights) == pytest.approx(total)


def by_quadratic_programme(rows: AttributeRows, gold: np.ndarray, parameters: Parameters, c2: float) -> float:
    """min c2 ‖w‖² + Σ ξ_s with ξ_s ≥ Δ(y) - w · (features of gold less those of y), for all y."""
    n = len(parameters)
    sets = [rivals(rows, gold, parameters, s) for s in np.flatnonzero(rows.lengths)]
    left = np.concatenate(
        [np.hstack([less, np.tile(np.eye(len(sets))[s], (len(less), 1))]) for s, (less, _) in enumerate(sets)]
    )
    right = np.concatenate([costs for _, costs in sets])
    found = minimize(
        lambda x: (c2 * x[:n] @ x[:n] + x[n:].sum(), np.concatenate([2 * c2 * x[:n], np.ones(len(sets))])),
        np.concatenate([np.zeros(n), [costs.max() for _, costs in sets]]),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: left @ x - right, "jac": lambda x: left},
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("c2", [0.3, 1.0])
def test_loss_and_bound_meet_at_the_minimum(valued: bool, c2: float) -> None:
    rows, gold, parameters = small(valued)
    least = by_quadratic_programme(rows, gold, parameters, c2)
    epochs = list(MarginLearner(c2=c2, max_epochs=1000, tolerance=0.01).learn(Corpus(rows, gold), parameters))
    for epoch in epochs:
        assert epoch.bound <= least + 1e-6 <= epoch.loss + 2e-6
    assert epochs[-1].measures["gap"] <= 0.01 * epochs[-1].loss
    bounds = [epoch.bound for epoch in epochs]
    assert bounds == sorted(bounds), "an exact line search never lowers the dual"


def test_the_learner_is_the_naive_one() -> None:
    """Frank-Wolfe with every rival written out, weights of each sentence kept apart, averages added up step by step."""
    rows, gold, parameters = small(valued=True, n_labels=2)  # no ties: of two labels one is wrong
    order, random, c2 = np.flatnonzero(rows.lengths), np.random.default_rng(0), 0.5
    parts, costs_of = np.zeros((len(rows.lengths), len(parameters))), np.zeros(len(rows.lengths))
    total, clock = np.zeros(len(parameters)), 0
    for _ in range(6):
        random.shuffle(order)
        for s in order:
            less, costs = rivals(rows, gold, parameters, s)
            weights = parts.sum(0)
            worst = int((costs - less @ weights).argmax())
            towards = less[worst] / (2 * c2)
            apart, rise = parts[s] - towards, costs[worst] - costs_of[s]
            step = np.clip((2 * c2 * apart @ weights + rise) / max(2 * c2 * apart @ apart, 1e-300), 0, 1)
            parts[s], costs_of[s] = parts[s] - step * apart, costs_of[s] + step * rise
            clock += 1
            total += clock * parts.sum(0)
    *_, last = MarginLearner(c2=c2, max_epochs=6, tolerance=-1.0).learn(Corpus(rows, gold), parameters)
    np.testing.assert_allclose(last.weights, total / (clock * (clock + 1) / 2), atol=1e-12)
    assert last.bound == pytest.approx(costs_of.sum() - c2 * parts.sum(0) @ parts.sum(0))


def test_the_same_seed_gives_the_same_weights() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    config = LearningConfig(algorithm="margin", max_iterations=5)
    one, two = [list(learn(rows, gold, parameters, config))[-1] for _ in range(2)]
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.measures["gap"] >= 0
    other = LearningConfig(algorithm="margin", max_iterations=5, seed=1)
    assert (list(learn(rows, gold, parameters, other))[-1].weights != one.weights).any()


def test_what_can_be_told_apart_is() -> None:
    rows, _ = corpus(3)
    first = np.where(np.diff(rows.offsets) > 0, np.append(rows.ids, 0)[rows.offsets[:-1]], 0)
    rows = AttributeRows(rows.lengths, np.arange(rows.n_tokens + 1), first.astype(np.int32))
    gold = (first % 3).astype(np.int64)
    parameters = Parameters.of(rows, gold, 40, 3)
    *_, last = MarginLearner(c2=0.01, max_epochs=100).learn(Corpus(rows, gold), parameters)
    found = model_of(rows, parameters, last.weights).predict(rows)
    assert [int(tag) for row in found for tag in row] == gold.tolist()


@pytest.mark.parametrize("c2", [0.0, -1.0, float("nan")])
def test_a_margin_needs_a_regularizer(c2: float) -> None:
    with pytest.raises(ScoreError, match="c2 must be"):
        MarginLearner(c2=c2)
    with pytest.raises(ScoreError, match="c2 must be"):
        LearningConfig(algorithm="margin", c2=c2)
