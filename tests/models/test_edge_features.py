"""Edge observations [S4.81]: weights for (attribute, label before, label)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import feature_oracle as oracle
from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners import learning
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import PROBABILISTIC, Algorithm, LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.learners.online import OnlineLearner
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.training.lbfgs import LBFGS

ON_PAIRS = np.arange(12) % 3 == 0


def slope(likelihood: Likelihood, weights: np.ndarray, direction: np.ndarray) -> float:
    step = 1e-5
    return (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("scale", [0.5, 300.0])
@pytest.mark.parametrize("all_states", [False, True])
def test_loss_and_gradient(valued: bool, scale: float, all_states: bool) -> None:
    rows, gold = oracle.corpus(3, valued=valued)
    parameters = Parameters.of(rows, gold, 12, 3, all_states=all_states).with_pairs(
        rows, gold, ON_PAIRS, every=all_states
    )
    assert parameters.n_pairs > 0
    random = np.random.default_rng(1)
    weights, direction = random.normal(size=(2, len(parameters)))
    likelihood = Likelihood(rows, gold, parameters)
    loss, gradient = likelihood(scale * weights)
    assert loss == pytest.approx(oracle.loss(rows, gold, parameters, scale * weights), rel=1e-10)
    assert slope(likelihood, scale * weights, direction) == pytest.approx(
        float(gradient @ direction), rel=1e-4, abs=1e-4
    )


@pytest.mark.parametrize("valued", [False, True])
def test_answers_equal_enumeration(valued: bool) -> None:
    rows, gold = oracle.corpus(3, valued=valued, seed=4)
    parameters = Parameters.of(rows, gold, 12, 3).with_pairs(rows, gold, ON_PAIRS)
    weights = np.random.default_rng(2).normal(size=len(parameters))
    crf = FeatureCRF(("a", "b", "c"), KeyIndex.of(np.arange(1, 13).astype(np.uint64)), parameters, weights)
    smaller, kept = crf.compact()
    again = rows.kept(np.isin(rows.ids, kept), np.cumsum(np.isin(np.arange(12), kept)) - 1)
    for model, entries, tolerance in ((crf, rows, 1e-10), (smaller, again, 1e-5)):
        best, marginals = model.predict(entries), model.marginals(entries)
        for s, n in enumerate(rows.lengths.tolist()):
            scores = {y: oracle.score(rows, s, y, parameters, weights) for y in oracle.labellings(n, 3)}
            log_z = oracle.log_sum(list(scores.values()))
            assert best[s] == ["abc"[y] for y in max(scores, key=lambda y: scores[y])]
            table = np.zeros((n, 3))
            for y, value in scores.items():
                table[np.arange(n), y] += np.exp(value - log_z)
            np.testing.assert_allclose(marginals[s], table, atol=tolerance)


def test_only_observed_triples_have_weights_unless_all_are_asked_for() -> None:
    rows, gold = oracle.corpus(3)
    parameters = Parameters.of(rows, gold, 12, 3).with_pairs(rows, gold, ON_PAIRS)
    assert parameters.pairs is not None
    seen = {
        (int(a), int(gold[t - 1]), int(gold[t]))
        for a, t in zip(rows.ids, rows.tokens(), strict=True)
        if ON_PAIRS[a] and t not in rows.starts
    }
    listed = parameters.pairs.listed(9)
    assert [(k // 9, k // 3 % 3, k % 3) for k in listed.tolist()] == sorted(seen)
    assert not (np.diff(parameters.offsets)[ON_PAIRS]).any()
    every = Parameters.of(rows, gold, 12, 3, all_states=True, all_transitions=True).with_pairs(
        rows, gold, ON_PAIRS, every=True
    )
    assert every.n_pairs == 4 * 9
    often = parameters.frequent(rows, gold, 2.0)
    counts = np.zeros(len(listed))
    for a, t in zip(rows.ids.tolist(), rows.tokens().tolist(), strict=True):
        if ON_PAIRS[a] and t not in rows.starts:
            counts[np.searchsorted(listed, a * 9 + gold[t - 1] * 3 + gold[t])] += 1
    assert often.pairs is not None
    np.testing.assert_array_equal(often.pairs.listed(9), listed[counts >= 2])


def naive_perceptron(rows: AttributeRows, gold: np.ndarray, parameters: Parameters, epochs: int) -> np.ndarray:
    """[S4.221], decoding by enumeration; features by differences of the score, which is linear in the weights."""
    weights, total, n = np.zeros(len(parameters)), np.zeros(len(parameters)), 0
    order, random, eye = np.arange(len(rows.lengths)), np.random.default_rng(0), np.eye(len(parameters))
    for _ in range(epochs):
        random.shuffle(order)
        for s in order:
            wanted = tuple(gold[rows.starts[s] : rows.starts[s + 1]].tolist())
            found = {y: oracle.score(rows, s, y, parameters, weights) for y in oracle.labellings(len(wanted), 2)}
            # Among ties the lowest labels from the end, as Viterbi breaks them.
            best = min(found, key=lambda y: (-round(found[y], 9), y[::-1]))
            change = [
                oracle.score(rows, s, wanted, parameters, e) - oracle.score(rows, s, best, parameters, e) for e in eye
            ]
            weights = weights + np.array(change)
            total, n = total + weights, n + 1
    return total / (n + 1)


def test_the_averaged_perceptron_is_the_naive_one() -> None:
    rows, gold = oracle.corpus(2)
    parameters = Parameters.of(rows, gold, 12, 2).with_pairs(rows, gold, ON_PAIRS)
    *_, last = OnlineLearner(max_epochs=3).learn(Corpus(rows, gold), parameters)
    np.testing.assert_allclose(last.weights, naive_perceptron(rows, gold, parameters, 3), atol=1e-10)


def parity() -> tuple[AttributeRows, np.ndarray]:
    """Attribute 0 says that the label changes, 1 that it stays: no weight of a single label can tell."""
    random = np.random.default_rng(0)
    lengths = np.full(40, 6)
    ids = random.integers(0, 2, 240).astype(np.int32)
    gold = np.zeros(240, np.int64)
    for t in range(240):
        gold[t] = 0 if t % 6 == 0 else gold[t - 1] ^ (ids[t] == 0)
    ids[::6] = 2
    return AttributeRows(lengths, np.arange(241), ids), gold


@pytest.mark.parametrize("algorithm", learning.ON_PAIRS)
def test_every_learner_uses_them(algorithm: Algorithm) -> None:
    rows, gold = parity()
    parameters = Parameters.of(rows, gold, 3, 2).with_pairs(rows, gold, np.array([True, True, False]))
    c2 = {"c2": 0.01} if algorithm in PROBABILISTIC else {}
    *_, last = learn(rows, gold, parameters, LearningConfig(algorithm, max_iterations=30, **c2))
    crf = FeatureCRF(("0", "1"), KeyIndex(), parameters, last.weights)
    assert [int(y) for row in crf.predict(rows) for y in row] == gold.tolist()


def test_stochastic_descent_comes_near_the_optimum() -> None:
    rows, gold = oracle.corpus(3, n_sentences=30)
    parameters = Parameters.of(rows, gold, 12, 3).with_pairs(rows, gold, ON_PAIRS)
    likelihood = Likelihood(rows, gold, parameters)
    *_, best = LBFGS(l2=0.5).minimise(likelihood, np.zeros(len(parameters)))
    *_, last = StochasticDescent(l2=0.5, max_epochs=300, delta=0.0).learn(Corpus(rows, gold), parameters)
    found = likelihood(last.weights)[0] + 0.5 * float(last.weights @ last.weights)
    assert best.loss <= found + 1e-9
    assert found == pytest.approx(best.loss, rel=5e-3)
