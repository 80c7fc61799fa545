"""Automata against OpenFst (pynini): `python -m benchmarks.automata [--quick]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.report import OURS, Contest, Growth, main
from benchmarks.timing import Candidate
from trelliswork.fst import Acceptor, Transducer
from trelliswork.structures.automata.build import lattice, only
from trelliswork.structures.automata.structure import Machine

WITHIN = {"OpenFst": 1 / 3}  # OpenFst may be three times as fast


def emissions(n: int, c: int) -> Machine:
    """All label sequences of length n, weighted: n c arcs."""
    generator = torch.Generator().manual_seed(0)
    return lattice(torch.randn(n, c, generator=generator), range(1, c + 1))


def transitions(c: int) -> Machine:
    """A state for each label and arcs between all of them: c² arcs."""
    generator = torch.Generator().manual_seed(1)
    source, target = np.repeat(np.arange(c), c), np.tile(np.arange(c), c)
    weights = torch.randn(c * c, generator=generator)
    return Machine(source, target, target + 1, target + 1, weights, only(c, 0, torch.float32), torch.zeros(c))


def layered(n: int, arcs: int, labels: int, seed: int, reach: int = 5) -> Machine:
    """A random acyclic transducer with epsilon on both sides; arcs lead a few states onwards."""
    random = np.random.default_rng(seed)
    source = random.integers(0, n - 1, arcs)
    target = np.minimum(source + random.integers(1, reach + 1, arcs), n - 1)
    read, written = random.integers(0, labels, (2, arcs))
    weights = torch.from_numpy(random.normal(size=arcs)).float()
    first, last = only(n, 0, torch.float32), only(n, n - 1, torch.float32)
    return Machine(source, target, read, written, weights, first, last)


def openfst(machine: Machine) -> Any:
    """The same machine as OpenFst's, in its log semiring; the first state must be 0."""
    import pywrapfst

    fst = pywrapfst.VectorFst(arc_type="log")
    fst.add_states(machine.n_states)
    fst.set_start(0)
    columns = (machine.source, machine.target, machine.input, machine.output, -machine.weights.numpy())
    for source, target, read, written, cost in zip(*(each.tolist() for each in columns), strict=True):
        fst.add_arc(source, pywrapfst.Arc(read, written, pywrapfst.Weight("log", cost), target))
    for state, cost in enumerate((-machine.final).tolist()):
        if cost < float("inf"):
            fst.set_final(state, pywrapfst.Weight("log", cost))
    return fst


def fresh(machine: Machine) -> Transducer:
    """Without anything remembered from the last call."""
    return Transducer.from_machine(machine.with_scores(*machine.scores))


def composed(first: Machine, second: Machine) -> dict[str, dict[str, Callable[[], object]]]:
    """Task -> candidate -> call, for one pair. Both sort the second machine's arcs each time."""
    import pywrapfst

    their_first, their_second = openfst(first), openfst(second)
    joint = fresh(first).compose(fresh(second)).machine
    their_joint = pywrapfst.compose(their_first, their_second.copy().arcsort("ilabel"))

    tropical = pywrapfst.arcmap(their_joint, map_type="to_standard")

    def compose_both() -> Any:
        return pywrapfst.compose(their_first, their_second.copy().arcsort("ilabel"))

    return {
        "compose + log Z": {
            OURS: lambda: fresh(first).compose(fresh(second)).log_partition,
            "OpenFst": lambda: pywrapfst.shortestdistance(compose_both(), reverse=True),
        },
        "compose": {OURS: lambda: fresh(first).compose(fresh(second)), "OpenFst": compose_both},
        "log Z": {
            OURS: lambda: fresh(joint).log_partition,
            "OpenFst": lambda: pywrapfst.shortestdistance(their_joint, reverse=True),
        },
        "log Z + gradient": {OURS: lambda: gradient(joint)},
        "best path": {OURS: lambda: fresh(joint).argmax, "OpenFst": lambda: pywrapfst.shortestpath(tropical)},
    }


def gradient(machine: Machine) -> object:
    weights = machine.weights.detach().requires_grad_()
    again = Transducer.from_machine(machine.with_scores(weights, machine.initial, machine.final))
    return torch.autograd.grad(again.log_partition, weights)


NOTE = """
`make bench`: milliseconds a call, medians of interleaved rounds in one process, one thread; in brackets how many times
as long as ours. Pairs of machines with 10,000 arcs each: a lattice of emissions (n positions, c labels) with a machine
of all transitions, whose composition is the linear chain; and random acyclic transducers with epsilon on both sides.
OpenFst through pynini, log semiring in float32 (ours in float64 inside); both sort arcs and trim within "compose".
Wanted: at most three times the time of OpenFst.
"""


def contests() -> Iterator[Contest]:
    pairs = {
        "lattice (100, 100) ∘ bigrams (100)": (emissions(100, 100), transitions(100)),
        "lattice (500, 20) ∘ bigrams (20)": (emissions(500, 20), transitions(20)),
        "random 10,000 ∘ random 10,000": (layered(1000, 10_000, 60, 3), layered(1000, 10_000, 60, 4)),
    }
    for size, pair in pairs.items():
        for task, calls in composed(*pair).items():
            targets = WITHIN if "OpenFst" in calls else {}
            yield Contest(task, size, [Candidate(name, call) for name, call in calls.items()], targets)


def growths() -> Iterator[Growth]:
    def chain(n: int) -> Callable[[], object]:
        first, second = emissions(n, 20), transitions(20)
        return lambda: Acceptor.from_machine(first).intersect(Acceptor.from_machine(second)).log_partition

    yield Growth("compose + log Z, lattice (n, 20) ∘ bigrams (20)", (250, 500, 1000), 1.0, chain)


if __name__ == "__main__":
    main("automata", "Speed of automata", NOTE, contests, growths)
