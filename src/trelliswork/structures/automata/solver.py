"""Paths of a machine: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata import passes, search, structure
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference

NO_ARC = -1
MachinePath = tuple[int, Array]  # first state and arcs


class MachineReference(Reference):
    """Sums in plain torch; single paths are searched and drawn by kernel.

    A machine is one row without a batch axis: log Z is a scalar. Values are paths [samples, 1, 1 + arcs]: the first
    state, then the arcs, NO_ARC behind the last.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__(structure, machine)

    @property
    def _machine(self) -> Machine:
        machine: Machine = self._parts[0]
        return machine

    def score(self, values: Tensor) -> Tensor:
        paths = values.reshape(len(values), -1).numpy()
        return torch.stack([structure.path_score(self._machine, int(row[0]), row[1:][row[1:] >= 0]) for row in paths])

    def best(self) -> Decoded:
        values, scores = self.top_k(1)
        return values[0], scores[0] > -np.inf

    def top_k(self, k: int) -> Decoded:
        best = search.best_paths(self._machine, k) or [(0, np.empty(0, np.int64), -np.inf)]
        scores = torch.tensor([score for _, _, score in best], dtype=torch.float64)
        return _pad([(first, arcs) for first, arcs, _ in best]), scores[:, None]

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        return _pad(passes.sample_paths(self._machine, n_samples, generator))


class Kernels(MachineReference):
    """Sums over paths by kernel."""

    def log_partition(self) -> Tensor:
        return passes.log_partition(self._machine)

    def marginals(self) -> tuple[Tensor, Tensor, Tensor]:
        return passes.marginals(self._machine)


def _pad(paths: list[MachinePath]) -> Tensor:
    values = np.full((len(paths), 1, 1 + max((len(arcs) for _, arcs in paths), default=0)), NO_ARC)
    for value, (first, arcs) in zip(values[:, 0], paths, strict=True):
        value[0], value[1 : 1 + len(arcs)] = first, arcs
    return torch.from_numpy(values)


def example(scores: Scores) -> Example:
    return {"arcs": [(0, 1, "a"), (0, 1, "b"), (1, 2, "a")], "weights": scores(3), "final": 2}


STRUCTURE = Structure("automata", MachineReference, Kernels, example)
