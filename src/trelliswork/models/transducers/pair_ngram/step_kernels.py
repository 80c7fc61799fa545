"""A lattice as a random walk: q(chunk pair | state), the share of all that may follow a state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import BACKOFF, NONE, column_factors
from trelliswork.runtime.compilation import EXACT, kernel

Array = np.ndarray[Any, Any]
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
def no_steps(lattice):
    """None yet."""
    n = lattice.column_first.shape[0]
    widest = 1
    for i in range(n):
        widest = max(widest, lattice.column_first[i, -1])
    n_states = lattice.node.shape[0]
    return Steps(
        np.full(n_states, NONE, np.int64), np.empty(n_states, np.int64), np.empty(1024, np.int32),
        np.empty(1024, np.int32), np.empty(1024), np.zeros(1, np.int64), np.full(widest, NONE, np.int64),
        np.empty(widest),
    )  # fmt: skip


@kernel(EXACT)
def with_steps(model, lattice, steps, state):
    """The steps of a state as well: its own arcs, then those of its suffixes that it has none for."""
    begin, at = steps.used[0], steps.used[0]
    i = lattice.position[state]
    width = lattice.column_first[i, -1]
    if at + width > steps.pair.shape[0]:
        size = 2 * (at + width)
        pair, to, prob = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
        pair[:at], to[:at], prob[:at] = steps.pair[:at], steps.to[:at], steps.prob[:at]
        steps = Steps(steps.first, steps.end, pair, to, prob, steps.used, steps.seen, steps.factors)
    column_factors(lattice, i, steps.factors)
    weight, total, s = 1.0, 0.0, state
    while s != NONE:
        for arc in range(lattice.arc_first[s], lattice.arc_end[s]):
            column = lattice.arc_column[arc]
            if steps.seen[column] == state:
                continue
            steps.seen[column] = state
            to = lattice.arc_to[arc]
            value = weight * lattice.arc_prob[arc] * steps.factors[column] * lattice.beta[to]
            if value > 0.0:
                steps.pair[at], steps.to[at], steps.prob[at] = lattice.arc_pair[arc], to, value
                total += value
                at += 1
        weight *= model.weights[lattice.node[s], BACKOFF]
        s = lattice.parent[s]
    for k in range(begin, at):
        steps.prob[k] /= total
    steps.first[state], steps.end[state], steps.used[0] = begin, at, at
    return steps
