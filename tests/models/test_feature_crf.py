"""Feature CRFs: the likelihood and its gradient, the learners, and CRFsuite's own optimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels import likelihood as kernels
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.likelihood import Likelihood, LocalLikelihood
from trelliswork.models.taggers.features.learners.online import RULES, OnlineLearner, Rule
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.training.lbfgs import LBFGS

Sample = tuple[AttributeRows, np.ndarray]


def corpus(n_labels: int, n_attributes: int = 40, seed: int = 0, valued: bool = False) -> Sample:
    """Twenty random sentences, a token without attributes and frequent attributes among them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, 20)
    counts = random.integers(0, 6, lengths.sum())
    ids = np.minimum(random.geometric(0.1, counts.sum()) - 1, n_attributes - 1).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = random.normal(size=len(ids)) if valued else None
    return AttributeRows(lengths, offsets, ids, values), random.integers(0, n_labels, lengths.sum())


def model_of(rows: AttributeRows, parameters: Parameters, weights: np.ndarray) -> FeatureCRF:
    labels = tuple(map(str, range(parameters.n_labels)))
    return FeatureCRF(labels, KeyIndex(), parameters, weights)


def loss_by_distribution(rows: AttributeRows, gold: np.ndarray, parameters: Parameters, weights: np.ndarray) -> float:
    total, starts = 0.0, rows.starts
    for batch, chain in model_of(rows, parameters, weights).distributions(rows):
        n = chain.emissions.shape[1]
        tags = torch.zeros(len(batch), n, dtype=torch.long)
        for row, s in enumerate(batch):
            tags[row, : rows.lengths[s]] = torch.from_numpy(gold[starts[s] : starts[s + 1]])
        total -= float(chain.log_prob(tags).sum())
    return total


