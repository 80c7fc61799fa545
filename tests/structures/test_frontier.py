"""The frontiers of searches against sorting: the heap, what it drops, the queue, the way back, the k best."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from trelliswork.structures.frontier import Frontier, path_to
from trelliswork.structures.frontier_kernels import offer, pop, prune, push, sort_heap, split, trace_back


@pytest.mark.parametrize("room", [1, 2, 7, 40])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_candidates_are_kept_in_whatever_order_they_come(room: int, seed: int) -> None:
    """Scores with many ties and -inf: among ties the lower number is better, and -inf is never kept."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 6, 30).astype(np.float64)
    scores[scores == 0] = -np.inf
    best, numbers, size = np.empty(room), np.empty(room, np.int64), 0
    for number in generator.permutation(30):
        size = offer(best, numbers, size, scores[number], number)
    sort_heap(best, numbers, size)
    ranked = sorted((-score, number) for number, score in enumerate(scores) if score > -np.inf)[:room]
    assert [(-best[i], numbers[i]) for i in range(size)] == ranked


@pytest.mark.parametrize("gap", [0.0, 0.5, np.inf])
@pytest.mark.parametrize("width", [1, 3, 20])
def test_the_best_that_was_dropped_bounds_the_others(width: int, gap: float) -> None:
    scores = np.random.default_rng(width).normal(size=12)
    heap, numbers, size = np.empty(width + 1), np.empty(width + 1, np.int64), 0
    for number, score in enumerate(scores):
        size = offer(heap, numbers, size, score, number)
    n_kept, dropped = prune(heap, numbers, size, width, gap)
    ranked = sorted(scores, reverse=True)
    kept = [score for score in ranked[:width] if score >= ranked[0] - gap]
    assert heap[:n_kept].tolist() == kept
    assert dropped == max(ranked[n_kept:], default=-np.inf)


def test_a_number_has_a_parent_and_a_decision_or_none() -> None:
    parents, decisions = np.empty(3, np.int64), np.empty(3, np.int64)
    split(np.array([0, 7, 11]), 3, 3, parents, decisions)
    assert parents.tolist() == [0, 1, 2] and decisions.tolist() == [0, -1, -1]


def test_the_way_back_leads_to_the_start() -> None:
    parents, decisions = np.array([[0, 0], [1, 0], [0, 0]]), np.array([[5, 6], [7, 8], [9, 10]])
    path = np.zeros(3, np.int64)
    trace_back(parents, decisions, 3, 1, path)
    assert path.tolist() == [6, 7, 10]
    assert path_to(4, [-1, 0, 0, 1, 3]) == [1, 3, 4]
    assert path_to(0, [-1]) == []


def test_a_queue_gives_the_highest_score_first_and_the_lowest_number_among_ties() -> None:
    generator = np.random.default_rng(0)
    scores, queue = generator.integers(0, 5, 40).astype(np.float64), (np.empty(40), np.empty(40, np.int32))
    waiting: list[int] = []
    for number in range(40):
        push(queue, len(waiting), scores[number], np.int32(number))
        waiting.append(number)
        if number % 3 == 2:
            best = min(waiting, key=lambda each: (-scores[each], each))
            assert pop(queue, len(waiting)) == best
            waiting.remove(best)


@pytest.mark.parametrize("k", [1, 4, 100])
def test_a_search_by_bounds_finds_the_k_best_and_stops(k: int) -> None:
    """Strings of three symbols by the sum of their scores; what is ahead is bounded by the best symbol."""
    costs = np.random.default_rng(k).integers(-4, 1, (3, 4)).tolist()
    frontier, n_taken = Frontier[tuple[int, ...], tuple[int, ...]](k), 0
    frontier.offer(float(sum(map(max, costs))), ())
    for string in frontier:
        n_taken += 1
        score = sum(costs[i][symbol] for i, symbol in enumerate(string))
        if len(string) == 3:
            frontier.finish(float(score), string)
            continue
        for symbol in range(4):
            ahead = sum(map(max, costs[len(string) + 1 :]))
            frontier.offer(float(score + costs[len(string)][symbol] + ahead), (*string, symbol))
    strings = itertools.product(range(4), repeat=3)
    ranked = sorted((sum(costs[i][symbol] for i, symbol in enumerate(string)) for string in strings), reverse=True)
    assert [score for score, _ in frontier.best] == ranked[:k]
    assert len({string for _, string in frontier.best}) == min(k, 64)
    assert k == 100 or n_taken < 85


def test_what_cannot_be_among_the_k_best_is_dropped() -> None:
    frontier = Frontier[str, str](1)
    frontier.offer(-np.inf, "never")
    frontier.finish(-np.inf, "impossible")
    frontier.offer(2.0, "high")
    frontier.offer(1.0, "low")
    frontier.finish(1.0, "first")
    frontier.finish(1.0, "second")
    assert list(frontier) == ["high"] and frontier.best == [(1.0, "first")]
