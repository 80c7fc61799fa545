"""The passes of the kernels of grammars over float64 arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.grammar import dense, kernels
from trelliswork.structures.grammar.structure import Productions, RuleTable

NO_NODES = np.empty((0, 0, 0, 0))


class GrammarArrays(NamedTuple):
    """The scores as C-contiguous float64 arrays."""

    rules: Array
    lexical: Array
    root: Array
    nodes: Array
    lengths: Array
    table: RuleTable

    @staticmethod
    def of(parts: Productions) -> GrammarArrays:
        rules, lexical, root = (as_array(each, np.float64) for each in (parts.rules, parts.lexical, parts.root))
        nodes = NO_NODES if parts.nodes is None else as_array(parts.nodes, np.float64)
        return GrammarArrays(rules, lexical, root, nodes, as_array(parts.lengths), parts.table)

    @property
    def grammar(self) -> tuple[Array, ...]:
        """What the kernels call `grammar`."""
        table = self.table
        return table.lefts, table.rights, table.pair_of, table.starts, table.pair_ranges

    @property
    def work(self) -> int:
        """Multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, _ = self.lexical.shape
        return 6 * batch * n * n * (len(self.table.pair_of) + len(self.table.lefts) * n // 3)


class Inside(NamedTuple):
    """What one inside pass leaves behind: log Z and charts in log space, or scaled ones where that is exact."""

    log_z: Array
    charts: Array | None  # [batch, n, n, symbols]
    scaled: dense.Scaled | None


def run_inside(arrays: GrammarArrays) -> Inside:
    """log Z of every row: by matrix products where the grammar is dense and nothing is lost, else in log space."""
    if dense.is_worth_it(arrays.table, arrays.rules):
        scaled = dense.inside(arrays)
        if scaled is not None:
            return Inside(scaled.log_z, None, scaled)
    return run_inside_in_log_space(arrays)


def run_inside_in_log_space(arrays: GrammarArrays) -> Inside:
    batch, n, _ = arrays.lexical.shape
    charts, log_z = np.empty((batch, n, n, arrays.root.shape[1])), np.empty(batch)
    over_rows(kernels.inside, batch, arrays.work, *arrays[:5], arrays.grammar, charts, log_z)
    return Inside(log_z, charts, None)


def run_outside(arrays: GrammarArrays, run: Inside, grad: Array) -> tuple[Array, Array, Array, Array]:
    """Gradients of Σ_b grad[b] log Z[b] for each row: by rules, lexical, root and nodes."""
    if run.scaled is not None:
        return dense.outside(arrays, run.scaled, grad)
    batch, n, n_lexical = arrays.lexical.shape
    n_symbols = arrays.root.shape[1]
    d_rules = np.zeros((batch, *arrays.rules.shape[1:]))
    found = d_rules, np.zeros((batch, n, n_lexical)), np.zeros((batch, n_symbols)), np.zeros((batch, n, n, n_symbols))
    rules, _, root, nodes, lengths, _ = arrays
    over_rows(
        kernels.outside, batch, 2 * arrays.work,
        (rules, root, nodes, lengths), arrays.grammar, run.charts, run.log_z, grad, found,
    )  # fmt: skip
    return found


def shared(found: tuple[Array, ...], like: tuple[Tensor | None, ...]) -> tuple[Array, ...]:
    """Gradients of each row, added up where a score is shared."""
    return tuple(
        array.sum(0, keepdims=True) if tensor is not None and len(tensor) == 1 < len(array) else array
        for array, tensor in zip(found, like, strict=True)
    )