@pytest.mark.parametrize("n_labels", [1, 2, 5, 9, 17])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize(("scale", "arc_scale"), [(0.5, 0.5), (300.0, 300.0), (300.0, 0.5), (0.5, 300.0)])
def test_loss_and_gradient(n_labels: int, valued: bool, scale: float, arc_scale: float) -> None:
    rows, gold = corpus(n_labels, valued=valued)
    parameters = Parameters.of(rows, gold, 40, n_labels, all_transitions=n_labels == 5, all_states=n_labels == 9)
    likelihood = Likelihood(rows, gold, parameters)
    random = np.random.default_rng(1)
    weights = random.normal(size=len(parameters)) * scale
    weights[parameters.arc_weights] *= arc_scale / scale
    loss, gradient = likelihood(weights)
    assert loss == pytest.approx(loss_by_distribution(rows, gold, parameters, weights), rel=1e-10, abs=1e-10)
    direction, step = random.normal(size=len(parameters)), 1e-5
    slope = (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("objective", [Likelihood, LocalLikelihood])
def test_a_share_has_a_gradient_of_0_for_attributes_of_other_shares(objective: type[Likelihood]) -> None:
    rows, gold = corpus(5, n_attributes=60)
    parameters, n = Parameters.of(rows, gold, 60, 5), 3
    weights = np.random.default_rng(1).normal(size=len(parameters))
    loss, gradient = objective(rows, gold, parameters)(weights)
    first, tokens = rows.first(n), int(rows.lengths[:n].sum())
    begin = rows.offsets[tokens]
    rest = AttributeRows(rows.lengths[n:], rows.offsets[tokens:] - begin, rows.ids[begin:])
    parts = [objective(*each, parameters)(weights) for each in ((first, gold[:tokens]), (rest, gold[tokens:]))]
    unseen = np.isin(parameters.owners(), first.ids, invert=True)
    assert unseen.any() and not parts[0][1][: parameters.n_states][unseen].any()
    assert sum(each for each, _ in parts) == pytest.approx(loss)
    np.testing.assert_allclose(parts[0][1] + parts[1][1], gradient, atol=1e-12)


@pytest.mark.parametrize(("scale", "arc_scale", "vanish"), [(0.5, 0.5, False), (300.0, 0.5, True), (0.5, 300.0, True)])
def test_log_space_is_entered_where_weights_vanish(
    monkeypatch: pytest.MonkeyPatch, scale: float, arc_scale: float, vanish: bool
) -> None:
    """Its kernel is compiled when a sentence first needs it."""
    entered = list[int]()

    def note(s: int, *arguments: object) -> float:
        entered.append(s)
        return 0.0

    monkeypatch.setattr(kernels, "add_loss_in_log_space", note)
    rows, gold = corpus(5)
    parameters = Parameters.of(rows, gold, 40, 5)
    weights = scale * np.random.default_rng(1).normal(size=len(parameters))
    weights[parameters.arc_weights] *= arc_scale / scale
    Likelihood(rows, gold, parameters)(weights)
    assert bool(entered) == vanish and len(entered) == len(set(entered))


def test_only_observed_pairs_have_weights() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    seen = {(int(a), int(gold[t])) for a, t in zip(rows.ids, rows.tokens(), strict=True)}
    listed = [(a, int(y)) for a in range(40) for y in parameters.labels[slice(*parameters.offsets[a : a + 2])]]
    assert listed == sorted(seen)
    arcs = {(int(gold[t]), int(gold[t + 1])) for t in range(len(gold) - 1) if t + 1 not in rows.starts}
    assert [tuple(arc) for arc in parameters.arcs.tolist()] == sorted(arcs)


def test_a_sentence_counts_as_often_as_its_weight_says() -> None:
    rows, gold = corpus(4)
    parameters = Parameters.of(rows, gold, 40, 4)
    weights = np.random.default_rng(2).normal(size=len(parameters))
    shares = np.array([2.0] + [0.0] * 18 + [1.0])
    loss, gradient = Likelihood(rows, gold, parameters, shares)(weights)
    singles = [Likelihood(rows, gold, parameters, np.eye(20)[s])(weights) for s in (0, 19)]
    assert loss == pytest.approx(2 * singles[0][0] + singles[1][0])
    np.testing.assert_allclose(gradient, 2 * singles[0][1] + singles[1][1], atol=1e-12)


def test_threads_share_the_sentences(worth_splitting: None) -> None:
    rows, gold = corpus(6)
    parameters = Parameters.of(rows, gold, 40, 6)
    weights = np.random.default_rng(3).normal(size=len(parameters))
    shared = Likelihood(rows, gold, parameters)
    assert len(shared._ranges) == 2
    torch.set_num_threads(1)
    alone = Likelihood(rows, gold, parameters)(weights)
    np.testing.assert_allclose(shared(weights)[1], alone[1], atol=1e-12)
    assert shared(weights)[0] == pytest.approx(alone[0])


def test_lbfgs_and_owlqn_find_the_known_minimum() -> None:
    random = np.random.default_rng(0)
    factor = random.normal(size=(30, 30))
    hessian, target = factor @ factor.T + np.eye(30), random.normal(size=30) * 5

    def quadratic(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * w @ hessian @ w - target @ w), hessian @ w - target

    *_, last = LBFGS(l2=0.5, delta=0.0, epsilon=1e-9).minimise(quadratic, np.zeros(30))
    np.testing.assert_allclose(last.weights, np.linalg.solve(hessian + np.eye(30), target), atol=1e-6)
    *_, sparse = LBFGS(l1=3.0, delta=0.0, epsilon=1e-9).minimise(quadratic, np.zeros(30))
    slope = hessian @ sparse.weights - target
    zero = sparse.weights == 0
    assert 0 < zero.sum() < 30
    assert (np.abs(slope[zero]) <= 3.0 + 1e-6).all()
    np.testing.assert_allclose(slope[~zero], -3.0 * np.sign(sparse.weights[~zero]), atol=1e-5)


def naive_perceptron(rows: AttributeRows, gold: np.ndarray, parameters: Parameters, epochs: int) -> np.ndarray:
    """[S4.221] with a dense feature vector, averaged by adding up the weights after every sentence."""
    weights, total, n = np.zeros(len(parameters)), np.zeros(len(parameters)), 0
    order, random = np.arange(20), np.random.default_rng(0)
    one = [_single(rows, s) for s in range(20)]

    def features(s: int, tags: np.ndarray) -> np.ndarray:
        out = np.zeros(len(parameters))
        row = one[s]
        for e, t in enumerate(row.tokens()):
            begin, end = parameters.offsets[row.ids[e] : row.ids[e] + 2]
            out[begin:end][parameters.labels[begin:end] == tags[t]] += 1
        for a, (i, j) in enumerate(parameters.arcs):
            out[parameters.n_states + a] = sum((tags[t], tags[t + 1]) == (i, j) for t in range(len(tags) - 1))
        return out

    for _ in range(epochs):
        random.shuffle(order)
        for s in order:
            wanted = gold[rows.starts[s] : rows.starts[s + 1]]
            ((_, chain),) = model_of(one[s], parameters, weights).distributions(one[s])
            weights = weights + features(s, wanted) - features(s, chain.argmax[0].numpy())
            total, n = total + weights, n + 1
    return total / n


def _single(rows: AttributeRows, s: int) -> AttributeRows:
    first, last = rows.starts[s : s + 2]
    offsets = rows.offsets[first : last + 1]
    return AttributeRows(rows.lengths[s : s + 1], offsets - offsets[0], rows.ids[offsets[0] : offsets[-1]])


def test_the_averaged_perceptron_is_the_naive_one() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3, all_states=True)
    *_, last = OnlineLearner(max_epochs=3).learn(Corpus(rows, gold), parameters)
    naive = naive_perceptron(rows, gold, parameters, 3)
    # The clock starts at 1: the first weights, all 0, are counted once more.
    np.testing.assert_allclose(last.weights, naive * 60 / 61, atol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_online_learners_separate_what_can_be_separated(rule: Rule) -> None:
    rows, _ = corpus(2, n_attributes=30)
    gold = np.zeros(rows.n_tokens, np.int64)
    gold[rows.tokens()[rows.ids == 1]] = 1
    parameters = Parameters.of(rows, gold, 30, 2, all_states=True)
    *_, last = OnlineLearner(rule, max_epochs=60, averaging=False).learn(Corpus(rows, gold), parameters)
    predicted = model_of(rows, parameters, last.weights).predict(rows)
    assert [int(y) for row in predicted for y in row] == gold.tolist()


def test_stochastic_descent_comes_near_the_optimum() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    likelihood = Likelihood(rows, gold, parameters)
    *_, best = LBFGS(l2=0.5).minimise(likelihood, np.zeros(len(parameters)))
    *_, last = StochasticDescent(l2=0.5, max_epochs=300, delta=0.0).learn(Corpus(rows, gold), parameters)
    found = likelihood(last.weights)[0] + 0.5 * float(last.weights @ last.weights)
    assert best.loss <= found + 1e-9
    assert found == pytest.approx(best.loss, rel=5e-3)


def test_crfsuite_reaches_the_same_optimum(tmp_path: object) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    rows, gold = corpus(3, seed=5)
    parameters = Parameters.of(rows, gold, 40, 3)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 0.3, "c1": 0.0, "epsilon": 1e-7, "delta": 1e-9})
    starts = rows.starts
    for s in range(20):
        tokens = range(starts[s], starts[s + 1])
        items = [{str(a): float((rows.ids[slice(*rows.offsets[t : t + 2])] == a).sum())
                  for a in rows.ids[slice(*rows.offsets[t : t + 2])]} for t in tokens]  # fmt: skip
        trainer.append(pycrfsuite.ItemSequence(items), [str(gold[t]) for t in tokens])
    trainer.train(f"{tmp_path}/model")
    theirs = trainer.logparser.last_iteration["loss"]
    *_, last = LBFGS(l2=0.3, delta=1e-9).minimise(Likelihood(rows, gold, parameters), np.zeros(len(parameters)))
    assert last.loss == pytest.approx(theirs, rel=1e-4)


def test_labels_are_those_of_the_chain() -> None:
    """`predict` decodes without a distribution; its labels are the distribution's."""
    rows, gold = corpus(5)
    lengths = np.concatenate([rows.lengths[:4], [0], rows.lengths[4:]])  # a sentence without tokens among them
    rows = AttributeRows(lengths, rows.offsets, rows.ids, rows.values)
    parameters = Parameters.of(rows, gold, 40, 5)
    crf = model_of(rows, parameters, np.random.default_rng(3).normal(size=len(parameters)))
    wanted: list[list[str]] = [[] for _ in lengths]
    for batch, chain in crf.distributions(rows):
        for s, tags in zip(batch, chain.argmax.tolist(), strict=True):
            wanted[s] = [str(tag) for tag in tags[: lengths[s]]]
    assert crf.predict(rows) == wanted
