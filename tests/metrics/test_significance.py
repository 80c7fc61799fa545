"""The paired bootstrap against all test sets that can be drawn."""

from __future__ import annotations

from itertools import product

import pytest

from trelliswork.errors import TrellisworkError
from trelliswork.metrics import Score, paired_bootstrap

FIRST = [Score(2, 3, 3), Score(1, 1, 2), Score(0, 1, 1), Score(4, 4, 4)]
SECOND = [Score(1, 3, 3), Score(1, 2, 2), Score(1, 1, 1), Score(2, 4, 4)]


def f1(scores: list[Score], chosen: tuple[int, ...]) -> float:
    correct, predicted, gold = (
        sum(getattr(scores[i], name) for i in chosen) for name in ("correct", "predicted", "gold")
    )
    return Score(correct, predicted, gold).f1


def test_p_value_and_interval_are_those_of_all_draws() -> None:
    n = len(FIRST)
    drawn = sorted(f1(FIRST, chosen) - f1(SECOND, chosen) for chosen in product(range(n), repeat=n))
    observed = f1(FIRST, tuple(range(n))) - f1(SECOND, tuple(range(n)))
    far = sum(abs(each - observed) >= abs(observed) - 1e-12 for each in drawn) / len(drawn)
    found = paired_bootstrap(FIRST, SECOND, n_samples=40_000)
    assert found.difference == pytest.approx(observed)
    assert found.p_value == pytest.approx(far, abs=0.01) and 0.01 < far < 0.99
    assert found.low == pytest.approx(drawn[round(0.025 * len(drawn))], abs=0.03)
    assert found.high == pytest.approx(drawn[round(0.975 * len(drawn))], abs=0.03)
    assert (found.n_better, found.n_worse, found.n) == (3, 1, 4)


def test_the_sides_may_be_swapped() -> None:
    one, other = paired_bootstrap(FIRST, SECOND, seed=3), paired_bootstrap(SECOND, FIRST, seed=3)
    assert (one.low, one.p_value) == (-other.high, other.p_value) or one.low == pytest.approx(-other.high)
    assert one.difference == -other.difference and one.n_better == other.n_worse


def test_a_clear_difference_is_significant_and_none_is_not() -> None:
    good, bad = [Score(9, 10, 10)] * 50, [Score(5, 10, 10)] * 50
    assert paired_bootstrap(good, bad, n_samples=999).p_value == 0.001
    assert paired_bootstrap(good, good, n_samples=999).p_value == 1


@pytest.mark.parametrize(("first", "second"), [([], []), (FIRST, SECOND[:2])])
def test_other_sentences_cannot_be_compared(first: list[Score], second: list[Score]) -> None:
    with pytest.raises(TrellisworkError, match="on the same sentences"):
        paired_bootstrap(first, second)
