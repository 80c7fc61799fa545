"""Dense grammars by matrix products: CKY in exp space, one product of pairs by rules for all spans of one width."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.threads import WORTH_SPLITTING, over_rows
from trelliswork.structures.grammar import dense_kernels, dense_tree_kernels
from trelliswork.structures.grammar.structure import RuleTable

if TYPE_CHECKING:
    from trelliswork.structures.grammar.solver import GrammarArrays

MOST_TO_WIDEN = 24  # phrases
MOST_ROOM = 1 << 23  # numbers (64 MB)
WORTH_IT = 0.25  # of all triples of symbols must be rules; below, one loop over the rules is faster


class Rules(NamedTuple):
    """exp of the rules' scores, relative to the highest: [1 or batch, phrases, ...]."""

    every: Array  # [..., symbols, symbols]
    above_phrases: Array  # [..., phrases²]
    above_tokens: Array  # [..., lexical symbols²]
    at_edges: Array  # [2, 1 or batch, phrases², lexical symbols]: above p and a token, by (p, a); above a token and p

    @staticmethod
    def of(every: Array, first: int) -> Rules:
        rows, n_phrases, _, _ = every.shape
        phrases, tokens = every[:, :, :n_phrases, :n_phrases], every[:, :, first:, first:]
        right, left = every[:, :, :n_phrases, first:], every[:, :, first:, :n_phrases].transpose(0, 1, 3, 2)
        at_edges = np.stack([right, left]).transpose(0, 1, 3, 2, 4)  # [2, rows, p, a, lexical symbols]
        return Rules(
            every,
            np.ascontiguousarray(phrases).reshape(rows, n_phrases, -1),
            np.ascontiguousarray(tokens).reshape(rows, n_phrases, -1),
            np.ascontiguousarray(at_edges).reshape(2, rows, n_phrases**2, -1),
        )

    def above(self, w: int) -> Array:
        """Return the rules for the pairs of spans of w + 1 tokens."""
        return self.above_tokens if w == 1 else self.above_phrases


def _symbols(table: RuleTable) -> tuple[Array, Array, Array]:
    """Return parent, left and right of each rule."""
    if "_symbols" not in table.__dict__:
        table.__dict__["_symbols"] = table.parents, table.lefts[table.pair_of], table.rights[table.pair_of]
    symbols: tuple[Array, Array, Array] = table.__dict__["_symbols"]
    return symbols


def _places(table: RuleTable) -> Array:
    """Return the place of each rule in [phrases, symbols, symbols]."""
    parents, lefts, rights = _symbols(table)
    places: Array = (parents * table.n_symbols + lefts) * table.n_symbols + rights
    return places


class Scaled(NamedTuple):
    """Results of one inside pass in exp space."""

    log_z: Array
    rules: Rules
    chart: Array  # [n, batch, n, symbols], the highest of each span 1
    widened: Array  # [n, batch, n, 2, phrases²], or empty where that is too much
    scales: Array  # [n, batch, n]
    inverses: Array  # [n, batch, n]: of the highest sum of each span
    edges: Array  # [2, batch, n, phrases²]: see `dense_kernels`
    pairs: dict[int, tuple[Array, Array]]  # of each width, where there is room to keep them


def is_worth_it(table: RuleTable, rules: Array) -> bool:
    """Return whether most rules that there could be exist, and their scores are the same for all spans."""
    return rules.shape[1] == 1 and len(table.parents) >= WORTH_IT * table.n_phrases * table.n_symbols**2


def _product(left: Array, right: Array) -> Array:
    """Return left @ right by torch, which keeps to its number of threads.

    A right side of one matrix serves all rows.
    """
    if _is_too_small_for_threads(left, right):
        out = np.zeros((*left.shape[:2], right.shape[2]))
        dense_kernels.product(left, right, out)
        return out
    one, other = torch.from_numpy(left), torch.from_numpy(right)
    if len(right) == 1:
        flat: Array = (one.flatten(0, 1) @ other[0]).reshape(*left.shape[:2], right.shape[2]).numpy()
        return flat
    product: Array = torch.bmm(one, other).numpy()
    return product


