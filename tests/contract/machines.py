"""Machines for the tests: random ones, and what their paths spell, by enumeration."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

from tests.oracles import automata as oracle
from trelliswork.structures.automata.structure import Machine

INF = float("inf")
Strings = tuple[tuple[int, ...], tuple[int, ...]]


def random_machine(
    seed: int, n: int = 5, arcs: int = 10, labels: int = 3, *, cyclic: bool = False, acceptor: bool = False
) -> Machine:
    """A machine with epsilon on both sides, -inf among all weights, and several first and last states."""
    random = np.random.default_rng(seed)
    source, target = random.integers(0, n, (2, arcs))
    if not cyclic:
        source, target = np.minimum(source, target), np.maximum(source, target)
        onwards = source < target
        source, target = source[onwards], target[onwards]
    m = len(source)
    read, written = random.integers(0, labels, (2, m))
    weights = np.where(random.random(m) < 0.1, -INF, random.normal(size=m) - (3.0 if cyclic else 0.0))
    initial, final = np.where(random.random((2, n)) < 0.5, random.normal(size=(2, n)), -INF)
    initial[0], final[n - 1] = random.normal(size=2)
    scores = (torch.from_numpy(each) for each in (weights, initial, final))
    return Machine(source, target, read, read if acceptor else written, *scores)


def enumerated(machine: Machine, longest: int = 12) -> dict[Strings, list[float]]:
    """The scores of all paths by the pair of strings that they spell."""
    found: dict[Strings, list[float]] = defaultdict(list)
    for path, score in oracle.paths(machine, longest):
        found[oracle.labels(machine, path), oracle.labels(machine, path, "output")].append(score)
    return found


def summed(machine: Machine, longest: int = 12) -> dict[Strings, float]:
    """log of the summed weights of each pair of strings."""
    return {pair: float(np.logaddexp.reduce(scores)) for pair, scores in enumerated(machine, longest).items()}


def leaves(machine: Machine) -> tuple[Machine, list[Tensor]]:
    """The machine with scores to differentiate by."""
    scores = [each.detach().clone().requires_grad_() for each in machine.scores]
    return machine.with_scores(*scores), scores
