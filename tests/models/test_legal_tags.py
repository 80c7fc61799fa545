"""Feature models that know their tag scheme: every answer is legal, in the loss as in all queries."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.models.feature_oracle import labellings, log_sum, loss, score
from trelliswork.data import Sentence
from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.errors import ConstraintError
from trelliswork.models.taggers.features.corpus import TaggedData
from trelliswork.models.taggers.features.crf.legality import legal_of
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.features.learners.learning import parameters_of
from trelliswork.models.taggers.features.learners.likelihood import Likelihood
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.tags.schemes import violations
from trelliswork.training.lbfgs import LBFGS

TAGS = {"IOB1": ["O", "I-X", "B-X", "I-Y"], "IOB2": ["O", "B-X", "I-X", "B-Y"], "IOBES": ["O", "B-X", "E-X", "S-X"]}
N_ATTRIBUTES = 9
Problem = tuple[AttributeRows, np.ndarray, Parameters]


def legal_corpus(scheme: str, *, valued: bool = False, seed: int = 0) -> Problem:
    """Random attributes, each sentence with one of its legal labellings at random; all transitions have weights."""
    random, tags = np.random.default_rng(seed), TAGS[scheme]
    lengths = np.array([1, 2, 4, 3, 1, 4, 4, 2])
    counts = random.integers(0, 4, lengths.sum())
    ids = random.integers(0, N_ATTRIBUTES, counts.sum()).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(lengths, np.concatenate([[0], np.cumsum(counts)]), ids, values)
    gold = list[int]()
    for n in lengths.tolist():
        legal = [y for y in labellings(n, len(tags)) if not violations([tags[j] for j in y], scheme)]
        gold += legal[random.integers(len(legal))]
    corpus = Corpus(rows, np.array(gold), legal=legal_of(tags, scheme))
    return rows, corpus.gold, parameters_of(corpus, N_ATTRIBUTES, len(tags), LearningConfig(all_transitions=True))


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("scale", [0.5, 300.0])
def test_loss_and_gradient_are_those_of_the_legal_labellings(scheme: str, scale: float) -> None:
    rows, gold, parameters = legal_corpus(scheme, valued=True)
    random = np.random.default_rng(1)
    weights = random.normal(size=len(parameters)) * scale
    likelihood = Likelihood(rows, gold, parameters)
    found, gradient = likelihood(weights)
    assert found == pytest.approx(loss(rows, gold, parameters, weights), rel=1e-9, abs=1e-9)
    direction, step = random.normal(size=len(parameters)), 1e-5
    sides = [loss(rows, gold, parameters, weights + side * direction) for side in (step, -step)]
    assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("scheme", TAGS)
@pytest.mark.parametrize("latent", [1, 2])
def test_loss_of_labels_that_are_not_known(scheme: str, latent: int) -> None:
    """The general kernel: some labels unknown, or split into states."""
    rows, gold, parameters = legal_corpus(scheme)
    hidden = np.where(np.arange(len(gold)) % 3 == 0, -1, gold)
    if latent == 1:
        weights = np.random.default_rng(2).normal(size=len(parameters))
        wanted = loss(rows, hidden, parameters, weights)
        assert Likelihood(rows, hidden, parameters)(weights)[0] == pytest.approx(wanted)
        return
    split = parameters.with_latent(latent)
    weights = np.random.default_rng(2).normal(size=len(split))
    sets = np.concatenate([np.ones((1, split.n_labels), bool), np.arange(split.n_labels) // 2 == np.arange(4)[:, None]])
    codes = np.where(hidden < 0, -1, -2 - hidden)
    wanted = loss(rows, codes, replace(split, latent=1), weights, sets=sets)
    assert Likelihood(rows, hidden, split)(weights)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("scheme", TAGS)
def test_answers_are_those_of_the_legal_labellings(scheme: str) -> None:
    rows, _, parameters = legal_corpus(scheme)
    weights = 2 * np.random.default_rng(3).normal(size=len(parameters))
    crf = FeatureCRF(tuple(TAGS[scheme]), KeyIndex(), parameters, weights)
    best, tables = crf.predict(rows), crf.marginals(rows)
    for s, n in enumerate(rows.lengths.tolist()):
        scores = {y: score(rows, s, y, parameters, weights) for y in labellings(n, 4)}
        legal = {y: value for y, value in scores.items() if value > -np.inf}
        assert tuple(best[s]) == tuple(TAGS[scheme][j] for j in max(legal, key=lambda y: legal[y]))
        assert not violations(best[s], scheme)
        total = log_sum(list(legal.values()))
        wanted = np.zeros((n, 4))
        for y, value in legal.items():
            wanted[np.arange(n), y] += np.exp(value - total)
        np.testing.assert_allclose(tables[s], wanted, atol=1e-12)
    batch, chain = next(crf.distributions(rows))
    n, paths = int(rows.lengths[batch[0]]), chain.top_k(256)[1][:, 0]
    assert int((paths > -np.inf).sum()) == sum(
        not violations([TAGS[scheme][j] for j in y], scheme) for y in labellings(n, 4)
    )


TRAIN = [
    Sentence(("Ann", "Lee", "sings", "in", "New", "York"), ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC")),
    Sentence(("New", "York", "sings"), ("B-LOC", "I-LOC", "O")),
    Sentence(("Stop",), ("O",)),
]
STRANGE = [Sentence(tuple(words)) for words in itertools.permutations(("York", "Lee", "New", "York"))]
EVERY = [
    {"algorithm": "lbfgs"}, {"algorithm": "sgd"}, {"algorithm": "perceptron"}, {"algorithm": "pa"},
    {"algorithm": "arow"}, {"algorithm": "margin"}, {"algorithm": "herding"}, {"samples": 2}, {"order": 2},
    {"latent": 2}, {"hidden_units": 3}, {"model": "memm"}, {"model": "logistic"}, {"model": "hmm"},
    {"model": "naive-bayes"},
]  # fmt: skip


@pytest.mark.parametrize("settings", EVERY, ids=lambda each: "-".join(map(str, each.values())))
def test_every_model_answers_legally_and_stays_so_on_disk(settings: dict[str, object], tmp_path: Path) -> None:
    learned = settings.get("model") not in ("hmm", "naive-bayes")
    config = LearningConfig(**settings, **({"max_iterations": 3} if learned else {}))  # type: ignore[arg-type]
    FeatureTagger.fit(TRAIN, config).save(tmp_path / "m")
    tagger = FeatureTagger.load(tmp_path / "m")
    answers = tagger.predict(STRANGE, top_k=5) + tagger.predict(STRANGE[:3], pins=[{1: "I-PER"}] * 3, top_k=2)
    for answer in answers:
        for tags in (answer.value, *(other.value for other in answer.alternatives)):
            assert not violations(tags, "IOB2"), tags
    assert [answer.value for answer in answers[: len(STRANGE)]] == tagger.tag(STRANGE)


def test_a_model_saved_before_is_unconstrained(tmp_path: Path) -> None:
    free = FeatureTagger.fit(TRAIN, LearningConfig(max_iterations=3, constrained=False))
    free.save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    del stored["settings"]["constrained"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    tagger = FeatureTagger.load(tmp_path / "m")
    assert tagger.crf.parameters.legal is None and not tagger.config.constrained
    assert len(tagger.analyses([TRAIN[2]], 9)[0]) == len(tagger.labels.vocabulary)


def test_plain_tags_know_no_scheme() -> None:
    tagger = FeatureTagger.fit([Sentence(("Ann", "sings"), ("NNP", "VBZ"))], LearningConfig(max_iterations=2))
    assert tagger.crf.parameters.legal is None


def test_tags_that_break_the_scheme_are_read_as_conlleval_reads_them() -> None:
    broken = [*TRAIN, Sentence(("in", "York"), ("O", "I-LOC"), file="x.txt", line=9)]
    tagger = FeatureTagger.fit(broken, LearningConfig(c2=0.01))
    assert tagger.tag([Sentence(("in", "York"))]) == [["O", "B-LOC"]]
    (note,) = tagger.notes(broken, ())
    assert "1 training tag broke the IOB2 scheme, first at x.txt:10 (I-LOC after O: a span starts with B-LOC" in note
    free = FeatureTagger.fit(broken, LearningConfig(c2=0.01, constrained=False))
    assert free.tag([Sentence(("in", "York"))]) == [["O", "I-LOC"]] and free.notes(broken, ()) == []


def test_known_tags_that_leave_nothing_legal() -> None:
    partial = [*TRAIN, Sentence(("a", "b", "c"), ("?", "O", "I-PER|I-LOC"), file="x.txt", line=9)]
    with pytest.raises(ConstraintError, match=r"x.txt:9: no legal IOB2 tags fit \? O I-PER\|I-LOC; .*--unconstrained"):
        FeatureTagger.fit(TaggedData(partial, partial=True), LearningConfig(max_iterations=2))
    fine = [*TRAIN, Sentence(("a", "b", "c"), ("?", "I-PER", "I-PER|I-LOC"))]
    tagger = FeatureTagger.fit(TaggedData(fine, partial=True), LearningConfig(max_iterations=30))
    assert tagger.tag([["a", "b", "c"]]) == [["B-PER", "I-PER", "I-PER"]]


def test_tags_that_cannot_fill_every_sentence() -> None:
    with pytest.raises(ConstraintError, match=r"any length in IOBES, such as O; got only B-X, E-X; .*--unconstrained"):
        FeatureTagger.fit([Sentence(("a", "b"), ("B-X", "E-X"))])


def test_the_minimum_of_the_constrained_loss_is_not_above_the_free_one() -> None:
    rows, gold, parameters = legal_corpus("IOBES")
    losses = []
    for each in (parameters, replace(parameters, legal=None)):
        *_, last = LBFGS(l2=0.1, max_iterations=50).minimise(Likelihood(rows, gold, each), np.zeros(len(each)))
        losses.append(last.loss)
    assert losses[0] < losses[1]
