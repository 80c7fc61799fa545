"""Union, concatenation, star, projection: machines out of machines. Weights are gathered, so gradients pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Array
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import EPSILON


def union(first: Machine, second: Machine) -> Machine:
    """Return the paths of both, side by side."""
    return _beside(first, second, torch.cat([first.initial, second.initial]), torch.cat([first.final, second.final]))


def concatenate(first: Machine, second: Machine) -> Machine:
    """Return a path of the first and then one of the second; epsilon arcs lead through one state between them."""
    nowhere1, nowhere2 = torch.full_like(first.final, -INF), torch.full_like(second.initial, -INF)
    both = _beside(first, second, torch.cat([first.initial, nowhere2]), torch.cat([nowhere1, second.final]))
    middle, n1 = both.n_states, first.n_states
    ends, starts = _finite(first.final), _finite(second.initial) + n1
    wider = _with_state(both, initial=-INF, final=-INF)
    leaving = _silent(wider, ends, np.full(len(ends), middle), first.final[torch.from_numpy(ends)])
    entering = second.initial[torch.from_numpy(starts - n1)]
    return _silent(leaving, np.full(len(starts), middle), starts, entering)


def star(machine: Machine) -> Machine:
    """Return any number of paths one after the other, none included; one state between them begins and ends."""
    hub, starts, ends = machine.n_states, _finite(machine.initial), _finite(machine.final)
    nowhere = torch.full_like(machine.initial, -INF)
    wider = _with_state(replace(machine, initial=nowhere, final=nowhere), initial=0.0, final=0.0)
    entering = _silent(wider, np.full(len(starts), hub), starts, machine.initial[torch.from_numpy(starts)])
    return _silent(entering, ends, np.full(len(ends), hub), machine.final[torch.from_numpy(ends)])


def invert(machine: Machine) -> Machine:
    """Return input and output exchanged."""
    return replace(machine, input=machine.output, output=machine.input)


def project(machine: Machine, side: str) -> Machine:
    """Return an acceptor of what is read ("input") or written ("output")."""
    labels = machine.input if side == "input" else machine.output
    return replace(machine, input=labels, output=labels)


def single_initial(machine: Machine) -> Machine:
    """Return the same paths from one first state 0 of weight 0.

    Epsilon arcs lead to the others. Unchanged if it is so.
    """
    starts = _finite(machine.initial)
    if len(starts) == 1 and starts[0] == 0 and float(machine.initial[0]) == 0:
        return machine
    moved = Machine(
        machine.source + 1, machine.target + 1, machine.input, machine.output, machine.weights,
        torch.cat([machine.initial.new_zeros(1), torch.full_like(machine.initial, -INF)]),
        torch.cat([machine.final.new_full((1,), -INF), machine.final]),
    )  # fmt: skip
    return _silent(moved, np.zeros(len(starts), np.int64), starts + 1, machine.initial[torch.from_numpy(starts)])


def _finite(weights: Tensor) -> Array:
    return np.flatnonzero((weights.detach() > -INF).numpy())


def _beside(first: Machine, second: Machine, initial: Tensor, final: Tensor) -> Machine:
    n = first.n_states
    return Machine(
        np.concatenate([first.source, second.source + n]), np.concatenate([first.target, second.target + n]),
        np.concatenate([first.input, second.input]), np.concatenate([first.output, second.output]),
        torch.cat([first.weights, second.weights]), initial, final,
    )  # fmt: skip


def _with_state(machine: Machine, *, initial: float, final: float) -> Machine:
    first = torch.cat([machine.initial, machine.initial.new_full((1,), initial)])
    last = torch.cat([machine.final, machine.final.new_full((1,), final)])
    return replace(machine, initial=first, final=last)


def _silent(machine: Machine, source: Array, target: Array, weights: Tensor) -> Machine:
    """Return the machine with epsilon arcs added."""
    nothing = np.full(len(source), EPSILON, np.int64)
    return replace(
        machine,
        source=np.concatenate([machine.source, source]), target=np.concatenate([machine.target, target]),
        input=np.concatenate([machine.input, nothing]), output=np.concatenate([machine.output, nothing]),
        weights=torch.cat([machine.weights, weights]),
    )  # fmt: skip
