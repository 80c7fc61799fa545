"""Machines keep the contract of every structured distribution: one row, whose values are paths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.base import Instance, PartialKnowledge, Plain, StructureContract
from tests.contract.machines import random_machine
from tests.oracles import automata as oracle
from trelliswork.distributions.automaton import Path
from trelliswork.errors import ConstraintError
from trelliswork.fst import Transducer
from trelliswork.structures.automata.build import only
from trelliswork.structures.automata.structure import Machine

INF = float("inf")


def instance_of(machine: Machine, dtype: torch.dtype = torch.float64) -> Instance:
    scores = dict(zip(("weights", "initial", "final"), (each.to(dtype) for each in machine.scores), strict=True))
    arcs = {name: torch.from_numpy(getattr(machine, name)) for name in ("source", "target", "input", "output")}
    return Instance(scores, arcs)


def machine_of(instance: Instance) -> Machine:
    arcs = (instance.options[name].numpy() for name in ("source", "target", "input", "output"))
    return Machine(*arcs, *(instance.scores[name] for name in ("weights", "initial", "final")))


class TestMachine(StructureContract):
    gradient_of = "weights"

    def instances(self) -> dict[str, Instance]:
        tied = random_machine(5, arcs=12)
        zeros = (torch.where(each > -INF, 0.0, -INF).double() for each in tied.scores)
        return {
            "small": instance_of(random_machine(1)),
            "float32": instance_of(random_machine(2, n=6, arcs=12), torch.float32),
            "dead ends": instance_of(random_machine(7, n=7, arcs=14)).with_scores(
                initial=only(7, 0, torch.float64), final=only(7, 6, torch.float64)
            ),
            "ties": instance_of(tied.with_scores(*zeros)),
        }

    def small_instances(self) -> dict[str, Instance]:
        return {"small": instance_of(random_machine(1, n=4, arcs=8))}

    def impossible(self) -> tuple[Instance, int]:
        instance = instance_of(random_machine(1))
        return instance.with_scores(final=torch.full_like(instance.scores["final"], -INF)), 0

    def build(self, instance: Instance, backend: str) -> Any:
        dist = Transducer.from_machine(machine_of(instance))
        dist.backend = backend
        return dist

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return dict(oracle.paths(machine_of(instance)))

    def n_rows(self, instance: Instance) -> int:
        return 1

    def to_plain(self, instance: Instance, value: Path) -> list[Plain]:
        return [(value.first, value.arcs)]

    def to_value(self, instance: Instance, plain: list[Any]) -> Path:
        return self.build(instance, "torch").path(*plain[0])

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        taken = torch.zeros(len(instance.scores["weights"]), dtype=torch.float64)
        taken[list(plain[1])] = 1
        return taken

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        allowed = torch.arange(len(instance.scores["weights"])) % 3 > 0
        machine = machine_of(instance)
        (first, arcs), _ = max(oracle.paths(machine), key=lambda pair: len(pair[0][1]), default=((0, ()), 0.0))
        read = oracle.labels(machine, (first, arcs))
        return [
            PartialKnowledge(allowed, lambda row, path: all(allowed[arc] for arc in path[1])),
            PartialKnowledge((read, None), lambda row, path: oracle.labels(machine, path) == read),
        ]

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        return instance.with_scores(initial=instance.scores["initial"] + by), [by]

    def sharpened(self, instance: Instance) -> Instance:
        return super().sharpened(instance) if machine_of(instance).acyclic else instance

    def offsets(self, instance: Instance, by: float) -> list[Instance]:
        """Of all weights only without cycles: with them, the sum over paths would not be finite."""
        every = super().offsets(instance, by)
        return every if machine_of(instance).acyclic else every[:1]

    def one_row(self, instance: Instance, row: int) -> Instance:
        return instance

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        """Weights of arcs on no path."""
        dead = torch.ones(len(instance.scores["weights"]), dtype=torch.bool)
        dead[machine_of(instance).live_arcs] = False
        dead &= instance.scores["weights"] > -INF
        return instance.with_scores(weights=torch.where(dead, garbage, instance.scores["weights"]))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        if not plain[1]:
            initial = instance.scores["initial"].clone()
            initial[plain[0]] = -INF
            return instance.with_scores(initial=initial)
        weights = instance.scores["weights"].clone()
        weights[plain[1][0]] = -INF
        return instance.with_scores(weights=weights)

    def test_samples_come_in_the_shape_asked_for(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        assert isinstance(dist.sample(), Path)
        drawn = dist.sample((2, 3))
        assert len(drawn) == 2 and all(len(each) == 3 for each in drawn)
        assert dist.sample((0,)) == []

    @pytest.mark.parametrize("query", ["argmax", "mode", "top_k", "sample"])
    def test_an_impossible_row_is_named_when_a_value_is_asked_for(self, backend: str, query: str) -> None:
        dist = self.build(self.impossible()[0], backend)
        asked = {"top_k": lambda: dist.top_k(2), "sample": lambda: dist.sample((2,))}
        with pytest.raises(ConstraintError, match="no path with a score above -inf; connect"):
            asked.get(query, lambda: getattr(dist, query))()


@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_half_precision_in_and_out(backend: str) -> None:
    machine = random_machine(1)
    scores = [each.bfloat16().requires_grad_() for each in machine.scores]
    dist = Transducer.from_machine(machine.with_scores(*scores))
    dist.backend = backend  # type: ignore[assignment]
    dist.log_partition.backward()
    assert dist.log_partition.dtype == dist.marginals.dtype == dist.entropy().dtype == torch.bfloat16
    assert scores[0].grad is not None and scores[0].grad.dtype == torch.bfloat16
    torch.testing.assert_close(scores[0].grad, dist.marginals)
