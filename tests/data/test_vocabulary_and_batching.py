"""Vocabularies are deterministic; batches cover every sentence once and keep the budget."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.data import MajorityBaseline, Sentence, Vocabulary, token_budget_batches
from trelliswork.errors import TrellisworkError


def test_order_is_by_count_then_alphabet() -> None:
    words = Vocabulary.from_items(["b", "a", "c", "a", "b", "d"], unknown="<unk>", first=["<pad>"])
    assert words.to_list() == ["<unk>", "<pad>", "a", "b", "c", "d"]
    assert Vocabulary.from_counts({"x": 1, "y": 2}, min_count=2).to_list() == ["y"]


def test_lookup() -> None:
    words = Vocabulary(["<unk>", "a"], unknown="<unk>")
    assert words.indices(["a", "zzz"]) == [1, 0]
    assert (words[1], "a" in words, "z" in words, len(words), list(words)) == ("a", True, False, 2, ["<unk>", "a"])
    with pytest.raises(TrellisworkError, match=r"expected one of the 2 known items \(O, B-X\); got 'B-Y'"):
        Vocabulary(["O", "B-X"]).index("B-Y")


def test_round_trip_through_json() -> None:
    words = Vocabulary.from_items(["a", "é"], unknown="?")
    assert Vocabulary.from_list(json.loads(json.dumps(words.to_list())), unknown="?") == words
    assert words != Vocabulary.from_list(words.to_list())


def test_refusals() -> None:
    with pytest.raises(TrellisworkError, match="'a' more than once"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(TrellisworkError, match="'u' is not"):
        Vocabulary(["a"], unknown="u")
    with pytest.raises(TrellisworkError, match="at least 1; got 0"):
        token_budget_batches([1], 0)


@given(
    st.lists(st.integers(1, 40), max_size=60), st.integers(1, 100), st.integers(0, 3), st.booleans(), st.integers(0, 20)
)
def test_batches(lengths: list[int], budget: int, seed: int, shuffle: bool, bucket: int) -> None:
    batches = token_budget_batches(lengths, budget, seed=seed, shuffle=shuffle, bucket=bucket)
    assert Counter(i for batch in batches for i in batch) == Counter(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget
    assert batches == token_budget_batches(lengths, budget, seed=seed, shuffle=shuffle, bucket=bucket)


def test_seeds_differ_and_like_lengths_meet() -> None:
    lengths = [1 + i % 10 for i in range(200)]
    one, two = (token_budget_batches(lengths, 50, seed=seed) for seed in (1, 2))
    assert one != two
    padding = sum(max(lengths[i] for i in batch) * len(batch) - sum(lengths[i] for i in batch) for batch in one)
    assert padding < 0.05 * sum(lengths)


def test_majority_baseline() -> None:
    train = [Sentence(("a", "b"), ("X", "Y")), Sentence(("a", "a", "b"), ("Y", "X", "Y"))]
    baseline = MajorityBaseline(train)
    assert baseline.tag(["a", "b", "c"]) == ["X", "Y", "Y"]
    with pytest.raises(TrellisworkError, match="at least one tagged sentence"):
        MajorityBaseline([])
