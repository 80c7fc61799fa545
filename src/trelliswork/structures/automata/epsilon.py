"""Epsilon removal: arcs that neither read nor write are replaced by what they lead to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array
from trelliswork.semirings import Semiring
from trelliswork.structures.automata.closure import lehmann
from trelliswork.structures.automata.structure import LOG, Machine, check_semiring, trim

MOST_STATES = 3000


def remove_epsilon(machine: Machine, semiring: Semiring = LOG) -> Machine:
    """Return the same weighted strings without arcs that read and write nothing; differentiable.

    `semiring` (`Log` or `Max`) joins the weights of several silent ways between two states.
    """
    check_semiring(semiring, "epsilon removal")
    machine = trim(machine)
    silent = (machine.input == 0) & (machine.output == 0)
    if not silent.any():
        return machine
    states = np.unique(np.concatenate([machine.source[silent], machine.target[silent]]))
    if len(states) > MOST_STATES:
        raise ScoreError(
            f"epsilon removal takes at most {MOST_STATES} states with epsilon arcs; got {len(states)}; compose or "
            "search the machine as it is, both treat epsilon exactly"
        )
    ways = lehmann(_silent_weights(machine, np.flatnonzero(silent), states, semiring), semiring)
    return trim(_bypass(machine, np.flatnonzero(~silent), states, ways, semiring))


def _silent_weights(machine: Machine, arcs: Array, states: Array, semiring: Semiring) -> Tensor:
    """Return [m, m] weights of single silent steps; parallel arcs joined."""
    m = len(states)
    cell = np.searchsorted(states, machine.source[arcs]) * m + np.searchsorted(states, machine.target[arcs])
    return _join(machine.weights[torch.from_numpy(arcs)], cell, m * m, semiring).reshape(m, m)


def _join(weights: Tensor, cell: Array, n_cells: int, semiring: Semiring) -> Tensor:
    """Return ⊕ of the weights of each cell, -inf for none."""
    order = np.argsort(cell, kind="stable")
    used, begin, size = np.unique(cell[order], return_index=True, return_counts=True)
    if not len(used):
        return weights.new_full((n_cells,), -INF)
    rank = np.arange(size.max())[None] + begin[:, None]
    index = np.where(np.arange(size.max())[None] < size[:, None], order[np.minimum(rank, len(order) - 1)], len(weights))
    padded = torch.cat([weights, weights.new_full((1,), -INF)])[torch.from_numpy(index)]
    return weights.new_full((n_cells,), -INF).index_copy(0, torch.from_numpy(used), semiring.sum(padded, dim=-1))


def _bypass(machine: Machine, loud: Array, states: Array, ways: Tensor, semiring: Semiring) -> Machine:
    """Let each state take over the loud arcs and the end of every state that it leads to silently."""
    begin, end = ((ways.detach() > -INF) & ~torch.eye(len(states), dtype=torch.bool)).nonzero().numpy().T
    kept = machine.kept_arcs(loud)
    offsets, order = kept.out
    degree = offsets[states[end] + 1] - offsets[states[end]]
    first = np.repeat(offsets[states[end]] - np.concatenate([[0], np.cumsum(degree)[:-1]]), degree)
    arcs = order[first + np.arange(len(first))]
    way = np.repeat(np.arange(len(begin)), degree)
    along = ways[torch.from_numpy(begin), torch.from_numpy(end)]
    round_trip = ways.diagonal()  # a silent cycle through the state itself
    own = torch.zeros_like(machine.initial).index_copy(0, torch.from_numpy(states), round_trip)
    ends = torch.cat([own + machine.final, along + machine.final[torch.from_numpy(states[end])]])
    cells = np.concatenate([np.arange(machine.n_states), states[begin]])
    return replace(
        machine,
        source=np.concatenate([kept.source, states[begin][way]]),
        target=np.concatenate([kept.target, kept.target[arcs]]),
        input=np.concatenate([kept.input, kept.input[arcs]]),
        output=np.concatenate([kept.output, kept.output[arcs]]),
        weights=torch.cat(
            [
                kept.weights + own[torch.from_numpy(kept.source)],
                along[torch.from_numpy(way)] + kept.weights[torch.from_numpy(arcs)],
            ]
        ),
        final=_join(ends, cells, machine.n_states, semiring),
    )
