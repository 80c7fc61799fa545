"""Token accuracy, confusion and calibration, by hand and by their defining properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.errors import TrellisworkError
from trelliswork.metrics import calibration, confusion, token_accuracy


def test_token_accuracy() -> None:
    assert token_accuracy([["A", "B"], ["A"]], [["A", "A"], ["A"]]) == pytest.approx(2 / 3)
    assert token_accuracy([], []) == 0.0
    with pytest.raises(TrellisworkError, match="sentence 0"):
        token_accuracy([["A"]], [["A", "B"]])


def test_confusion_counts_and_worst() -> None:
    found = confusion([["A", "B", "B", "B"]], [["A", "A", "A", "C"]])
    assert found.labels == ("A", "B", "C")
    assert found.counts == ((1, 0, 0), (2, 0, 1), (0, 0, 0))
    assert found.worst() == [("B", "A", 2), ("B", "C", 1)]
    assert found.worst(1) == [("B", "A", 2)]


def test_calibration_by_hand() -> None:
    pairs = [(0.95, True), (0.95, True), (0.95, False), (0.3, True)]
    found = calibration(pairs, n_bins=10)
    assert found.expected_error == pytest.approx((3 * abs(2 / 3 - 0.95) + 1 * abs(1 - 0.3)) / 4)
    assert found.max_error == pytest.approx(0.7)
    assert (found.bins[9].count, found.bins[2].count) == (3, 1)  # 0.3 closes the bin (0.2, 0.3]
    assert found.bins[9].accuracy == pytest.approx(2 / 3)


def test_edges_of_the_range() -> None:
    found = calibration([(0.0, False), (1.0, True), (1.000001, True)], n_bins=4)
    assert found.expected_error == 0.0
    assert [b.count for b in found.bins] == [1, 0, 0, 2]


def test_no_pairs() -> None:
    found = calibration([])
    assert (found.expected_error, found.max_error, found.count, len(found.bins)) == (0.0, 0.0, 0, 10)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1), st.integers(1, 12))
def test_bins_partition_the_pairs(pairs: list[tuple[float, bool]], n_bins: int) -> None:
    found = calibration(pairs, n_bins)
    assert sum(b.count for b in found.bins) == len(pairs)
    assert 0 <= found.expected_error <= found.max_error + 1e-12 <= 1 + 1e-12
    for b in found.bins:
        if b.count:
            assert b.low - 1e-9 <= b.mean_confidence <= b.high + 1e-9


def test_one_bin_compares_the_means() -> None:
    assert calibration([(0.2, True), (0.6, False)], 1).expected_error == pytest.approx(abs(0.5 - 0.4))


@pytest.mark.parametrize("bad", [1.2, -0.5, float("nan")])
def test_confidence_out_of_range(bad: float) -> None:
    with pytest.raises(TrellisworkError, match=r"must lie in 0\.\.1; got .* at pair 1"):
        calibration([(0.5, True), (bad, True)])
