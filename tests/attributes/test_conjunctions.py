"""Conjunctions are there exactly when their attributes are."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.data.attributes import AttributeRows, Conjunctions

PAIRS = np.array([[0, 1], [1, 2], [3, 5], [0, 6], [4, 8]], np.int32)  # of 5 atomic ones; 8 is (0, 6) is (0, (1, 2))


def naive(rows: AttributeRows, n_atomic: int, pairs: np.ndarray) -> list[dict[int, float]]:
    """Attribute -> value of each token, conjunction by conjunction."""
    out = []
    for t in range(rows.n_tokens):
        found: dict[int, float] = {}
        for e in range(rows.offsets[t], rows.offsets[t + 1]):
            a = int(rows.ids[e])
            found[a] = found.get(a, 0.0) + (1.0 if rows.values is None else float(rows.values[e]))
        for k, (a, b) in enumerate(pairs.tolist()):
            if a in found and b in found:
                found[n_atomic + k] = found[a] * found[b]
        out.append(found)
    return out


@pytest.mark.parametrize("valued", [False, True])
def test_every_token_has_its_conjunctions(valued: bool) -> None:
    random = np.random.default_rng(0)
    counts = random.integers(0, 6, 200)
    ids = np.concatenate([random.permutation(5)[:n] for n in counts]).astype(np.int32)
    values = random.normal(size=len(ids)) if valued else None
    rows = AttributeRows(np.array([150, 0, 50]), np.concatenate([[0], np.cumsum(counts)]), ids, values)
    conjunctions = Conjunctions(5, PAIRS)
    conjunctions.check()
    extended = conjunctions.extended(rows)
    wanted = naive(rows, 5, PAIRS)
    assert sum(9 in each for each in wanted) > 5
    for t in range(200):
        span = slice(*extended.offsets[t : t + 2])
        given = np.ones(len(extended.ids)) if extended.values is None else extended.values
        assert dict(zip(extended.ids[span].tolist(), given[span].tolist(), strict=True)) == pytest.approx(wanted[t])


def test_attributes_given_twice_make_one_conjunction_of_the_sums() -> None:
    rows = AttributeRows(np.array([1]), np.array([0, 4]), np.array([0, 1, 0, 1], np.int32), np.array([1.0, 2, 3, 4]))
    extended = Conjunctions(2, np.array([[0, 1]], np.int32)).extended(rows)
    assert extended.ids.tolist() == [0, 1, 0, 1, 2]
    assert extended.values is not None and extended.values[-1] == 24.0


def test_names_show_the_parts() -> None:
    names = Conjunctions(5, PAIRS).names(list("abcde"))
    assert names[5:] == ["a & b", "b & c", "a & b & d", "a & b & c", "a & b & c & e"]


def test_what_is_needed_is_kept_under_new_numbers() -> None:
    conjunctions = Conjunctions(5, PAIRS)
    wanted = np.zeros(10, np.bool_)
    wanted[8] = True
    keep = conjunctions.needed(wanted)
    assert np.flatnonzero(keep).tolist() == [0, 1, 2, 6, 8]
    smaller = conjunctions.kept(keep)
    smaller.check()
    assert smaller.n_atomic == 3 and smaller.pairs.tolist() == [[1, 2], [0, 3]]
    assert smaller.names(list("abc"))[3:] == ["b & c", "a & b & c"]


@pytest.mark.parametrize("pair", [[5, 5], [3, 2], [-1, 2], [0, 6], [0, 5], [1, 1]])
def test_pairs_that_kernels_must_not_read(pair: list[int]) -> None:
    with pytest.raises(ValueError, match="must stand for"):
        Conjunctions(5, np.array([pair], np.int32)).check()
    with pytest.raises(ValueError, match="32 bits"):
        Conjunctions(5, np.array([[0, 1]], np.int64)).check()
