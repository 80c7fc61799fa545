"""Conjunctions by gain: the gain is that of the best weight; what atomic attributes cannot tell apart is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.models.test_feature_crf import corpus, model_of
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, Conjunctions, Templates
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.induction import Round, gains_of, induce
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.training.lbfgs import LBFGS

PAIRS = np.array([[0, 1], [0, 2], [1, 3]])


def alone(rows: AttributeRows) -> AttributeRows:
    """Every token a sentence of its own."""
    return AttributeRows(np.ones(rows.n_tokens, np.int64), rows.offsets, rows.ids, rows.values)


def true_gain(
    rows: AttributeRows, gold: np.ndarray, pair: np.ndarray, parameters: Parameters, weights: np.ndarray, c1: float,
    c2: float,
) -> float:  # fmt: skip
    """How much one more weight lowers the loss at most: the likelihood with all labels of the pair, one at a time."""
    extended = Conjunctions(40, pair[None].astype(np.int32)).extended(rows)
    c, n = parameters.n_labels, parameters.n_states
    offsets = np.concatenate([parameters.offsets, [n + c]])
    labels = np.concatenate([parameters.labels, np.arange(c)]).astype(np.int32)
    likelihood = Likelihood(extended, gold, Parameters(c, offsets, labels, parameters.arcs))
    best = 0.0
    for label in range(c):

        def loss(weight: float, label: int = label) -> float:
            new = np.zeros(c)
            new[label] = weight
            there = likelihood(np.concatenate([weights[:n], new, weights[n:]]))[0]
            return there + c1 * abs(weight) + c2 * weight**2

        best = max(
            best, loss(0.0) - minimize_scalar(loss, bounds=(-8, 8), options={"xatol": 1e-7}, method="bounded").fun
        )
    return best


@pytest.mark.parametrize(("valued", "c1", "c2"), [(False, 0.0, 0.1), (True, 0.0, 0.5), (False, 0.7, 0.1)])
@pytest.mark.parametrize("neighbours", [False, True])
def test_the_gain_is_that_of_the_best_weight(valued: bool, c1: float, c2: float, neighbours: bool) -> None:
    """Exactly so where tokens do not depend on one another: alone, or without scores of neighbouring labels."""
    rows, gold = corpus(3, valued=valued)
    rows = rows if neighbours else alone(rows)
    parameters = Parameters.of(rows, gold, 40, 3)
    parameters = Parameters(3, parameters.offsets, parameters.labels, parameters.arcs[:0])
    weights = np.random.default_rng(1).normal(size=len(parameters))
    marginals = np.concatenate(model_of(rows, parameters, weights).marginals(rows))
    allowed = np.ones((3, 3), np.bool_)
    config = LearningConfig(c1=c1, c2=c2)
    gains = gains_of(rows, gold, marginals, Conjunctions.none(40), PAIRS, allowed, config)
    wanted = [true_gain(rows, gold, pair, parameters, weights, c1, c2) for pair in PAIRS]
    assert gains == pytest.approx(wanted, abs=1e-5)
    assert max(gains) > 0.01


def test_with_neighbours_held_fixed_the_gain_is_near() -> None:
    rows, gold = corpus(3)
    parameters = Parameters.of(rows, gold, 40, 3)
    weights = 0.3 * np.random.default_rng(1).normal(size=len(parameters))
    marginals = np.concatenate(model_of(rows, parameters, weights).marginals(rows))
    allowed, config = np.ones((3, 3), np.bool_), LearningConfig(c2=0.1)
    gains = gains_of(rows, gold, marginals, Conjunctions.none(40), PAIRS, allowed, config)
    wanted = [true_gain(rows, gold, pair, parameters, weights, 0.0, 0.1) for pair in PAIRS]
    assert gains == pytest.approx(wanted, rel=0.2)
    assert gains != pytest.approx(wanted, rel=1e-6)


def exclusive_or(n: int, seed: int, order: int) -> tuple[AttributeRows, np.ndarray]:
    """Tokens with one of two values in each of four places; the label is the parity of the first `order`."""
    values = np.random.default_rng(seed).integers(0, 2, (n, 4))
    ids = (values + 2 * np.arange(4)).astype(np.int32)
    return AttributeRows(np.full(n // 4, 4), np.arange(0, 4 * n + 1, 4), ids.reshape(-1)), values[:, :order].sum(1) % 2


@pytest.mark.parametrize(("order", "n_wanted"), [(2, 4), (3, 40)])
def test_parity_is_learned_from_conjunctions(order: int, n_wanted: int) -> None:
    rows, gold = exclusive_or(400, 0, order)
    seen = list[Round]()
    config = LearningConfig(c2=0.01, induce=n_wanted)
    conjunctions = induce(
        Corpus(rows, gold), 8, 2, config, rounds=1 if order == 2 else 5, on_round=lambda each: bool(seen.append(each))
    )
    if order == 2:  # exactly the four that matter
        assert {tuple(pair) for pair in conjunctions.pairs.tolist()} == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert all((np.diff(each.gains) <= 0).all() for each in seen)
    right = {}
    for name, known in (("atomic", Conjunctions.none(8)), ("induced", conjunctions)):
        extended = known.extended(rows)
        parameters = Parameters.of(extended, gold, known.n_attributes, 2)
        *_, last = LBFGS(l2=0.01).minimise(Likelihood(extended, gold, parameters), np.zeros(len(parameters)))
        predicted = [int(y) for row in model_of(extended, parameters, last.weights).predict(extended) for y in row]
        right[name] = np.mean(np.array(predicted) == gold)
    assert right["atomic"] < 0.7
    assert right["induced"] == 1.0


SENTENCES = [
    Sentence((a + b, a, b), ("yes" if a == b else "no", "O", "O"), ((a, "-", "-"), (b, "-", "-")))
    for a in "xy" for b in "uxy"
] * 6  # fmt: skip
ATOMIC = Templates.parse(["U1:%x[0,1]", "U2:%x[0,2]", "B"])


def test_a_tagger_with_conjunctions_can_be_saved_and_explained(tmp_path: Path) -> None:
    plain = FeatureTagger.fit(SENTENCES, LearningConfig(c2=0.01), templates=ATOMIC)
    tagger = FeatureTagger.fit(SENTENCES, LearningConfig(c2=0.01, induce=6), templates=ATOMIC)
    gold = [list(each.tags or ()) for each in SENTENCES]
    assert plain.tag(SENTENCES) != gold
    assert tagger.tag(SENTENCES) == gold
    pairs = {"U1:x & U2:x": 1, "U1:y & U2:y": 5}  # either tells all apart; the sentence that has it
    (pair,) = [name for name in tagger.names if "&" in name]
    (shown,) = tagger.explain([SENTENCES[pairs[pair]]])
    assert pair in {vote.name for token in shown.tokens for vote in token.votes}
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert list(again.names) == list(tagger.names)
    assert again.confidences(SENTENCES[:6]) == tagger.confidences(SENTENCES[:6])


def test_conjunctions_of_hashed_attributes(tmp_path: Path) -> None:
    tagger = FeatureTagger.fit(SENTENCES, LearningConfig(c2=0.01, induce=6, hash_bits=12), templates=ATOMIC)
    assert tagger.tag(SENTENCES) == [list(each.tags or ()) for each in SENTENCES]
    tagger.save(tmp_path / "model")
    again = FeatureTagger.load(tmp_path / "model")
    assert again.tag(SENTENCES) == tagger.tag(SENTENCES)
    assert any(" & #" in str(each) for each in again.explain(SENTENCES))


def test_parts_of_a_conjunction_are_kept_even_without_weights() -> None:
    tagger = FeatureTagger.fit(SENTENCES, LearningConfig(c1=0.5, c2=0.0, induce=6), templates=ATOMIC)
    crf = tagger.crf
    assert len(crf.conjunctions) > 0
    crf.conjunctions.check()
    assert len(tagger.names) == crf.conjunctions.n_attributes == len(crf.parameters.offsets) - 1


def test_a_round_may_end_it() -> None:
    rows, gold = exclusive_or(400, 0, 2)
    assert len(induce(Corpus(rows, gold), 8, 2, LearningConfig(induce=10), on_round=lambda _: True)) == 2


def test_unknown_labels_say_nothing() -> None:
    rows, gold = exclusive_or(400, 0, 2)
    marginals, config = np.full((400, 2), 0.5), LearningConfig()
    half = np.where(np.arange(400) < 200, gold, -1)
    allowed = np.ones((1, 2), np.bool_)
    found = gains_of(rows, half, marginals, Conjunctions.none(8), np.array([[0, 2]]), allowed, config)
    starts = rows.offsets[:201]
    first = AttributeRows(np.full(50, 4), starts, rows.ids[: starts[-1]])
    wanted = gains_of(first, gold[:200], marginals[:200], Conjunctions.none(8), np.array([[0, 2]]), allowed, config)
    assert found == pytest.approx(wanted)


def test_the_data_may_have_nothing_to_conjoin() -> None:
    rows = AttributeRows(np.array([2]), np.array([0, 0, 1]), np.array([0], np.int32))
    assert len(induce(Corpus(rows, np.array([0, 1])), 1, 2, LearningConfig(induce=5))) == 0
