"""Derivations of a grammar: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import Array
from trelliswork.structures.grammar import dense, kernels, path_kernels, structure
from trelliswork.structures.grammar.fast import (
    GrammarArrays,
    Inside,
    run_inside,
    run_inside_in_log_space,
    run_outside,
    shared,
)
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.structure import Productions
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, seeds, top_by
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference


class Kernels(KernelSolver):
    """By kernel. Values are nodes [rows, 2n-1, 3]: (start, end, symbol), -1 at padding."""

    module = structure
    _parts: Productions

    @cached_property
    def arrays(self) -> GrammarArrays:
        return GrammarArrays.of(self._parts)

    @cached_property
    def run(self) -> Inside:
        return run_inside(self.arrays)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return shared(run_outside(self.arrays, self.run, grad), self._parts.scores)

    def marginals(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """How often each rule, lexical symbol, root and node is expected, row by row."""
        expected = run_outside(self.arrays, self.run, np.ones(len(self.run.log_z)))
        found: tuple[Tensor, Tensor, Tensor, Tensor] = self._posteriors(tuple(map(torch.from_numpy, expected)))
        return found

    def best(self) -> Drawn:
        arrays, nodes = self.arrays, _no_nodes(self.arrays)
        if dense.is_worth_it(arrays.table, arrays.rules):
            possible = np.empty(len(nodes), np.bool_)
            dense.best_derivations(arrays, nodes, possible)
            return torch.from_numpy(nodes), torch.from_numpy(possible)
        return best_by(kernels.best_derivations, arrays.work // 6, nodes, *arrays[:5], arrays.grammar)

    def top_k(self, k: int) -> Drawn:
        arrays, nodes = self.arrays, _no_nodes(self.arrays, k)
        return top_by(path_kernels.top_derivations, arrays.work * k, nodes, *arrays[:5], arrays.grammar)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """From charts in log space."""
        arrays, nodes = self.arrays, _no_nodes(self.arrays, n_samples)
        run = self.run if self.run.charts is not None else run_inside_in_log_space(arrays)
        batch, n, _ = arrays.lexical.shape
        given = (
            arrays.rules,
            arrays.root,
            arrays.lengths,
            arrays.grammar,
            run.charts,
            seeds(n_samples, batch, generator),
        )
        return draw_by(kernels.sample_derivations, arrays.work * n_samples // max(n, 1), nodes, *given)


def _no_nodes(arrays: GrammarArrays, *lead: int) -> Array:
    batch, n, _ = arrays.lexical.shape
    return np.full((*lead, batch, 2 * n - 1, 3), -1)


def example(scores: Scores) -> dict[str, Any]:
    return {"grammar": Grammar.from_rules("S -> S S 1 | 'a' 1"), "lexical": scores(2, 3, 1)}


STRUCTURE = Structure("grammar", partial(Reference, structure), Kernels, example)
