"""Latent-variable CRFs [S4.128-133] and chains of second order, against enumeration of all states."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.models import feature_oracle as oracle
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, KeyIndex, Templates
from trelliswork.data.corpus import builtin_corpus
from trelliswork.distributions import LinearChain
from trelliswork.distributions.grouped_chain import GroupedChain
from trelliswork.errors import DataError, ScoreError
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.config import Algorithm, LearningConfig
from trelliswork.models.taggers.features.learners.learning import learn
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.tagger import FeatureTagger, strongest

ON_PAIRS = np.arange(12) % 3 == 0
CORPUS = builtin_corpus(sizes=(300, 60, 1))
TRAIN, TEST = ([Sentence(x.words, x.chunks, (x.pos,)) for x in CORPUS[part]] for part in ("train", "dev"))
Labelling = tuple[int, ...]


def crf_of(parameters: Parameters, weights: np.ndarray, n_labels: int) -> FeatureCRF:
    index = KeyIndex.of(np.arange(1, 13).astype(np.uint64))
    return FeatureCRF(tuple("abc"[:n_labels]), index, parameters, weights)


def latent_scores(rows: AttributeRows, s: int, parameters: Parameters, weights: np.ndarray) -> dict[Labelling, float]:
    """log Σ_z exp score(y, z) of every labelling y [S4.129-130]."""
    found: dict[Labelling, list[float]] = {}
    for states in oracle.labellings(int(rows.lengths[s]), parameters.n_labels):
        labels = tuple(state // parameters.latent for state in states)
        found.setdefault(labels, []).append(oracle.score(rows, s, states, parameters, weights))
    return {labels: oracle.log_sum(scores) for labels, scores in found.items()}


def second_order_scores(
    rows: AttributeRows, s: int, parameters: Parameters, weights: np.ndarray
) -> dict[Labelling, float]:
    """The scores of the labellings whose pairs of neighbours have a weight."""
    flat = Parameters(parameters.n_labels, parameters.offsets, parameters.labels, np.empty((0, 2), np.int64))
    arcs = {tuple(arc): weights[parameters.n_states + k] for k, arc in enumerate(parameters.arcs.tolist())}
    found = {}
    for labels in oracle.labellings(int(rows.lengths[s]), parameters.n_labels):
        total = oracle.score(rows, s, labels, flat, weights)
        pairs = list(itertools.pairwise(labels))
        if all((-1, *pair) in arcs for pair in pairs):
            for i, pair in enumerate(pairs):
                far = labels[i - 1] if i else parameters.n_labels
                total += arcs[-1, *pair] + arcs.get((far, *pair), 0.0)
            found[labels] = total
    return found


def scores_of(rows: AttributeRows, s: int, parameters: Parameters, weights: np.ndarray) -> dict[Labelling, float]:
    return (second_order_scores if parameters.order == 2 else latent_scores)(rows, s, parameters, weights)


def loss_by_enumeration(
    rows: AttributeRows, gold: np.ndarray, parameters: Parameters, weights: np.ndarray, sets: np.ndarray
) -> float:
    total = 0.0
    for s in range(len(rows.lengths)):
        scores = scores_of(rows, s, parameters, weights)
        codes = gold[rows.starts[s] : rows.starts[s + 1]].tolist()
        kept = [score for labels, score in scores.items() if oracle.agrees(labels, codes, sets)]
        total += oracle.log_sum(list(scores.values())) - oracle.log_sum(kept)
    return total


def problem(kind: str, partial: bool, seed: int = 0) -> tuple[AttributeRows, np.ndarray, Parameters, np.ndarray]:
    n_labels = 3 if kind == "second" else 2
    rows, gold = oracle.corpus(n_labels, n_sentences=10, seed=seed)
    sets = np.ones((2, n_labels), np.bool_)
    sets[1, 0] = False
    if partial:
        gold = np.where(np.arange(len(gold)) % 3 == 0, np.where(gold > 0, -2, -1), gold)
    on_pairs = ON_PAIRS if kind == "latent with pairs" else None
    parameters = Parameters.of(rows, gold, 12, n_labels, sets=sets).with_pairs(rows, gold, on_pairs, sets=sets)
    if kind == "second":
        return rows, gold, parameters.with_second_order(rows, gold, sets), sets
    return rows, gold, parameters.with_latent(2), sets


KINDS = ["latent", "latent with pairs", "second"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("scale", [0.5, 300.0])
def test_loss_and_gradient(kind: str, partial: bool, scale: float) -> None:
    rows, gold, parameters, sets = problem(kind, partial)
    random = np.random.default_rng(1)
    weights, direction = random.normal(size=(2, len(parameters)))
    weights *= scale
    likelihood = Likelihood(rows, gold, parameters, sets=sets)
    loss, gradient = likelihood(weights)
    assert loss == pytest.approx(loss_by_enumeration(rows, gold, parameters, weights, sets), rel=1e-9, abs=1e-9)
    step = 1e-5
    slope = (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_equal_enumeration(kind: str) -> None:
    rows, _, parameters, _ = problem(kind, False, seed=3)
    n_labels = 3 if kind == "second" else 2
    weights = np.random.default_rng(2).normal(size=len(parameters))
    crf = crf_of(parameters, weights, n_labels)
    marginals, best = crf.marginals(rows), crf.predict(rows)
    for batch, chain in crf.distributions(rows):
        assert isinstance(chain, GroupedChain)
        tops, top_scores = chain.top_k(3)
        for row, s in enumerate(batch.tolist()):
            n = int(rows.lengths[s])
            scores = scores_of(rows, s, parameters, weights)
            log_z = oracle.log_sum(list(scores.values()))
            table = np.zeros((n, n_labels))
            for labels, value in scores.items():
                table[np.arange(n), labels] += np.exp(value - log_z)
            np.testing.assert_allclose(marginals[s], table, atol=1e-10)
            ranked = sorted(scores, key=lambda y: -scores[y])
            if kind == "second":
                assert best[s] == ["abc"[y] for y in ranked[0]]
            for rank in range(min(3, len(ranked))):
                assert tuple(tops[rank, row, :n].tolist()) == ranked[rank]
                assert float(top_scores[rank, row]) == pytest.approx(scores[ranked[rank]])
            value = torch.zeros(len(batch), chain.event_shape[0], dtype=torch.long)
            value[row, :n] = torch.tensor(ranked[-1])
            assert float(chain.log_prob(value)[row]) == pytest.approx(scores[ranked[-1]] - log_z)


def test_spans_of_grouped_states() -> None:
    names, label_of = ["O", "B-X", "I-X"], torch.tensor([0, 1, 1, 2, 2])
    generator = torch.Generator().manual_seed(0)
    states = LinearChain(torch.randn(1, 4, 5, generator=generator), torch.randn(5, 5, generator=generator))
    chain = GroupedChain(states, label_of)
    total = 0.0
    for labels in itertools.product(range(3), repeat=4):
        if labels[1:3] == (1, 2) and labels[3] != 2:
            total += float(chain.log_prob(torch.tensor([labels])).exp())
    found = chain.span_probabilities([[(1, 3, "X")]], tags=names, scheme="IOB2")
    assert float(found[0]) == pytest.approx(total, rel=1e-4)
    sample = chain.sample((200,), generator=generator)
    assert sample.shape == (200, 1, 4)
    assert int(sample.max()) == 2
    held = chain.constrain(torch.tensor([[-1, 1, -1, -1]]))
    assert float(held.marginals[0, 1, 1]) == pytest.approx(1.0)
    assert float(chain.log_prob_of_set(torch.tensor([[-1, 1, -1, -1]])).exp()) == pytest.approx(
        float(chain.marginals[0, 1, 1]), rel=1e-4
    )


def exclusive_or() -> tuple[AttributeRows, np.ndarray]:
    """The label is whether the two attributes of a token differ: one weight for each cannot tell, hidden states can."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 2, (120, 2))
    ids = (bits + np.array([0, 2])).astype(np.int32).ravel()
    return AttributeRows(np.full(120, 1), np.arange(0, 241, 2), ids), (bits[:, 0] ^ bits[:, 1]).astype(np.int64)


