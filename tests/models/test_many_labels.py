"""Chains with many labels, few of whose pairs have a weight: the listed pairs give what the whole table gives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.taggers.features.crf.array_chain import MANY_LABELS, Listed
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.recipe import cost_notes

C, N_ATTRIBUTES = 70, 30
Problem = tuple[AttributeRows, np.ndarray, Parameters]


def problem(valued: bool = False, n_sentences: int = 19) -> Problem:
    """Sentences of 1 to 40 tokens, an empty one among them; the number is no multiple of the lanes."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, n_sentences)
    lengths[:3] = 40, 0, 1
    counts = random.integers(0, 4, lengths.sum())
    ids = random.integers(0, N_ATTRIBUTES, counts.sum()).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), ids, values)
    gold = random.integers(0, C, lengths.sum())
    return rows, gold, Parameters.of(rows, gold, N_ATTRIBUTES, C)


def scaled(parameters: Parameters, scale: float, arc: float) -> np.ndarray:
    """Weights of this size; every arc has the same added, so that a large negative one makes sums cancel."""
    weights = scale * np.random.default_rng(1).normal(size=len(parameters))
    weights[parameters.arc_weights] += arc
    return weights


SCALES = [(0.5, 0.0), (3.0, 0.0), (1.0, -30.0), (1.0, 30.0), (400.0, 0.0), (1.0, -500.0)]


@pytest.mark.parametrize(("scale", "arc"), SCALES)
@pytest.mark.parametrize("valued", [False, True])
def test_loss_and_gradient(scale: float, arc: float, valued: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, gold, parameters = problem(valued)
    shares = np.random.default_rng(2).uniform(0.0, 2.0, len(rows.lengths))
    weights = scaled(parameters, scale, arc)
    sparse = Likelihood(rows, gold, parameters, shares)
    assert sparse.listed is not None
    loss, gradient = sparse(weights)
    monkeypatch.setattr(Listed, "of", lambda parameters: None)
    wanted, slope = Likelihood(rows, gold, parameters, shares)(weights)
    assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient, slope, atol=1e-8)


@pytest.mark.parametrize(("scale", "arc"), SCALES)
def test_answers(scale: float, arc: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, parameters = problem()
    weights = scaled(parameters, scale, arc)

    def answers() -> tuple[list[list[str]], list[np.ndarray], np.ndarray]:
        crf = FeatureCRF(tuple(map(str, range(C))), KeyIndex(), parameters, weights)
        chain = crf.array_chain(rows, batch=np.flatnonzero(rows.lengths))
        assert (chain.listed is None) == (Listed.of(parameters) is None)
        return crf.predict(rows), crf.marginals(rows), chain.argmax

    tags, tables, best = answers()
    monkeypatch.setattr(Listed, "of", lambda parameters: None)
    wanted_tags, wanted_tables, wanted_best = answers()
    assert tags == wanted_tags
    assert (best == wanted_best).all()
    for table, wanted in zip(tables, wanted_tables, strict=True):
        np.testing.assert_allclose(table, wanted, atol=1e-9)


def test_ties_go_to_the_first_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers as weights make many ties, with listed pairs and without."""
    rows, _, parameters = problem()
    weights = np.random.default_rng(3).integers(-1, 2, len(parameters)).astype(float)
    crf = [FeatureCRF(tuple(map(str, range(C))), KeyIndex(), parameters, weights) for _ in range(2)]
    found = crf[0].predict(rows)
    monkeypatch.setattr(Listed, "of", lambda parameters: None)
    assert found == crf[1].predict(rows)


def test_when_pairs_are_listed() -> None:
    rows, gold, parameters = problem()
    assert C >= MANY_LABELS and Listed.of(parameters) is not None
    assert Listed.of(Parameters.of(rows, gold, N_ATTRIBUTES, C, all_transitions=True)) is None
    assert Listed.of(parameters.with_latent(2)) is None
    few = gold % 9
    assert Listed.of(Parameters.of(rows, few, N_ATTRIBUTES, 9)) is None


def test_threads_share_the_sentences(worth_splitting: None) -> None:
    rows, gold, parameters = problem()
    weights = scaled(parameters, 1.0, 0.0)
    shared = Likelihood(rows, gold, parameters)
    assert len(shared._ranges) == 2
    loss, gradient = shared(weights)
    alone = Likelihood(rows, gold, parameters)
    alone._ranges = [(1, len(rows.lengths))]
    wanted, slope = alone(weights)
    assert loss == pytest.approx(wanted)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)


def tagged(n_tags: int, n_tokens: int) -> list[list[str]]:
    """Each tag is followed by the next one."""
    return [[f"T{t % n_tags}" for t in range(n_tokens)]]


@pytest.mark.parametrize(
    ("settings", "n_tags", "n_tokens", "said"),
    [
        ({}, 40, 60_000, []),
        ({}, 1000, 60_000, ["1,000 tags: 1,000 of 1,000,000 pairs follow one another and have transition weights"]),
        ({"all_transitions": True}, 1000, 60_000, ["1,000 tags: about 36 seconds an iteration .*--min-tag-count 10$"]),
        ({"algorithm": "sgd"}, 1000, 600_000, ["about 8 minutes .*consider --algorithm lbfgs or --model logistic or"]),
        ({"order": 2}, 500, 60_000, ["500 tags: about 36 seconds .*consider --order 1 or --model logistic or"]),
        ({"model": "logistic"}, 1000, 60_000, []),
        ({"model": "hmm"}, 1000, 60_000, []),
    ],
)
def test_what_is_said_of_many_tags(settings: dict[str, Any], n_tags: int, n_tokens: int, said: list[str]) -> None:
    found = list(cost_notes(tagged(n_tags, n_tokens), LearningConfig(**settings), scheme=False))
    assert len(found) == len(said) and all(map(re.search, said, found)), found


def test_a_scheme_needs_the_whole_table() -> None:
    (note,) = cost_notes(tagged(1000, 60_000), LearningConfig(), scheme=True)
    assert "about 36 seconds" in note
