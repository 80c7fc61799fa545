"""Labels that are unknown or one of a set, and sentences that count more or less."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from tests.models import feature_oracle as oracle
from trelliswork.data import Sentence
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import DataError, ScoreError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.learners.sgd import StochasticDescent
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.models.taggers.gold import choices_of_tag, is_known, partial_gold, scheme_of
from trelliswork.sklearn import CRF
from trelliswork.training.lbfgs import LBFGS

SETS = np.array([[True, True, True], [True, False, True], [False, True, True]])
ON_PAIRS = np.arange(12) % 3 == 0
CORPUS = builtin_corpus(sizes=(300, 100, 1))
TRAIN, TEST = ([Sentence(x.words, x.chunks, (x.pos,)) for x in CORPUS[part]] for part in ("train", "dev"))


def hidden(gold: np.ndarray, seed: int = 0) -> np.ndarray:
    """A third of the labels unknown, a third one of a set that has the right one."""
    kind = np.random.default_rng(seed).integers(0, 3, len(gold))
    allowed = np.where(gold == 1, -3, -2)  # the set {1, 2} or {0, 2}
    return np.where(kind == 0, gold, np.where(kind == 1, -1, allowed))


@pytest.mark.parametrize("on_pairs", [None, ON_PAIRS])
@pytest.mark.parametrize("scale", [0.5, 300.0])
@pytest.mark.parametrize("valued", [False, True])
def test_loss_and_gradient(on_pairs: np.ndarray | None, scale: float, valued: bool) -> None:
    rows, gold = oracle.corpus(3, valued=valued, n_sentences=12)
    gold = hidden(gold)
    parameters = Parameters.of(rows, gold, 12, 3, sets=SETS).with_pairs(rows, gold, on_pairs, sets=SETS)
    random = np.random.default_rng(1)
    shares = random.uniform(0, 3, len(rows.lengths))
    weights, direction = random.normal(size=(2, len(parameters)))
    weights *= scale
    likelihood = Likelihood(rows, gold, parameters, shares, SETS)
    loss, gradient = likelihood(weights)
    wanted = oracle.loss(rows, gold, parameters, weights, shares, SETS)
    assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    step = 1e-5
    slope = (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-3)


def test_known_labels_give_the_plain_loss_whichever_kernel_runs() -> None:
    rows, gold = oracle.corpus(3, n_sentences=12)
    parameters = Parameters.of(rows, gold, 12, 3)
    weights = np.random.default_rng(2).normal(size=len(parameters))
    plain, general = Likelihood(rows, gold, parameters), Likelihood(rows, gold, parameters)
    general._plain = False
    assert plain._plain
    np.testing.assert_allclose(general(weights)[1], plain(weights)[1], atol=1e-12)
    assert general(weights)[0] == pytest.approx(plain(weights)[0])


def test_threads_share_the_sentences(worth_splitting: None) -> None:
    rows, gold = oracle.corpus(3, n_sentences=12)
    gold = hidden(gold)
    parameters = Parameters.of(rows, gold, 12, 3, sets=SETS).with_pairs(rows, gold, ON_PAIRS, sets=SETS)
    weights = np.random.default_rng(3).normal(size=len(parameters))
    shared = Likelihood(rows, gold, parameters, sets=SETS)
    assert len(shared._ranges) == 2
    torch.set_num_threads(1)
    alone = Likelihood(rows, gold, parameters, sets=SETS)(weights)
    np.testing.assert_allclose(shared(weights)[1], alone[1], atol=1e-12)
    assert shared(weights)[0] == pytest.approx(alone[0])


def test_weights_are_for_all_labels_that_are_possible() -> None:
    rows, gold = oracle.corpus(3)
    codes = hidden(gold)
    parameters = Parameters.of(rows, codes, 12, 3, sets=SETS).with_pairs(rows, codes, ON_PAIRS, sets=SETS)
    allowed = [[y for y in range(3) if (y == code if code >= 0 else SETS[-1 - code, y])] for code in codes]
    entries = list(zip(rows.ids.tolist(), rows.tokens().tolist(), strict=True))
    states = {(a, y) for a, t in entries if not ON_PAIRS[a] for y in allowed[t]}
    listed = [(a, int(y)) for a in range(12) for y in parameters.labels[slice(*parameters.offsets[a : a + 2])]]
    assert listed == sorted(states)
    after = [t for t in range(rows.n_tokens) if t not in rows.starts]
    arcs = {arc for t in after for arc in itertools.product(allowed[t - 1], allowed[t])}
    assert [tuple(arc) for arc in parameters.arcs.tolist()] == sorted(arcs)
    found = {
        (a, *arc)
        for a, t in entries
        if ON_PAIRS[a] and t in after
        for arc in itertools.product(allowed[t - 1], allowed[t])
    }
    assert parameters.pairs is not None
    assert [(k // 9, k // 3 % 3, k % 3) for k in parameters.pairs.listed(9).tolist()] == sorted(found)
    often = parameters.frequent(rows, codes, 3.0, SETS)
    counts = {pair: sum(pair == (a, y) for a, t in entries for y in allowed[t]) for pair in states}
    assert often.n_states == sum(n >= 3 for n in counts.values())


def test_stochastic_descent_comes_near_the_optimum() -> None:
    rows, gold = oracle.corpus(3, n_sentences=30)
    gold = np.where(np.arange(len(gold)) % 4 == 0, -1, gold)
    parameters = Parameters.of(rows, gold, 12, 3)
    shares = np.where(np.arange(30) % 2 == 0, 2.0, 0.5)
    likelihood = Likelihood(rows, gold, parameters, shares)
    *_, best = LBFGS(l2=0.5).minimise(likelihood, np.zeros(len(parameters)))
    descent = StochasticDescent(l2=0.5, max_epochs=300, delta=0.0)
    *_, last = descent.learn(Corpus(rows, gold, shares), parameters)
    found = likelihood(last.weights)[0] + 0.5 * float(last.weights @ last.weights)
    assert found == pytest.approx(best.loss, rel=5e-3)


def test_tags_that_are_not_known() -> None:
    assert [choices_of_tag(tag) for tag in ("O", "?", "|", "A|", "A|?")] == ["O", None, "|", "A", None]
    labels, gold, sets = partial_gold([("B-X", "?"), ("I-X|O", "O|I-X", "O")])
    assert list(labels) == ["B-X", "I-X", "O"]
    assert gold.tolist() == [0, -1, -2, -2, 2]
    assert sets.tolist() == [[True, True, True], [False, True, True]]
    assert scheme_of([("?", "I-X", "O", "B-X")]) == "IOB2"
    assert is_known(("O", "B-X"))
    assert not is_known(("O", "?"))
    with pytest.raises(DataError, match="at least one label that is known"):
        partial_gold([("?", "?")])


def test_a_tagger_learns_from_half_of_the_tags() -> None:
    random = np.random.default_rng(0)
    half = [
        Sentence(x.words, tuple(tag if random.random() < 0.5 else "?" for tag in x.tags or ()), x.features)
        for x in TRAIN
    ]
    learned = FeatureTagger.fit(TaggedData(half, partial=True))
    assert learned.labels.data_scheme == "IOB2"
    assert learned.evaluate(TEST)["score"] > 0.85
    with pytest.raises(ScoreError, match="labels that are not known need the algorithm lbfgs or sgd; got perceptron"):
        FeatureTagger.fit(TaggedData(half, partial=True), LearningConfig("perceptron"))


def test_without_partial_the_signs_are_tags_like_any_other() -> None:
    sentences = [Sentence(("what", "now", "?"), ("W", "R|X", "?"))] * 3
    assert FeatureTagger.fit(sentences).tag(sentences[:1]) == [["W", "R|X", "?"]]


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 299 + [-1.0], [1.0] * 299 + [float("nan")], ["x"] * 300])
def test_sentence_weights_that_cannot_be(weights: Any) -> None:
    with pytest.raises(ScoreError, match="weights must be"):
        FeatureTagger.fit(TaggedData(TRAIN, weights=weights))


def test_a_weight_of_two_is_a_sentence_given_twice() -> None:
    shares = [2.0 if i < 20 else 1.0 for i in range(40)]
    config = LearningConfig(max_iterations=8)
    weighted = FeatureTagger.fit(TaggedData(TRAIN[:40], weights=shares), config)
    repeated = FeatureTagger.fit([*TRAIN[:20], *TRAIN[:40]], config)
    assert weighted.tag(TEST[:20]) == repeated.tag(TEST[:20])
    with pytest.raises(ScoreError, match="sentence weights need the algorithm lbfgs or sgd; got pa"):
        FeatureTagger.fit(TaggedData(TRAIN[:40], weights=shares), LearningConfig("pa"))


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd"])
def test_the_estimator_takes_unknown_labels_and_weights(algorithm: str) -> None:
    X = [[{"w": word} for word in sentence] for sentence in (["a", "b"], ["b", "a"], ["a", "b"], ["b"])]
    y = [["A", None], [{"B", "C"}, "A"], ["A", ["B"]], [("B",)]]
    crf = CRF(algorithm=algorithm, c2=0.1, max_iterations=50).fit(X, y, sample_weight=[1, 2, 1, 1])
    assert crf.predict(X).tolist() == [["A", "B"], ["B", "A"], ["A", "B"], ["B"]]
    assert crf.classes_ == ["A", "B", "C"]
    with pytest.raises(ScoreError, match="need the algorithm lbfgs or l2sgd; got ap"):
        CRF(algorithm="ap").fit(X, y)
    with pytest.raises(ScoreError, match="sentence weights need"):
        CRF(algorithm="pa").fit(X, [["A", "B"], ["B", "A"], ["A", "B"], ["B"]], sample_weight=[1, 1, 1, 1])
    with pytest.raises(DataError, match="at least one label in a set"):
        CRF().fit(X, [["A", set()], *y[1:]])


def test_learn_refuses_what_an_algorithm_cannot_use() -> None:
    rows, gold = oracle.corpus(3)
    parameters = Parameters.of(rows, gold, 12, 3)
    with pytest.raises(ScoreError, match="labels that are not known"):
        list(learn(rows, np.where(gold == 0, -1, gold), parameters, LearningConfig("arow")))
