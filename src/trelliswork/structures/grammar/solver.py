"""Derivations of a grammar: the passes over float64 arrays, both solvers of the queries, and the record."""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.derivation_kernels import PAIR
from trelliswork.structures.derivations import Plan, top_of_rows
from trelliswork.structures.grammar import dense, kernels, structure
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.structure import Productions, RuleTable
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, seeds
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference

# The k best derivations of a grammar: a chart of its symbols whose derivations are asked for lazily.


def top_derivations(
    table: RuleTable, rules: Array, lexical: Array, root: Array, nodes: Array | None, k: int
) -> tuple[Array, Array]:
    """Return the k best derivations of a row, nodes [k, 2n-1, 3], and their scores [k], or all if there are fewer.

    The scores are rules [1 or n, 1 or n, rules], lexical [n, words], root [symbols] and nodes [n, n, symbols] or None.

    Args:
        table: the rules by number.
        rules: scores [1 or n, 1 or n, rules].
        lexical: scores of the symbols above each word [n, symbols].
        root: scores of the root symbols [symbols].
        nodes: scores that every node adds [n, n, symbols]; None for 0.
        k: how many derivations to return.

    Returns:
        Nodes (start, end, symbol) and scores, best first.
    """
    n, n_symbols = len(lexical), len(root)
    nothing, whole = n_symbols, n_symbols + 1  # planes: the other part of the root, and the root above its symbol
    own, is_token = np.zeros((n_symbols + 2, n, n)), np.eye(n, dtype=bool)
    if nodes is not None:
        own[:n_symbols] = nodes.transpose(2, 0, 1)
    for symbol in range(n_symbols):
        if symbol >= table.n_phrases or table.starts[symbol] == table.starts[symbol + 1]:
            own[symbol, ~is_token] = -np.inf
        word = symbol - table.first_lexical
        own[symbol, is_token] += lexical[:, word] if word >= 0 else -np.inf
    lefts, rights = table.lefts[table.pair_of].tolist(), table.rights[table.pair_of].tolist()
    made = [(left, right, 0, 1, 1) for left, right in zip(lefts, rights, strict=True)]
    plan = Plan.of(
        *(made[table.starts[a] : table.starts[a + 1]] if a < table.n_phrases else [] for a in range(n_symbols)),
        [],
        [(a, nothing, 0, 0, PAIR) for a in range(n_symbols)],
    )
    weights = np.concatenate([rules, np.broadcast_to(root, (*rules.shape[:2], n_symbols))], 2)
    derivations, scores = plan.top(k, own, np.empty((0, n, n, 1)), (whole, 0, n - 1), 0, weights)
    return derivations[:, 1 : 2 * n, [1, 2, 0]] + np.array([0, 1, 0]), scores


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
        """The tuple of arrays that the kernels call `grammar`."""
        table = self.table
        return table.lefts, table.rights, table.pair_of, table.starts, table.pair_ranges

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, _ = self.lexical.shape
        return 6 * batch * n * n * (len(self.table.pair_of) + len(self.table.lefts) * n // 3)


class Inside(NamedTuple):
    """Results of one inside pass: log Z and charts in log space, or scaled ones where that is exact."""

    log_z: Array
    charts: Array | None  # [batch, n, n, symbols]
    scaled: dense.Scaled | None


def run_inside(arrays: GrammarArrays) -> Inside:
    """Return log Z of every row.

    By matrix products where the grammar is dense and nothing is lost, else in log space.
    """
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
    """Return gradients of Σ_b grad[b] log Z[b] for each row: by rules, lexical, root and nodes.

    Args:
        arrays: the scores of the rows.
        run: the pass that computed log Z.
        grad: weight of each row [batch].

    Returns:
        Four gradients with the shapes of the scores, one for each row.
    """
    if run.scaled is not None:
        return dense.outside(arrays, run.scaled, grad)
    batch, n, n_lexical = arrays.lexical.shape
    n_symbols = arrays.root.shape[1]
    d_rules = np.zeros((batch, *arrays.rules.shape[1:]))
    gradients = (
        d_rules,
        np.zeros((batch, n, n_lexical)),
        np.zeros((batch, n_symbols)),
        np.zeros((batch, n, n, n_symbols)),
    )
    rules, _, root, nodes, lengths, _ = arrays
    over_rows(
        kernels.outside, batch, 2 * arrays.work,
        (rules, root, nodes, lengths), arrays.grammar, run.charts, run.log_z, grad, gradients,
    )  # fmt: skip
    return gradients


def shared(gradients: tuple[Array, ...], like: tuple[Tensor | None, ...]) -> tuple[Array, ...]:
    """Return gradients of each row, added up where a score is shared."""
    return tuple(
        array.sum(0, keepdims=True) if tensor is not None and len(tensor) == 1 < len(array) else array
        for array, tensor in zip(gradients, like, strict=True)
    )


class Kernels(KernelSolver):
    """By kernel. Values are nodes [rows, 2n-1, 3]: (start, end, symbol), -1 at padding."""

    module, finds_fewer = structure, True
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
        """Return the expected number of each rule, lexical symbol, root and node, row by row."""
        expected = run_outside(self.arrays, self.run, np.ones(len(self.run.log_z)))
        posteriors: tuple[Tensor, Tensor, Tensor, Tensor] = self._posteriors(tuple(map(torch.from_numpy, expected)))
        return posteriors

    def best(self) -> Decoded:
        arrays, nodes = self.arrays, _no_nodes(self.arrays)
        if dense.is_worth_it(arrays.table, arrays.rules):
            possible = np.empty(len(nodes), np.bool_)
            dense.best_derivations(arrays, nodes, possible)
            return torch.from_numpy(nodes), torch.from_numpy(possible)
        return best_by(kernels.best_derivations, arrays.work // 6, nodes, *arrays[:5], arrays.grammar)

    def top_k(self, k: int) -> Decoded:
        rules, lexical, root, nodes, lengths, table = self.arrays
        batch, n_most, _ = lexical.shape

        def row(b: int) -> tuple[Array, Array]:
            n, own = lengths[b], nodes[b % len(nodes)] if len(nodes) else None
            shared = rules[b % len(rules)][:n, :n], lexical[b, :n], root[b % len(root)]
            return top_derivations(table, *shared, None if own is None else own[:n, :n], k)

        derivations, scores = top_of_rows(row, batch, self.arrays.work, (2 * n_most - 1, 3), -1)
        return torch.from_numpy(derivations), torch.from_numpy(scores)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Draw from charts in log space."""
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


def example(scores: Scores) -> Example:
    return {"grammar": Grammar.from_rules("S -> S S 1 | 'a' 1"), "lexical": scores(2, 3, 1)}


STRUCTURE = Structure("grammar", partial(Reference, structure), Kernels, example)
