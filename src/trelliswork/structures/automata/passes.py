"""The queries of machines by kernel: torch tensors in and out, float64 arrays inside, analytic gradients.

Acyclic machines go through the kernels; those with cycles through the levels of the reference, with closures by kernel.
Gradients of gradients always run through the reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.structures.automata import kernels, structure
from trelliswork.structures.automata.structure import Machine


class Forward(NamedTuple):
    """Results of one forward pass; with cycles also β, what is ahead of each state."""

    alpha: Array
    log_z: float
    beta: Array | None = None


def run_forward(machine: Machine) -> Forward:
    """Return α and log Z of a machine with at least one path."""
    weights, initial, final = machine.arrays
    if machine.acyclic:
        alpha, beta = np.empty(machine.n_states), None
        kernels.sum_forward(machine.order, machine.into, machine.source, weights, initial, alpha)
    else:
        alpha, beta = _behind(machine), _behind(structure.reverse(machine))
    return Forward(alpha, float(np.logaddexp.reduce(alpha + final)), beta)  # [S2, WFST normaliser]


def _behind(machine: Machine) -> Array:
    """Return α of a machine with cycles, -inf for states on no path."""
    alpha = np.full(machine.n_states, -np.inf)
    with torch.no_grad():
        alpha[machine.live] = structure.forward(structure.trim(machine.double()), structure.LOG).numpy()
    return alpha


def run_posteriors(machine: Machine, run: Forward, scale: float) -> tuple[Array, Array, Array]:
    """Return scale times the posteriors of arcs, first and last states.

    Args:
        machine: the machine.
        run: the pass forwards.
        scale: factor of the result.

    Returns:
        Three arrays: [arcs], [states] and [states].
    """
    weights, initial, final = machine.arrays
    if run.beta is not None:
        by_arc = run.alpha[machine.source] + weights + run.beta[machine.target]
        return tuple(scale * np.exp(x - run.log_z) for x in (by_arc, initial + run.beta, run.alpha + final))  # type: ignore[return-value]
    gradients = np.zeros(len(weights)), np.zeros(len(initial)), np.zeros(len(final))
    kernels.posteriors(
        machine.order, machine.into, machine.source, weights, initial, final, run.alpha, run.log_z, scale, gradients
    )
    return gradients


def log_partition(machine: Machine) -> Tensor:
    """Return log Z in float64."""
    if not machine.live.any():
        return structure.log_partition(machine.double())
    run = run_forward(machine)
    return differentiable(
        torch.tensor(run.log_z, dtype=torch.float64),
        machine.scores,
        lambda grad: run_posteriors(machine, run, grad.item()),
        lambda *scores: structure.log_partition(machine.with_scores(*scores)),
    )


def marginals(machine: Machine) -> tuple[Tensor, Tensor, Tensor]:
    """Return posteriors in float64."""
    if not machine.live.any():
        return structure.marginals(machine.double())
    expected = run_posteriors(machine, run_forward(machine), 1.0)
    posteriors: tuple[Tensor, Tensor, Tensor] = differentiable(
        tuple(torch.from_numpy(each) for each in expected),
        machine.scores,
        None,
        lambda *scores: structure.marginals(machine.with_scores(*scores)),
    )
    return posteriors


def log_ahead(machine: Machine) -> Array:
    """Return β(q): the log of the summed weights of all ways from each state to an end; -inf for states on no path."""
    if not machine.acyclic:
        return _behind(structure.reverse(machine))
    weights, _, final = machine.arrays
    beta = np.empty(machine.n_states)
    kernels.sum_forward(machine.order[::-1].copy(), machine.out, machine.target, weights, final, beta)
    return np.where(machine.live, beta, -np.inf)


def best_ahead(machine: Machine) -> Array:
    """Return the best weight from each state to an end (of states on no path perhaps -inf).

    It is an error if a cycle gains.
    """
    onwards = best_onwards(machine)
    if onwards is not None:
        return onwards[0]
    weights, _, final = machine.arrays
    ahead = np.full(machine.n_states, -np.inf)
    if not kernels.relax(machine.source, machine.target, weights, final, machine.live, ahead):
        raise ScoreError("there is no best path: going round some cycle gains; lower the weights on cycles")
    return np.where(machine.live, ahead, -np.inf)


def best_onwards(machine: Machine) -> tuple[Array, Array] | None:
    """Return the best weight from each state to an end and the first arc of it (-1: none); None if there are cycles."""
    weights, _, final = machine.arrays
    ahead, steps = np.empty(machine.n_states), np.empty(machine.n_states, np.int64)
    if kernels.best_in_order(machine.source, machine.target, weights, final, ahead, steps):
        return ahead, steps  # then nothing need be known about what is live
    if not machine.acyclic:
        return None
    kernels.best_ahead(machine.order, machine.out, machine.target, weights, final, ahead, steps)
    return ahead, steps


def sample_paths(machine: Machine, n_samples: int, generator: torch.Generator | None) -> list[tuple[int, Array]]:
    """Return exact samples: (first state, arcs) of each.

    Args:
        machine: the machine.
        n_samples: how many paths to draw.
        generator: source of random numbers; None for torch's own.

    Returns:
        The first state and the arcs of each path.
    """
    weights, initial, final = machine.arrays
    beta = log_ahead(machine)
    starts = np.flatnonzero(initial + beta > -np.inf)
    room = np.empty(1 + np.diff(machine.out[0]).max(initial=0))
    seed = torch.randint(-(2**62), 2**62, (1,), generator=generator).numpy().astype(np.uint64)
    given = machine.out, machine.target, weights, starts, (initial + beta)[starts], final, beta, room, seed
    return [kernels.sample_path(*given) for _ in range(n_samples)]