def _is_too_small_for_threads(left: Array, right: Array) -> bool:
    """Return whether torch would wake threads for less work than waking them takes."""
    return torch.get_num_threads() > 1 and left.size * right.shape[2] < WORTH_SPLITTING


def _sums_of_rules(pairs: Array, weights: Array) -> Array:
    """Return pairs @ weightsᵀ, row by row."""
    turned = weights.transpose(0, 2, 1)
    if not _is_too_small_for_threads(pairs, turned):
        return _product(pairs, turned)
    sums = np.empty((*pairs.shape[:2], weights.shape[1]))
    dense_kernels.dots(pairs, weights, sums)
    return sums


def _add_product(left: Array, right: Array, out: torch.Tensor) -> None:
    """Add: out += leftᵀ @ right, row by row."""
    if _is_too_small_for_threads(left, right):
        dense_kernels.product(np.ascontiguousarray(left.transpose(0, 2, 1)), right, out.numpy())
    else:
        out.baddbmm_(torch.from_numpy(left).transpose(1, 2), torch.from_numpy(right))


def inside(arrays: GrammarArrays) -> Scaled | None:
    """Return log Z of every row by equations (8) of `math.md`; None if a weight was too small to keep."""  # [S2, CKY]
    scores, lexical, root, nodes, lengths, table = arrays
    batch, n, _ = lexical.shape
    every = np.zeros((len(scores), table.n_phrases, table.n_symbols, table.n_symbols))
    shifts, lost = dense_kernels.exp_rules(scores[:, 0, 0], _places(table), every.reshape(len(scores), -1))
    rules = Rules.of(every, table.first_lexical)
    chart, scales = np.empty((n, batch, n, table.n_symbols)), np.full((n, batch, n), -np.inf)
    inverses, widened = np.zeros((n, batch, n)), _room_to_widen(n, batch, table.n_phrases)
    lost = dense_kernels.start(lexical, nodes, lengths, chart, scales) or lost
    tokens = np.ascontiguousarray(chart[0, :, :, table.first_lexical :])
    edges = np.stack([_product(tokens, each.transpose(0, 2, 1)) for each in rules.at_edges])
    run = Scaled(np.empty(batch), rules, chart, widened, scales, inverses, edges, {})
    keep = batch * n * n * table.n_phrases**2 <= 2 * MOST_ROOM
    for w in range(1, n):
        if lost:
            return None
        tops, pairs = _pairs(w, run, table, lengths)
        if keep:
            run.pairs[w] = tops, pairs
        sums = _sums_of_rules(pairs, rules.above(w))
        if w > 1:
            dense_kernels.add_edges(w, edges, chart, scales, lengths, tops, sums)
        lost = dense_kernels.normalise(w, sums, tops, shifts, nodes, lengths, chart, widened, scales, inverses)
    if lost:
        return None
    rows, widths = np.arange(batch), lengths - 1
    with np.errstate(divide="ignore"):
        whole = np.log(chart[widths, rows, 0]) + root
    return run._replace(log_z=scales[widths, rows, 0] + np.logaddexp.reduce(whole, 1))


def _below(w: int, table: RuleTable) -> tuple[int, int]:
    """Return the symbols in the pairs of spans of w + 1 tokens."""
    return (table.first_lexical, table.n_symbols) if w == 1 else (0, table.n_phrases)


def _room_to_widen(n: int, batch: int, n_phrases: int) -> Array:
    """Return room for few phrases, whose outer products are quicker in one run; empty for many, which need no help."""
    shape = (n, batch, n, 2, n_phrases**2)
    return buffers.empty(shape) if n_phrases <= MOST_TO_WIDEN and np.prod(shape) <= MOST_ROOM else np.empty((0,) * 5)


def _pairs(w: int, run: Scaled, table: RuleTable, lengths: Array) -> tuple[Array, Array]:
    """Return the scale of each span of a width, and its pairs relative to it."""
    _, batch, n = run.scales.shape
    tops, pairs = np.full((batch, n - w), -np.inf), buffers.empty((batch, n - w, run.rules.above(w).shape[2]))
    dense_kernels.pair_weights(w, run.chart, run.widened, run.scales, lengths, _below(w, table), tops, pairs)
    return tops, pairs