@pytest.mark.parametrize("algorithm", ["lbfgs", "sgd"])
def test_hidden_states_learn_what_weights_alone_cannot(algorithm: Algorithm) -> None:
    rows, gold = exclusive_or()
    plain = Parameters.of(rows, gold, 4, 2)
    right = []
    for latent in (1, 2):
        parameters = plain.with_latent(latent)
        config = LearningConfig(algorithm, c2=0.01, latent=latent, seed=1, max_iterations=200)
        *_, last = learn(rows, gold, parameters, config)
        found = [int(row[0]) for row in FeatureCRF(("0", "1"), KeyIndex(), parameters, last.weights).predict(rows)]
        right.append(np.mean(np.array(found) == gold))
    assert right[0] < 0.8
    assert right[1] == 1.0


def test_second_order_remembers_two_labels() -> None:
    """a a b a a b ...: after a, only the label before it tells what follows."""
    gold = np.tile([0, 0, 1], 20).astype(np.int64)
    rows = AttributeRows(np.array([30, 30]), np.zeros(61, np.int64), np.empty(0, np.int32))
    parameters = Parameters.of(rows, gold, 0, 2).with_second_order(rows, gold)
    *_, last = learn(rows, gold, parameters, LearningConfig(order=2, c2=0.01))
    found = FeatureCRF(("0", "1"), KeyIndex(), parameters, last.weights).predict(rows)
    assert [int(y) for row in found for y in row] == gold.tolist()


