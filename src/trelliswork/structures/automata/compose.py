"""Composition and intersection; the weight of a joint arc is a sum of gathered weights, so gradients pass."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata import compose_kernels, kernels
from trelliswork.structures.automata.structure import Machine, known_live
from trelliswork.structures.automata.symbols import EPSILON

MOST_STATES = 20_000_000


def compose(first: Machine, second: Machine, *, connect: bool = True, limit: int = MOST_STATES) -> Machine:
    """Compose two machines: x:z with the weight ⊕_y first(x, y) ⊗ second(y, z); every pair of paths counts once.

    Args:
        first: the machine that reads x.
        second: the machine that writes z.
        connect: whether states that are on no whole path are left out.
        limit: how many states the result may have; more are an error.

    Returns:
        The machine, whose weights are sums of gathered weights, so that gradients pass.
    """  # [S2, WFST composition]
    pairs, source, target, by_first, by_second = compose_kernels.compose(
        _sort_arcs(first, first.output), _sort_arcs(second, second.input), limit
    )
    if len(pairs) > limit:
        raise ScoreError(f"the composition has more than {limit} states; trim the machines, or raise `limit`")
    if connect:
        pairs, source, target, by_first, by_second = _connect(first, second, pairs, source, target, by_first, by_second)
    q1, q2 = (torch.from_numpy(q) for q in np.divmod(pairs >> 1, max(second.n_states, 1)))
    free = torch.from_numpy((pairs & 1) == 0)
    machine = Machine(
        source, target, _labels(first.input, by_first), _labels(second.output, by_second),
        _gather(first.weights, by_first) + _gather(second.weights, by_second),
        torch.where(free, first.initial[q1] + second.initial[q2], -torch.inf),
        first.final[q1] + second.final[q2],
    )  # fmt: skip
    return known_live(machine) if connect else machine


def _connect(first: Machine, second: Machine, pairs: Array, *arcs: Array) -> tuple[Array, ...]:
    """Return only what leads to an end.

    All pairs that were found can be reached. Cheaper before weights are gathered.
    """
    q1, q2 = np.divmod(pairs >> 1, max(second.n_states, 1))
    source, target = arcs[:2]
    into = kernels.group(target, len(pairs))
    ends = first.arrays[2][q1] + second.arrays[2][q2]
    alive = kernels.reach(*into, source, np.zeros(len(source)), ends)
    if alive.all():
        return pairs, *arcs
    number = np.cumsum(alive) - 1
    kept = np.flatnonzero(alive[source] & alive[target])
    source, target, *by = (each[kept] for each in arcs)
    return pairs[alive], number[source], number[target], *by


def _sort_arcs(machine: Machine, labels: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return the arrays that the kernel reads: arcs sorted by (state, label), without those of weight -inf."""
    weights, initial, _ = machine.arrays
    alive = np.flatnonzero(weights > -np.inf)
    keys = machine.source[alive] * (int(labels.max(initial=0)) + 1) + labels[alive]
    order = alive[np.argsort(keys, kind="stable")]
    offsets = np.zeros(machine.n_states + 1, np.int64)
    np.cumsum(np.bincount(machine.source[alive], minlength=machine.n_states), out=offsets[1:])
    return offsets, order, labels[order], machine.target, initial


def _labels(labels: Array, arcs: Array) -> Array:
    """Return the symbols that the arcs read or write; a machine that waits does neither."""
    if arcs.min(initial=0) >= 0:
        return labels[arcs]
    return np.append(labels, EPSILON)[arcs]  # -1, no arc, reads what is put last


def _gather(weights: Tensor, arcs: Array) -> Tensor:
    """Return the weights of these arcs; waiting weighs nothing."""
    if arcs.min(initial=0) < 0:
        weights = torch.cat([weights, weights.new_zeros(1)])
    return weights[torch.from_numpy(arcs)]
