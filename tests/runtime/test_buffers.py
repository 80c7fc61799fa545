"""Memory is used again when, and only when, nobody can see it any more."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from trelliswork.runtime import buffers

SHAPE = (16, 100, 100)


@pytest.fixture(autouse=True)
def nothing_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_parked", [])


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_of_a_large_array_is_used_again() -> None:
    first = buffers.empty(SHAPE)
    where = address(first)
    del first
    again = buffers.empty((16, 90, 100))  # a little smaller fits too
    assert address(again) == where
    assert again.shape == (16, 90, 100)
    assert again.flags.c_contiguous
    assert again.dtype == np.float64


def test_float32_takes_half_of_the_memory_and_gives_it_back() -> None:
    first = buffers.empty((3, *SHAPE), np.float32)
    assert first.dtype == np.float32 and first.shape == (3, *SHAPE) and first.flags.c_contiguous
    assert address(first) % 64 == 0
    where = address(first)
    del first
    assert address(buffers.empty((3, 8, 100, 100))) == where


def test_two_arrays_in_use_do_not_share() -> None:
    first, second = buffers.empty(SHAPE), buffers.empty(SHAPE)
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize(
    "view", [lambda a: a[1:], lambda a: a.reshape(-1)[5:], lambda a: torch.from_numpy(a.reshape(1600, 100))]
)
def test_a_view_keeps_the_memory(view) -> None:
    first = buffers.empty(SHAPE)
    first.fill(7.0)
    kept = view(first)
    del first
    second = buffers.empty(SHAPE)
    second.fill(0.0)
    assert (np.asarray(kept) == 7.0).all()


@pytest.mark.parametrize("shape", [(1600, 100, 10), (16, 100, 99, 3)])
def test_blocks_that_are_too_small_or_far_too_large_are_left_alone(shape: tuple[int, ...]) -> None:
    parked = buffers.empty(SHAPE if len(shape) == 3 else (160, 100, 100))
    del parked
    array = buffers.empty(shape)
    assert array.shape == shape
    assert len(buffers._parked) == 1


def test_small_arrays_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    array = buffers.empty((10, 10))
    del array
    assert buffers._parked == []


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "MOST_KEPT", 400_000)
    arrays = [buffers.empty(SHAPE) for _ in range(5)]
    del arrays
    assert sum(len(block) for block in buffers._parked) <= 400_000
    assert buffers._parked


def test_threads_get_arrays_of_the_size_they_asked_for() -> None:
    """Blocks taken by one thread move those that another is about to take."""
    sizes = [buffers.LARGE * (2 + number) // 2 for number in range(24)]

    def take(number: int) -> bool:
        array = buffers.empty((sizes[number % 24],))
        array[:3] = number
        array[-3:] = number
        return bool((array[:3] == number).all() and (array[-3:] == number).all())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(take, range(20_000)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(("make", "shape"), [(buffers.matrices, (1, 45, 48)), (buffers.empty, (3, 2, 97, 1001))])
def test_matrices_and_large_arrays_begin_at_a_line_of_the_cache(make, shape: tuple[int, ...]) -> None:
    kept = [make(shape) for _ in range(6)]
    del kept[::2]
    kept += [make(shape) for _ in range(3)]
    assert {address(array) % 64 for array in kept} == {0}
    assert all(array.shape == shape and array.flags.c_contiguous for array in kept)
    for number, array in enumerate(kept):  # the last number of each is memory of its own
        array.reshape(-1)[-1] = number
    assert [array.reshape(-1)[-1] for array in kept] == list(range(6))