def test_a_sentence_longer_than_all_of_the_training_data_has_labels() -> None:
    sentences = [Sentence(("a", "b"), ("A", "B"))] * 3
    tagger = FeatureTagger.fit(sentences, LearningConfig(order=2))
    assert tagger.tag([sentences[0], Sentence(("a", "b", "a", "b", "c"))])[0] == ["A", "B"]


def test_the_best_label_of_each_token() -> None:
    rows, _, parameters, _ = problem("latent", False)
    crf = crf_of(parameters, np.random.default_rng(0).normal(size=len(parameters)), 2)
    chain = crf.chain(rows)
    assert isinstance(chain, GroupedChain)
    for s, table in enumerate(crf.marginals(rows)):
        assert chain.best_by_token[s, : len(table)].tolist() == table.argmax(1).tolist()


@pytest.mark.parametrize("settings", [{"latent": 2}, {"order": 2}])
def test_a_tagger_from_sentences_to_disk_and_back(settings: dict[str, int], tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(TRAIN, LearningConfig(max_iterations=25, **settings))  # type: ignore[arg-type]
    assert tagger.evaluate(TEST)["score"] > 0.85
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert again.tag(TEST) == tagger.tag(TEST)
    assert again.confidences(TEST[:3]) == tagger.confidences(TEST[:3])
    assert list(strongest(again, 3)) == list(strongest(tagger, 3))
    best, second = again.analyses(TEST[:1], 2)[0]
    assert best.probability >= second.probability > 0
    place = next(i for i, (a, b) in enumerate(zip(best.tags, second.tags, strict=True)) if a != b)
    assert again.tag(TEST[:1], [{place: second.tags[place]}])[0][place] == second.tags[place]
    (explanation,) = again.explain(TEST[:1])
    chain = again.chain(TEST[:1])
    assert isinstance(chain, GroupedChain)
    states = chain.states
    assert sum(token.score for token in explanation.tokens) == pytest.approx(float(states.score(states.argmax)))
    assert len(again.crf.arc_names()) == len(again.crf.parameters.arcs)


def test_settings_that_do_not_go_together() -> None:
    for settings, match in (
        ({"latent": 0}, "latent must be at least 1"),
        ({"order": 3}, "order must be 1 or 2"),
        ({"latent": 2, "order": 2}, "latent 2 cannot be combined with order 2; leave out order"),
        (
            {"latent": 2, "algorithm": "perceptron"},
            "algorithm perceptron; choose algorithm lbfgs or sgd",
        ),
        ({"order": 2, "algorithm": "sgd"}, "order 2 cannot be combined with algorithm sgd"),
    ):
        with pytest.raises(ScoreError, match=match):
            LearningConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected the template B"):
        FeatureTagger.fit(TRAIN[:5], LearningConfig(order=2), templates=Templates.parse(["U1:%x[0,0]"]))
    with pytest.raises(ScoreError, match="need order 1"):
        FeatureTagger.fit(TRAIN[:5], LearningConfig(order=2), templates=Templates.parse(["B", "B1:%x[0,0]"]))
