"""The k best paths and the k best strings, exactly and without duplicates, by best-first search.

What is still ahead of a partial path or string is known exactly (or bounded by its summed weight), so the first
complete ones to come up are the best.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.structures.automata import kernels, passes
from trelliswork.structures.automata.structure import Machine


class Partial(NamedTuple):
    """A path so far: the state it is in, its last arc (-1: none) and what came before."""

    state: int
    arc: int
    before: Partial | None


def best_paths(machine: Machine, k: int) -> list[tuple[int, Array, float]]:
    """(first state, arcs, score) of the k best paths, best first; fewer if there are fewer."""
    onwards = passes.best_onwards(machine) if k == 1 else None
    return list(islice(_paths(machine, k), k)) if onwards is None else _best_path(machine, *onwards)


def _best_path(machine: Machine, ahead: Array, steps: Array) -> list[tuple[int, Array, float]]:
    """The best path by the best step from each state, without a search; none if there is none."""
    scores = machine.arrays[1] + ahead
    first = int(scores.argmax()) if len(scores) else 0
    if not len(scores) or scores[first] == NEG_INF:
        return []
    return [(first, kernels.walk(first, steps, machine.target), float(scores[first]))]


def _paths(machine: Machine, k: int) -> Iterator[tuple[int, Array, float]]:
    """Paths in falling order; no state needs to be visited as a prefix's end more than k times."""
    weights, initial, final = machine.arrays
    ahead, (offsets, order), target = passes.best_ahead(machine), machine.out, machine.target
    ticket, visits = count(), np.zeros(machine.n_states, np.int64)
    heap: list[tuple[float, int, float, Partial, bool]] = []

    def push(score: float, partial: Partial, ended: bool) -> None:
        bound = score if ended else score + ahead[partial.state]
        if bound > NEG_INF:
            heapq.heappush(heap, (-bound, next(ticket), score, partial, ended))

    for q in np.flatnonzero(initial + ahead > NEG_INF).tolist():
        push(float(initial[q]), Partial(q, -1, None), False)
    while heap:
        _, _, score, partial, ended = heapq.heappop(heap)
        if ended:
            yield *_unwind(partial), score
            continue
        q = partial.state
        visits[q] += 1
        if visits[q] > k:
            continue
        push(score + float(final[q]), partial, True)
        for arc in order[offsets[q] : offsets[q + 1]].tolist():
            push(score + float(weights[arc]), Partial(int(target[arc]), arc, partial), False)


def _unwind(partial: Partial) -> tuple[int, Array]:
    arcs = []
    while partial.before is not None:
        arcs.append(partial.arc)
        partial = partial.before
    return partial.state, np.array(arcs[::-1], np.int64)


class Prefix(NamedTuple):
    """All paths that read the same labels so far: the states they are in, and their weight in each."""

    labels: tuple[int, ...]
    states: Array
    weights: Array


Join = Callable[[Array], float]


def best_strings(machine: Machine, k: int, *, summed: bool, limit: int) -> list[tuple[tuple[int, ...], float]]:
    """(labels, score) of the k best strings of an epsilon-free acceptor, best first.

    The score of a string is the log of the summed weights of its paths (`summed`), or that of its best path. The weight
    of all strings with one prefix bounds each of them; `limit` is how many prefixes may be tried.
    """
    join: Join = np.logaddexp.reduce if summed else np.max
    ahead = passes.log_ahead(machine) if summed else passes.best_ahead(machine)
    _, initial, final = machine.arrays
    first = np.flatnonzero(initial + ahead > NEG_INF)
    heap: list[tuple[float, int, Prefix, bool]] = []
    ticket, found, tried = count(), list[tuple[tuple[int, ...], float]](), 0
    if len(first):
        start = Prefix((), first, initial[first])
        heap.append((-float(join(start.weights + ahead[first])), next(ticket), start, False))
    while heap and len(found) < k:
        bound, _, prefix, ended = heapq.heappop(heap)
        if ended:
            found.append((prefix.labels, -bound))
            continue
        tried += 1
        if tried > limit:
            raise ScoreError(
                f"the {k} best strings need more than {limit} prefixes; raise `limit`, or use summed=False"
            )
        whole = float(join(prefix.weights + final[prefix.states]))
        if whole > NEG_INF:
            heapq.heappush(heap, (-whole, next(ticket), prefix, True))
        for longer in _extensions(machine, prefix, join, ahead):
            reach = float(join(longer.weights + ahead[longer.states]))
            heapq.heappush(heap, (-reach, next(ticket), longer, False))
    return found


def _extensions(machine: Machine, prefix: Prefix, join: Join, ahead: Array) -> Iterator[Prefix]:
    """The prefix with each possible next label."""
    offsets, order = machine.out
    weights, _, _ = machine.arrays
    steps: dict[int, dict[int, list[float]]] = {}
    for q, so_far in zip(prefix.states.tolist(), prefix.weights.tolist(), strict=True):
        for arc in order[offsets[q] : offsets[q + 1]].tolist():
            r, score = int(machine.target[arc]), so_far + float(weights[arc])
            if score + ahead[r] > NEG_INF:
                steps.setdefault(int(machine.input[arc]), {}).setdefault(r, []).append(score)
    for label, arrivals in steps.items():
        states = np.fromiter(arrivals, np.int64, len(arrivals))
        yield Prefix((*prefix.labels, label), states, np.array([join(np.array(each)) for each in arrivals.values()]))
