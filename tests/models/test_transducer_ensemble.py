"""Transducers that answer together: the mean of their probabilities, and the best targets under it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import trelliswork as tw
from tests.models.test_edit_transducer import FORMAT, SMALL
from tests.models.test_edit_transducer import pairs as plurals
from tests.models.test_pair_ngram import PAIRS, SOURCES, enumerated, sentences
from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.transducers import ensemble as module
from trelliswork.models.transducers.config import PairNgramConfig
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.models.transducers.ensemble import TransducerEnsemble
from trelliswork.models.transducers.pair_ngram.model import PairNgram


@pytest.fixture(scope="module")
def ngrams() -> list[PairNgram]:
    """Three that disagree: of other orders, and from other pairs."""
    return [
        PairNgram.fit(sentences(PAIRS[a:b]), PairNgramConfig(order=n))
        for a, b, n in ((0, 15, 3), (0, 9, 1), (5, 15, 2))
    ]


def means(members: list[PairNgram], source: str) -> dict[tuple[str, ...], float]:
    """The mean probability of every target, by enumeration of each member."""
    found: dict[tuple[str, ...], float] = {}
    for member in members:
        every = enumerated(member, source)
        total = sum(p for each in every.values() for _, p in each)
        for target, each in every.items():
            found[target] = found.get(target, 0.0) + sum(p for _, p in each) / total / len(members)
    return found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("k", [1, 3])
def test_the_best_targets_are_those_of_the_mean_over_all_targets(ngrams: list[PairNgram], source: str, k: int) -> None:
    expected = means(ngrams, source)
    found = TransducerEnsemble(ngrams).transduced([tuple(source)], k, False)[0]
    assert found.certain
    ranked = sorted(expected.values(), reverse=True)[:k]
    assert [math.exp(p) for _, p in found.best] == pytest.approx(ranked, abs=1e-8)
    for target, p in found.best:
        assert math.exp(p) == pytest.approx(expected[target], abs=1e-8)


def test_lists_grow_until_the_answer_is_certain(ngrams: list[PairNgram], monkeypatch: pytest.MonkeyPatch) -> None:
    """With lists of one target each the mean of all may be on none of them: then it is not certain."""
    monkeypatch.setattr(module, "FIRST", 1)
    answers = TransducerEnsemble(ngrams).transduced([tuple(each) for each in SOURCES], 1, False)
    assert all(each.certain for each in answers)
    monkeypatch.setattr(module, "MOST", 1)
    short = TransducerEnsemble(ngrams).transduced([tuple(each) for each in SOURCES], 1, False)
    assert not all(each.certain for each in short)
    for source, each in zip(SOURCES, short, strict=True):
        if each.certain:
            assert math.exp(each.best[0][1]) == pytest.approx(max(means(ngrams, source).values()), abs=1e-8)


def test_networks_of_several_seeds_are_loaded_together(tmp_path: Path) -> None:
    train = plurals(30, 0)
    members = [EditTransducer.from_data(train, SMALL, format=FORMAT, seed=seed) for seed in (0, 1)]
    for seed, member in enumerate(members):
        member.metrics["dev"] = {"metric": "exact match", "score": seed / 2}
        member.save(tmp_path / f"seed-{seed}")
    together = tw.load(tmp_path)
    assert isinstance(together, TransducerEnsemble) and list(together.exported) == ["seed-0", "seed-1"]
    pair = Sentence(tuple("bay"), target=tuple("ba"))
    each = [math.exp(member.log_probs([pair])[0]) for member in members]
    assert math.exp(together.log_probs([pair])[0]) == pytest.approx(sum(each) / 2)
    answer = together.predict("bay", top_k=3)[0]
    assert len({alternative.value for alternative in answer.alternatives}) == 3
    given = [Sentence(tuple("bay"), target=tuple(alternative.value)) for alternative in answer.alternatives]
    exact = [math.exp(p) for p in together.log_probs(given)]
    assert [alternative.probability for alternative in answer.alternatives] == pytest.approx(exact, rel=1e-4)
    assert together.n_parameters == 2 * members[0].n_parameters
    assert together.describe().record["members"]["seed-1"] == "dev exact match 50.00"
    assert 0 <= together.evaluate(train)["word_error_rate"] <= 1
    together.save(tmp_path / "again")
    assert tw.load(tmp_path / "again").predict("bay")[0].value == answer.value


def test_what_does_not_go_together_is_refused(ngrams: list[PairNgram]) -> None:
    with pytest.raises(TrellisworkError, match="got none"):
        TransducerEnsemble([])
    other = PairNgram.fit(sentences(PAIRS), PairNgramConfig(order=1), format=PairFormat("blanks", "blanks", "none"))
    with pytest.raises(TrellisworkError, match=r"the same format of pairs, got .* in number 2"):
        TransducerEnsemble([ngrams[0], other])
    with pytest.raises(TrellisworkError, match="whose answers can be pinned"):
        TransducerEnsemble(ngrams).predict("ab", pins=[{0: "X"}])
