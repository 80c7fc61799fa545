"""A lattice as a random walk: q(chunk pair | state), the share of all that may follow a state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import BACKOFF, NONE, column_factors
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel

START = 1  # the state of the begin, see `explore`


class Steps(NamedTuple):
    """The chunk pairs that may come next in each state that was asked for, with their probabilities."""

    first: Array  # int64 [state], -1 if it was not asked for yet
    end: Array
    pair: Array  # int32 [step]
    to: Array  # int32 [step]
    prob: Array  # float64 [step]
    used: Array  # int64 [1]: how many steps there are
    seen: Array  # int64 [column]: who had it last
    factors: Array


@kernel(EXACT)
def no_steps(lattice, size):
    """Return an empty table with room for `size` steps."""
    n, column_first = lattice.column_first.shape[0], lattice.column_first
    widest = 1
    for i in range(n):
        widest = max(widest, column_first[i, -1])
    n_states = lattice.node.shape[0]
    return Steps(
        np.full(n_states, NONE, np.int64), np.empty(n_states, np.int64), np.empty(size, np.int32),
        np.empty(size, np.int32), np.empty(size), np.zeros(1, np.int64), np.full(widest, NONE, np.int64),
        np.empty(widest),
    )  # fmt: skip


@kernel(EXACT)
def add_steps(model, lattice, steps, state):
    """Add the steps of a state: its own arcs, then those of its suffixes that it has none for.

    False if there is too little room.

    Args:
        model: The n-grams of chunk pairs.
        lattice: The states, with their sums.
        steps: The steps so far, added to.
        state: The state whose steps these are.
    """
    weights, beta, node, parent = model.weights, lattice.beta, lattice.node, lattice.parent
    arc_first, arc_end, arc_column, arc_pair = lattice.arc_first, lattice.arc_end, lattice.arc_column, lattice.arc_pair
    arc_to, arc_prob, seen, factors = lattice.arc_to, lattice.arc_prob, steps.seen, steps.factors
    step_pair, step_to, step_prob = steps.pair, steps.to, steps.prob
    begin = steps.used[0]
    i, at = lattice.position[state], begin
    if at + lattice.column_first[i, -1] > step_pair.shape[0]:
        return False
    column_factors(lattice, i, factors)
    weight, total, s = 1.0, 0.0, state
    while s != NONE:
        for arc in range(arc_first[s], arc_end[s]):
            column = arc_column[arc]
            if seen[column] == state:
                continue
            seen[column] = state
            to = arc_to[arc]
            value = weight * arc_prob[arc] * factors[column] * beta[to]
            if value > 0.0:
                step_pair[at], step_to[at], step_prob[at] = arc_pair[arc], to, value
                total += value
                at += 1
        weight *= weights[node[s], BACKOFF]
        s = parent[s]
    for k in range(begin, at):
        step_prob[k] /= total
    steps.first[state], steps.end[state], steps.used[0] = begin, at, at
    return True
