"""Machines from strings, lists of strings and emissions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Float
from trelliswork.structures.automata.structure import LOG, Machine


def only(n_states: int, state: int, dtype: torch.dtype) -> Tensor:
    """Return 0 for one state, -inf for the others.

    Args:
        n_states: number of states.
        state: the one that scores 0.
        dtype: dtype of the scores.

    Returns:
        Scores [n_states].
    """
    weights = torch.full((n_states,), -INF, dtype=dtype)
    weights[state] = 0
    return weights


def string(inputs: Sequence[int], outputs: Sequence[int], dtype: torch.dtype) -> Machine:
    """Return the machine of one path; the shorter side is filled up with epsilon.

    Args:
        inputs: labels that the path reads.
        outputs: labels that it writes.
        dtype: dtype of the weights, which are 0.

    Returns:
        A machine with one state more than arcs.
    """
    n = max(len(inputs), len(outputs))
    read, written = (np.array([*side, *[0] * (n - len(side))], np.int64) for side in (inputs, outputs))
    place, nothing = np.arange(n), torch.zeros(n, dtype=dtype)
    return Machine(place, place + 1, read, written, nothing, only(n + 1, 0, dtype), only(n + 1, n, dtype))


def trie(strings: Sequence[Sequence[int]], weights: Tensor) -> Machine:
    """Return a tree of strings that share prefixes.

    Weights [strings] are at the ends. Equal strings add up (in log space).
    """
    children: list[dict[int, int]] = [{}]
    arcs, ends = [], list[int]()
    for labels in strings:
        state = 0
        for label in labels:
            if label not in children[state]:
                children[state][label] = len(children)
                arcs.append((state, len(children), label))
                children.append({})
            state = children[state][label]
        ends.append(state)
    source, target, read = np.array(arcs, np.int64).reshape(-1, 3).T.copy()
    n, nothing = len(children), weights.new_zeros(len(arcs))
    return Machine(source, target, read, read, nothing, only(n, 0, weights.dtype), _at_ends(ends, n, weights))


def _at_ends(ends: list[int], n_states: int, weights: Tensor) -> Tensor:
    """Return final weights; those of equal strings joined by logaddexp."""
    strings: dict[int, list[int]] = {}
    for string_number, state in enumerate(ends):
        strings.setdefault(state, []).append(string_number)
    if not strings:
        return weights.new_full((n_states,), -INF)
    joined = torch.stack([LOG.sum(weights[same], dim=-1) for same in strings.values()])
    return weights.new_full((n_states,), -INF).index_copy(0, torch.tensor(list(strings)), joined)


def lattice(emissions: Float[Tensor, "n c"], labels: Sequence[int]) -> Machine:
    """Return one arc for each position and label.

    The acceptor of all label sequences of length n, scored by emissions.
    """
    n, c = emissions.shape
    source, label = np.repeat(np.arange(n), c), np.tile(np.asarray(labels, np.int64), n)
    first, last = only(n + 1, 0, emissions.dtype), only(n + 1, n, emissions.dtype)
    return Machine(source, source + 1, label, label, emissions.reshape(-1), first, last)
