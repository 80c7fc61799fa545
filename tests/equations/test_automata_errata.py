"""Misprints about transducers and closures: the printed form fails, the corrected one passes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from tests.contract.machines import random_machine, summed
from tests.oracles import automata as oracle
from trelliswork.fst import Transducer, lehmann, real_closure
from trelliswork.semirings import Real, Tropical
from trelliswork.structures.automata.structure import Machine

INF = float("inf")


def adjacency(machine: Machine) -> Tensor:
    """Σ over symbols of exp weights between states."""
    matrix = torch.zeros(machine.n_states, machine.n_states, dtype=torch.float64)
    places = torch.from_numpy(machine.source), torch.from_numpy(machine.target)
    return matrix.index_put(places, machine.weights.exp(), accumulate=True)


def test_the_factor_before_a_transduction_is_one_over_z() -> None:
    """Erratum 13: with 1/2 in front, p(y | x) does not sum to 1; with 1/Z(x) and all paths of y it does."""
    machine = random_machine(4)
    pairs, dist = summed(machine), Transducer.from_machine(machine)
    x = next(x for x, _ in pairs)
    outputs = [y for u, y in pairs if u == x]
    assert len(outputs) > 1
    assert not math.isclose(sum(math.exp(pairs[x, y]) / 2 for y in outputs), 1.0, rel_tol=0.01)
    assert math.isclose(sum(dist.log_prob(y, given=x).exp().item() for y in outputs), 1.0)


def test_a_sum_over_as_many_steps_as_symbols_misses_some() -> None:
    """Erratum 13: a path has its own length; adding up |y| of its scores leaves out those of silent steps."""
    machine = random_machine(4)
    weights = machine.weights.tolist()
    z = Transducer.from_machine(machine).log_partition.item()
    whole, printed = [], []
    for (first, arcs), score in oracle.paths(machine):
        written = oracle.labels(machine, (first, arcs), "output")
        whole.append(score)
        ends = score - sum(weights[arc] for arc in arcs)
        printed.append(ends + sum(weights[arc] for arc in arcs[: len(written)]))
    assert math.isclose(float(np.logaddexp.reduce(whole)), z, abs_tol=1e-10)
    assert abs(float(np.logaddexp.reduce(printed)) - z) > 0.01


def test_the_normaliser_needs_initial_and_final_weights_and_the_closure() -> None:
    """Erratum 13: Z = α^T W* β; without the weights of the ends, or with W in place of W*, it is another number."""
    machine = random_machine(6, cyclic=True)
    w, start, end = adjacency(machine), machine.initial.exp(), machine.final.exp()
    z = Transducer.from_machine(machine).log_partition.exp()
    torch.testing.assert_close(start @ real_closure(w) @ end, z)
    unweighted = (start > 0).double() @ real_closure(w) @ (end > 0).double()
    assert not torch.allclose(unweighted, z, rtol=0.05)
    assert not torch.allclose(start @ w @ end, z, rtol=0.05)


def test_outside_the_unit_circle_the_inverse_is_not_the_sum() -> None:
    """Erratum 13: with a spectral radius of 1 or more (I - W)^-1 may exist, below 0 in places; the series does not."""
    w = torch.tensor([[0.0, 2.0], [1.0, 0.0]], dtype=torch.float64)
    inverse = torch.linalg.inv(torch.eye(2, dtype=torch.float64) - w)
    assert (inverse < 0).any()
    assert torch.linalg.matrix_power(w, 40).max() > 1e6


def printed_powers(costs: Tensor, n_steps: int, start_at: float) -> list[Tensor]:
    """W, W², ... by the printed loops: each entry is the least of `start_at` and all sums over a middle state."""
    powers = [costs]
    for _ in range(n_steps - 1):
        sums = (powers[-1][:, :, None] + costs[None, :, :]).amin(1)
        powers.append(sums.clamp(max=start_at))
    return powers


def test_the_closure_begins_with_the_identity() -> None:
    """Erratum 14: W* = I + W Σ_{K>=0} W^K; with the printed lower limit of 1 paths of one step are lost."""
    w = torch.rand(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 8
    powers = [torch.linalg.matrix_power(w, k) for k in range(60)]
    one = powers[0]
    torch.testing.assert_close(one + w @ torch.stack(powers).sum(0), real_closure(w))
    printed = one + w @ torch.stack(powers[1:]).sum(0)
    torch.testing.assert_close(real_closure(w) - printed, w)


def test_the_least_of_sums_starts_at_infinity() -> None:
    """Erratum 14: an accumulator of 0 never rises, so with costs above 0 every distance would be 0."""
    costs = 1 + torch.rand(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    _, printed = printed_powers(costs, 2, start_at=0.0)
    _, right = printed_powers(costs, 2, start_at=INF)
    assert (printed == 0).all()
    torch.testing.assert_close(right, Tropical().matmul(costs, costs))


def test_the_printed_loops_are_powers_and_not_floyd_warshall() -> None:
    """Erratum 14: W^K holds paths of exactly K steps. Lehmann's sweep over middle states finds all lengths at once."""
    n = 6
    line = torch.full((n, n), INF, dtype=torch.float64)
    for i, j in pairwise(range(n)):
        line[i, j] = 1.0
    powers = printed_powers(line, n, start_at=INF)
    closed = lehmann(line, Tropical())
    distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    torch.testing.assert_close(closed, torch.where(distance >= 0, distance.double(), INF))
    assert all((power != closed).any() for power in powers)  # no power is the answer, only the least of all with I
    one = torch.where(torch.eye(n, dtype=torch.bool), 0.0, INF).double()
    torch.testing.assert_close(torch.stack([one, *powers]).amin(0), closed)


def test_without_the_star_of_the_middle_state_cycles_count_once() -> None:
    """Erratum 14: W_ij + W_ik W_kj suffices for shortest paths; sums need W_kk* between, as (I - W)^-1 has it."""
    w = torch.rand(4, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64) / 6
    plain = w.clone()
    for k in range(4):
        plain = plain + plain[:, k, None] * plain[None, k, :]
    one = torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(lehmann(w, Real()), torch.linalg.inv(one - w))
    assert not torch.allclose(plain + one, real_closure(w), rtol=1e-3)
