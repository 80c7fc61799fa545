"""The k best paths and the k best strings, exactly and without duplicates, by best-first search.

What is still ahead of a partial path or string is known exactly (or bounded by its summed weight), so the first
complete ones to come up are the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.structures.automata import kernels, passes
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.frontier import Frontier


class Partial(NamedTuple):
    """A path so far: the state it is in, its last arc (-1: none) and what came before."""

    state: int
    arc: int
    before: Partial | None


def best_paths(machine: Machine, k: int) -> list[tuple[int, Array, float]]:
    """Return (first state, arcs, score) of the k best paths, best first; fewer if there are fewer."""
    onwards = passes.best_onwards(machine) if k == 1 else None
    return _k_best_paths(machine, k) if onwards is None else _best_path(machine, *onwards)


def _best_path(machine: Machine, ahead: Array, steps: Array) -> list[tuple[int, Array, float]]:
    """Return the best path by the best step from each state, without a search; none if there is none."""
    scores = machine.arrays[1] + ahead
    first = int(scores.argmax()) if len(scores) else 0
    if not len(scores) or scores[first] == NEG_INF:
        return []
    return [(first, kernels.walk(first, steps, machine.target), float(scores[first]))]


def _k_best_paths(machine: Machine, k: int) -> list[tuple[int, Array, float]]:
    weights, initial, final = machine.arrays
    ahead, (offsets, order), target = passes.best_ahead(machine), machine.out, machine.target
    visits = np.zeros(machine.n_states, np.int64)
    frontier = Frontier[tuple[Partial, float], Partial](k)
    for q in np.flatnonzero(initial + ahead > NEG_INF).tolist():
        frontier.offer(initial[q] + ahead[q], (Partial(q, -1, None), float(initial[q])))
    for partial, score in frontier:
        q = partial.state
        visits[q] += 1
        if visits[q] > k:  # the k best paths have the k best ways to a state
            continue
        frontier.finish(score + float(final[q]), partial)
        for arc in order[offsets[q] : offsets[q + 1]].tolist():
            r, reached = int(target[arc]), score + float(weights[arc])
            frontier.offer(reached + ahead[r], (Partial(r, arc, partial), reached))
    return [(*_unwind(partial), score) for score, partial in frontier.best]


def _unwind(partial: Partial) -> tuple[int, Array]:
    """Return the first state and the arcs of a path."""
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
    """Return (labels, score) of the k best strings of an epsilon-free acceptor, best first.

    The weight of all strings with one prefix bounds each of them.

    Args:
        machine: The acceptor.
        k: Number of strings.
        summed: Whether the score of a string is the log of the summed weights of its paths, or that of its best path.
        limit: How many prefixes may be tried.
    """
    join: Join = np.logaddexp.reduce if summed else np.max
    ahead = passes.log_ahead(machine) if summed else passes.best_ahead(machine)
    _, initial, final = machine.arrays
    frontier = Frontier[Prefix, tuple[int, ...]](k)
    first = np.flatnonzero(initial + ahead > NEG_INF)
    if len(first):
        frontier.offer(float(join(initial[first] + ahead[first])), Prefix((), first, initial[first]))
    for n_tried, prefix in enumerate(frontier):
        if n_tried == limit:
            raise ScoreError(
                f"the {k} best strings need more than {limit} prefixes; raise `limit`, or use summed=False"
            )
        frontier.finish(float(join(prefix.weights + final[prefix.states])), prefix.labels)
        for longer in _extensions(machine, prefix, join, ahead):
            frontier.offer(float(join(longer.weights + ahead[longer.states])), longer)
    return [(labels, score) for score, labels in frontier.best]


def _extensions(machine: Machine, prefix: Prefix, join: Join, ahead: Array) -> Iterator[Prefix]:
    """Yield the prefix with each possible next label."""
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