def outside(arrays: GrammarArrays, run: Scaled, grad: Array) -> tuple[Array, Array, Array, Array]:
    """Return gradients of Σ_b grad[b] log Z[b] for each row, by rules, lexical, root and nodes; (9) of `math.md`.

    Args:
        arrays: the scores of the rows.
        run: the pass that computed log Z.
        grad: weight of each row [batch].

    Returns:
        Four gradients with the shapes of the scores, one for each row.
    """
    _, lexical, root, nodes, lengths, table = arrays
    batch, n, _ = lexical.shape
    first, rules = table.first_lexical, run.rules
    bars, by_widened, by_edges = (np.zeros(each.shape) for each in (run.chart, run.widened, run.edges))
    by_phrases, by_tokens = (
        torch.zeros(batch, *each.shape[1:], dtype=torch.float64) for each in (rules.above_phrases, rules.above_tokens)
    )
    rows, widths = np.arange(batch), lengths - 1
    shifts = run.scales[widths, rows, 0] - np.where(
        run.log_z > -np.inf, run.log_z, np.inf
    )  # 0 in rows without derivations
    bars[widths, rows, 0] = grad[:, None] * np.exp(np.minimum(root + shifts[:, None], 700.0))
    for w in range(n - 1, 0, -1):
        tops, pairs = run.pairs.get(w) or _pairs(w, run, table, lengths)
        by_sum = np.empty((batch, n - w, table.n_phrases))
        dense_kernels.before_rules(w, bars, by_widened, nodes, run.inverses, lengths, by_sum)
        _add_product(by_sum, pairs, by_tokens if w == 1 else by_phrases)
        by_pair = _product(by_sum, rules.above(w))
        dense_kernels.push_pairs(
            w, by_pair, run.chart, run.widened, run.scales, lengths, _below(w, table), tops, bars, by_widened
        )
        if w > 1:
            dense_kernels.push_edges(w, by_sum, run.edges, run.chart, run.scales, lengths, tops, bars, by_edges)
    tokens = np.ascontiguousarray(run.chart[0, :, :, first:])
    by_edge_rules = torch.zeros(2, batch, *rules.at_edges.shape[2:], dtype=torch.float64)
    for side, by_rules in enumerate(by_edge_rules):
        bars[0, :, :, first:] += _product(by_edges[side], rules.at_edges[side])
        _add_product(by_edges[side], tokens, by_rules)
    d_rules = np.empty((batch, len(table.parents)))
    by_weights = (by_phrases.numpy(), by_tokens.numpy(), by_edge_rules.numpy())
    dense_kernels.gather_rules(by_weights, rules.every, _symbols(table), table.n_phrases, first, d_rules)
    d_lexical, d_root = np.zeros(lexical.shape), np.zeros((batch, table.n_symbols))
    d_nodes = np.zeros((batch, n, n, table.n_symbols))
    dense_kernels.collect(run.chart, bars, lengths, d_nodes, d_lexical, d_root)
    return d_rules[:, None, None], d_lexical, d_root, d_nodes


def best_derivations(arrays: GrammarArrays, derivations: Array, possible: Array) -> None:
    """Write the best derivation of each row into `derivations` [batch, 2n-1, 3].

    `possible` says whether a row has one.

    Args:
        arrays: the scores of the rows.
        derivations: nodes (start, end, symbol) [batch, 2n-1, 3], which are filled in.
        possible: whether a row has a derivation [batch], which is filled in.
    """
    rules, lexical, root, nodes, lengths, table = arrays
    is_small = table.n_phrases <= MOST_TO_WIDEN
    work = len(lengths) * lexical.shape[1] ** 2 * table.n_phrases * table.n_symbols**2 // 4
    over_rows(
        dense_tree_kernels.best_derivations, len(lengths), work,
        (rules[:, 0, 0], lexical, root, nodes, lengths), _places(table), table.n_phrases, is_small,
        derivations, possible,
    )  # fmt: skip
