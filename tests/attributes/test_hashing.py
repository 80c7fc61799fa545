"""Numbers by hash: in range, well spread, shared by names that collide."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.data.attributes import Conjunctions, HashedIndex, HashedNames
from trelliswork.data.attributes.key_index import keys_of, mixed
from trelliswork.errors import ScoreError


@pytest.mark.parametrize("bits", [1, 10, 16, 28])
def test_numbers_lie_below_two_to_the_bits(bits: int) -> None:
    index = HashedIndex(bits)
    numbers = index.find(keys_of([f"name {i}" for i in range(1000)]))
    assert numbers.dtype == np.int32
    assert 0 <= numbers.min() <= numbers.max() < len(index) == 2**bits
    assert index.add(keys_of(["name 7"])).tolist() == [numbers[7]]


@pytest.mark.parametrize("ending", [str, lambda i: chr(33 + i), lambda i: f"{i:03}"])
def test_names_that_differ_in_their_last_letter_are_spread(ending: object) -> None:
    names = [f"U05:{ending(i)}" for i in range(90)]  # type: ignore[operator]
    assert len(set(HashedIndex(20).find(keys_of(names)).tolist())) == 90
    uncut = keys_of([f"U05:{chr(33 + i)}" for i in range(90)]) >> np.uint64(44)  # what the high bits of FNV-1a are
    assert len(set(uncut.tolist())) < 60


def test_collisions_are_as_many_as_chance_has_it() -> None:
    n, slots = 20_000, 2**14
    found = len(np.unique(HashedIndex(14).find(keys_of([f"w={i}" for i in range(n)]))))
    assert found == pytest.approx(slots * (1 - np.exp(-n / slots)), rel=0.02)


def test_mixing_is_one_to_one() -> None:
    keys = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(mixed(keys))) == 100_000


def test_names_are_numbers_and_pairs_of_them() -> None:
    names = HashedNames(Conjunctions(8, np.array([[1, 3], [2, 8]], np.int32)))
    assert len(names) == 10
    assert names[3] == "#3" and names[8] == "#1 & #3" and names[9] == "#1 & #2 & #3"
    assert names[7:9] == ["#7", "#1 & #3"]
    with pytest.raises(IndexError):
        names[10]


@pytest.mark.parametrize("bits", [0, -1, 29])
def test_bits_out_of_range(bits: int) -> None:
    with pytest.raises(ScoreError, match=r"hash_bits must lie in 1\.\.28; got"):
        HashedIndex(bits)
