"""Herding: moments at the rate 1/T, the perceptron as its smallest case, hidden states by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.models.test_feature_crf import corpus, model_of, naive_perceptron
from tests.models.test_margin import features, small
from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.herding import Herding, Trajectory, herd, hidden_parameters, votes
from trelliswork.models.taggers.features.learners.learning import learn

BITS = np.array(list(product((-1.0, 1.0), repeat=4)))


def pairwise(bits: np.ndarray) -> np.ndarray:
    """Each variable and the product of each two."""
    products = [bits[:, i] * bits[:, j] for i in range(bits.shape[1]) for j in range(i)]
    return np.concatenate([bits, np.stack(products, 1)], 1)


def moment_errors(states: np.ndarray, phi: np.ndarray, data: np.ndarray) -> np.ndarray:
    """‖average features of the first T states - those of the data‖ for each T."""
    means = np.cumsum(phi[states], 0) / np.arange(1, len(states) + 1)[:, None]
    return np.linalg.norm(means - data @ phi, axis=1)


def test_herded_moments_come_together_as_fast_as_one_over_t() -> None:
    random = np.random.default_rng(0)
    phi, data = pairwise(BITS), random.dirichlet(np.ones(16))
    herded = herd(phi, data, 4000)
    errors, t = moment_errors(herded.states, phi, data), np.arange(1, 4001)
    bound = (t * errors).max()
    assert bound < 20, "T times the error is the length of w, which is bounded"
    np.testing.assert_allclose(t * errors, np.linalg.norm(herded.weights, axis=1), atol=1e-8)
    sampled = [moment_errors(random.choice(16, 4000, p=data), phi, data)[-1] for _ in range(20)]
    assert errors[-1] < 0.2 * min(sampled)
    assert 4000 * np.mean(sampled) > 5 * bound, "samples have only the rate 1/sqrt T"


def test_with_hidden_values_the_moments_of_data_and_states_come_together() -> None:
    random = np.random.default_rng(1)
    phi, data = random.normal(size=(6, 3, 4)), random.dirichlet(np.ones(6))
    steps = 3000
    found = herd(phi, data, steps, start=random.normal(size=4))
    before = np.concatenate([[found.weights[0] * 0], found.weights[:-1]])
    drawn = phi[found.states, found.hidden]
    wanted = []
    for w, x, z in zip(before[1:], found.states[1:], found.hidden[1:], strict=True):
        scores = phi @ w
        assert scores[x, z] == pytest.approx(scores.max())
        wanted.append(sum(p * each[(each @ w).argmax()] for p, each in zip(data, phi, strict=True)))
    error = np.linalg.norm((np.array(wanted) - drawn[1:]).mean(0))
    assert error < 30 / steps


def test_herding_refuses_what_is_no_distribution() -> None:
    with pytest.raises(ScoreError, match="sum to 1"):
        herd(np.eye(2), np.array([0.5, 0.6]), 3)
    with pytest.raises(ScoreError, match=r"got \(2, 2\) and \(3,\)"):
        herd(np.eye(2), np.full(3, 1 / 3), 3)
    assert herd(np.eye(2), np.array([0.5, 0.5]), 0).states.shape == (0,)


def test_from_zero_one_sentence_at_a_time_it_is_the_perceptron() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3, all_states=True)
    *_, last = Herding(max_epochs=3).learn(
        Corpus(rows, gold), parameters
    )  # the average counts the weights before the first step, too
    np.testing.assert_allclose(last.weights, naive_perceptron(rows, gold, parameters, 3) * 60 / 61, atol=1e-12)


def test_the_rate_only_scales_weights_that_began_at_zero() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    (*_, one), (*_, half) = (
        Herding(max_epochs=4, batch=3, rate=rate).learn(Corpus(rows, gold), parameters) for rate in (1.0, 0.5)
    )
    np.testing.assert_allclose(half.now, 0.5 * one.now, atol=1e-12)
    assert half.trajectory.moment_error == pytest.approx(one.trajectory.moment_error)


@pytest.mark.parametrize("valued", [False, True])
def test_a_step_is_that_of_enumeration(valued: bool) -> None:
    """All sentences in one batch: z is the best given the gold labels, (y*, z*) the best of all."""
    rows, gold, parameters = small(valued)
    hidden, m = hidden_parameters(parameters, 2), 2
    learner = Herding(max_epochs=4, batch=100, hidden=m, rate=0.7, seed=3)
    epochs = list(learner.learn(Corpus(rows, gold), parameters))
    weights = np.random.default_rng(3).normal(size=len(hidden))
    start = weights
    for epoch in epochs:
        change = np.zeros(len(hidden))
        for s in np.flatnonzero(rows.lengths):
            wanted = gold[rows.starts[s] : rows.starts[s + 1]]
            paths = list(product(range(hidden.n_labels), repeat=int(rows.lengths[s])))
            table = np.array([features(rows, hidden, s, path) for path in paths])
            scores = table @ weights
            right = (np.array(paths) // m == wanted).all(1)
            change += table[np.where(right, scores, -np.inf).argmax()] - table[scores.argmax()]
        weights = weights + 0.7 * change / 5
        np.testing.assert_allclose(epoch.now, weights, atol=1e-12)
    trajectory = epochs[-1].trajectory
    assert trajectory.satisfies_the_condition
    assert trajectory.moment_error == pytest.approx(np.linalg.norm(weights - start) / 0.7 / len(epochs))


def test_hidden_states_can_tell_what_labels_alone_cannot() -> None:
    """Label 1 if exactly one of two attributes is there: no weights for (attribute, label) say that."""
    ids, counts, gold = [], [], []
    for a, b in product((0, 1), repeat=2):
        found = [0] * a + [1] * b + [2]
        ids += found
        counts.append(len(found))
        gold.append(int(a != b))
    rows = AttributeRows(np.ones(4, np.int64), np.concatenate([[0], np.cumsum(counts)]), np.array(ids, np.int32))
    labels = np.array(gold)
    parameters = Parameters.of(rows, labels, 3, 2, all_states=True)
    *_, plain = Herding(max_epochs=300).learn(Corpus(rows, labels), parameters)
    *_, hidden = Herding(max_epochs=300, hidden=2).learn(Corpus(rows, labels), parameters)
    assert plain.loss > 0
    assert plain.trajectory.verdict == "bounded"
    assert hidden.loss == 0
    shares = votes(rows, parameters, [hidden.now], 2, hidden=2)
    np.testing.assert_array_equal(shares, np.eye(2)[labels])


def test_votes_are_shares_of_members() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    members = [epoch.now for epoch in Herding(max_epochs=5).learn(Corpus(rows, gold), parameters)]
    shares = votes(rows, parameters, members, 3)
    naive = np.zeros_like(shares)
    for weights in members:
        tags = [int(tag) for row in model_of(rows, parameters, weights).predict(rows) for tag in row]
        naive[np.arange(len(tags)), tags] += 1 / 5
    np.testing.assert_allclose(shares, naive)
    with pytest.raises(ScoreError, match="at least one"):
        votes(rows, parameters, [], 3)


@pytest.mark.parametrize(
    ("power", "verdict"), [(0.0, "bounded"), (0.5, "slowing"), (1.0, "growing"), (None, "at rest")]
)
def test_a_trajectory_is_judged_by_its_growth(power: float | None, verdict: str) -> None:
    trajectory = Trajectory()
    for step in range(1, 40):
        wobble = 1 + 0.01 * (step % 2)
        distance = 3.0 if power is None else wobble * step**power
        assert trajectory.verdict == verdict or step < 12
        trajectory = trajectory.then(step, distance, -1.0, 1.0)
    assert trajectory.verdict == verdict
    assert Trajectory().verdict == "too short to tell"
    assert trajectory.satisfies_the_condition
    assert not trajectory.then(41, 1.0, 0.5, 1.0).satisfies_the_condition


@pytest.mark.parametrize("algorithm", ["perceptron", "herding"])
def test_learners_report_the_moment_error(algorithm: str) -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    found = list(learn(rows, gold, parameters, LearningConfig(algorithm=algorithm, max_iterations=60)))  # type: ignore[arg-type]
    errors = [progress.measures["moment error"] for progress in found]
    assert errors[-1] < 0.2 * errors[0]


@pytest.mark.parametrize(
    "settings", [{"max_epochs": 0}, {"batch": 0}, {"hidden": 0}, {"rate": 0.0}, {"rate": float("nan")}]
)
def test_settings_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(ScoreError, match=next(iter(settings))):
        Herding(**settings)  # type: ignore[arg-type]
