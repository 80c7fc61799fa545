"""Span scores: hand-computed, and equal to seqeval's in both of its modes."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as seqeval_default
from seqeval.metrics.v1 import precision_recall_fscore_support as seqeval_strict
from seqeval.scheme import IOB2, IOBES

from trelliswork.errors import TrellisworkError
from trelliswork.metrics import span_scores

ROLES = {"IOB1": "BI", "IOB2": "BI", "IOBES": "BIES"}
STRICT = {"IOB2": IOB2, "IOBES": IOBES}

Corpus = list[list[str]]


@st.composite
def gold_and_predicted(draw: st.DrawFn, scheme: str) -> tuple[Corpus, Corpus]:
    tags = st.sampled_from(["O", *(f"{role}-{kind}" for role in ROLES[scheme] for kind in "XYZ")])
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    rows = [st.lists(tags, min_size=n, max_size=n) for n in lengths]
    gold = [draw(row) for row in rows]
    noise = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    return gold, [draw(row) if noisy else list(same) for row, noisy, same in zip(rows, noise, gold, strict=True)]


def quietly(function, *args, **kwargs):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def assert_same(report, score, gold: Corpus, predicted: Corpus, **options) -> None:  # type: ignore[no-untyped-def]
    averages = {"micro": report.overall, "macro": report.macro, "weighted": report.weighted}
    for average, ours in averages.items():
        theirs = quietly(score, gold, predicted, average=average, **options)
        assert (ours.precision, ours.recall, ours.f1) == pytest.approx(theirs[:3])
    per_type = quietly(score, gold, predicted, average=None, **options)
    rows = [(s.precision, s.recall, s.f1, s.support) for s in report.by_type.values()]
    assert rows == [pytest.approx(row) for row in zip(*per_type, strict=True)]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_conlleval_policy_is_seqevals_default(scheme: str, data: st.DataObject) -> None:
    gold, predicted = data.draw(gold_and_predicted(scheme))
    report = span_scores(gold, predicted, scheme)
    if report.by_type:
        assert_same(report, seqeval_default, gold, predicted)


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_strict_policy_is_seqevals_strict_mode(scheme: str, data: st.DataObject) -> None:
    gold, predicted = data.draw(gold_and_predicted(scheme))
    report = span_scores(gold, predicted, scheme, "strict")
    if report.by_type:
        assert_same(report, seqeval_strict, gold, predicted, scheme=STRICT[scheme])


def test_by_hand() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "I-LOC"]]
    report = span_scores(gold, predicted, "BIO")
    assert (report.overall.correct, report.overall.predicted, report.overall.gold) == (1, 3, 3)
    assert report.f1 == pytest.approx(1 / 3)
    assert (report.by_type["PER"].precision, report.by_type["PER"].recall) == (0.5, 1.0)
    assert report.by_type["LOC"].f1 == 0.0
    assert report.macro.f1 == pytest.approx((2 / 3 + 0) / 2)
    assert report.weighted.recall == pytest.approx((1 * 1 + 2 * 0) / 3)


def test_policies_differ_on_illegal_tags() -> None:
    gold, predicted = [["B-X", "I-X"]], [["I-X", "I-X"]]
    assert span_scores(gold, predicted, "IOB2").f1 == 1.0
    assert span_scores(gold, predicted, "IOB2", "strict").f1 == 0.0


def test_no_spans_is_zero() -> None:
    report = span_scores([["O"]], [["O"]], "IOB2")
    assert (report.precision, report.recall, report.f1, report.macro.f1, report.weighted.f1) == (0, 0, 0, 0, 0)
    assert "overall" in report.table()


def test_table_and_dict() -> None:
    report = span_scores([["B-PER", "B-organisation"]], [["B-PER", "O"]], "IOB2")
    lines = report.table().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split() == ["PER", "100.00", "100.00", "100.00", "1"]
    assert lines[-1].split() == ["overall", "100.00", "50.00", "66.67", "2"]
    assert report.to_dict()["by_type"]["PER"]["f1"] == 1.0  # type: ignore[index]


def test_refusals() -> None:
    with pytest.raises(TrellisworkError, match="plain tags have no spans"):
        span_scores([["NN"]], [["NN"]], "plain")
    with pytest.raises(TrellisworkError, match=r"gold sentences \(1\); got 0"):
        span_scores([["O"]], [], "IOB2")
    with pytest.raises(TrellisworkError, match="sentence 1 has 2 gold tags and 1 predicted"):
        span_scores([["O"], ["O", "O"]], [["O"], ["O"]], "IOB2")
    with pytest.raises(TrellisworkError, match="conlleval, strict; got 'loose'"):
        span_scores([["O"]], [["O"]], "IOB2", "loose")
