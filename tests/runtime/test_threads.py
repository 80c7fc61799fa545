"""Row ranges cover every row once, results come back in order, and a forked child can use threads again."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.runtime.threads import (
    SMALL,
    WORTH_SPLITTING,
    n_threads,
    one_thread_if_small,
    over_rows,
    row_ranges,
    side_by_side,
    use_threads,
)


@pytest.mark.parametrize(
    ("n_rows", "work", "parts"), [(7, 10 * WORTH_SPLITTING, 2), (1, 10 * WORTH_SPLITTING, 1), (7, 5, 1)]
)
def test_ranges_cover_the_rows(two_threads: None, n_rows: int, work: int, parts: int) -> None:
    ranges = row_ranges(n_rows, work)
    assert len(ranges) == parts
    assert [row for first, last in ranges for row in range(first, last)] == list(range(n_rows))


def test_results_come_in_the_order_of_the_calls(two_threads: None) -> None:
    assert side_by_side([lambda i=i: i * i for i in range(5)]) == [0, 1, 4, 9, 16]


def test_an_error_in_a_thread_reaches_the_caller(two_threads: None) -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side([lambda: 1, lambda: 1 // 0])


def _sum_in_child(queue) -> None:
    torch.set_num_threads(2)
    seen: list[int] = []
    over_rows(lambda first, last: seen.extend(range(first, last)), 4, 10 * WORTH_SPLITTING)
    queue.put(sorted(seen))


def test_a_forked_child_has_threads_of_its_own(two_threads: None) -> None:
    side_by_side([lambda: 1, lambda: 2])  # the parent's pool is running
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_child, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=120) == [0, 1, 2, 3]
    child.join(timeout=120)


def test_the_number_of_threads_is_torchs(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert n_threads() == 2
    use_threads(1)
    assert (n_threads(), torch.get_num_threads()) == (1, 1)


def test_the_number_of_threads_without_torch(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delitem(sys.modules, "torch")
    assert n_threads() == 7
    use_threads(3)
    assert n_threads() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert n_threads() >= 1


def test_small_work_has_one_thread_and_others_keep_theirs(two_threads: None) -> None:
    other = ThreadPoolExecutor(1)
    assert other.submit(torch.get_num_threads).result() == 2
    with one_thread_if_small(SMALL - 1):
        assert (n_threads(), other.submit(torch.get_num_threads).result()) == (1, 2)
        with one_thread_if_small(SMALL - 1):
            assert n_threads() == 1
        assert n_threads() == 1
    assert n_threads() == 2
    with one_thread_if_small(SMALL):
        assert n_threads() == 2
    with pytest.raises(ZeroDivisionError), one_thread_if_small(0):
        1 // 0  # noqa: B018
    assert n_threads() == 2


def test_a_sentence_is_tagged_by_one_thread(two_threads: None) -> None:
    tagger, seen = Tagger.from_data([Sentence(("Ann", "sings"), ("B-X", "O"))] * 2, TaggerConfig(hidden=4)), []
    tagger.encoder.register_forward_hook(lambda *_: seen.append(n_threads()))
    tagger.predict("Ann sings")
    assert set(seen) == {1}
    assert n_threads() == 2
