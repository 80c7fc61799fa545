"""Dense grammars by matrix products: CKY in exp space, one product of pairs by rules for all spans of one width."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import Array
from trelliswork.runtime.threads import WORTH_SPLITTING, over_rows
from trelliswork.structures.grammar import dense_kernels, dense_tree_kernels
from trelliswork.structures.grammar.structure import RuleTable

if TYPE_CHECKING:
    from trelliswork.structures.grammar.fast import GrammarArrays

MOST_TO_WIDEN = 24  # phrases
MOST_ROOM = 1 << 23  # numbers (64 MB)
WORTH_IT = 0.25  # of all triples of symbols must be rules; below, one loop over the rules is faster


class Columns(NamedTuple):
    """Where pairs lie in a row: in four blocks, the last (neither is a phrase) only above two tokens."""

    n_phrases: int
    n_lexical: int
    n_symbols: int
    starts: Array  # [2, 2]: of left phrases or others by right phrases or others

    @staticmethod
    def of(table: RuleTable) -> Columns:
        size, phrases = table.n_symbols, table.n_phrases
        starts = np.array([[0, phrases**2], [phrases * size, 2 * phrases * size - phrases**2]])
        return Columns(phrases, size - table.first_lexical, size, starts)

    def span(self, w: int) -> tuple[int, int]:
        """The columns that spans of w + 1 tokens need."""
        if w > 1:
            return 0, int(self.starts[1, 1])
        no_phrase_is_lexical = self.n_symbols == self.n_phrases + self.n_lexical
        return int(self.starts[1, 1]) if no_phrase_is_lexical else 0, self.n_symbols**2

    def shifted(self, first: int) -> tuple[int, int, Array]:
        """What the kernels call `columns`, for rows that begin at column `first`."""
        return self.n_phrases, self.n_lexical, self.starts - first

    def of_rules(self, table: RuleTable) -> Array:
        """The column of each rule."""
        left, right = table.lefts[table.pair_of], table.rights[table.pair_of]
        other_left, other_right = (left >= self.n_phrases).astype(int), (right >= self.n_phrases).astype(int)
        n_right = np.where(other_right, self.n_symbols - self.n_phrases, self.n_phrases)
        inner = (left - other_left * self.n_phrases) * n_right + right - other_right * self.n_phrases
        found: Array = self.starts[other_left, other_right] + inner
        return found


def columns_of(table: RuleTable) -> tuple[Columns, Array]:
    """The columns, and that of each rule; made once a grammar."""
    if "_columns" not in table.__dict__:
        columns = Columns.of(table)
        table.__dict__["_columns"] = columns, columns.of_rules(table)
    found: tuple[Columns, Array] = table.__dict__["_columns"]
    return found


class Scaled(NamedTuple):
    """What one inside pass in exp space leaves behind."""

    log_z: Array
    weights: tuple[Array, Array]  # [1 or batch, phrases, columns] for two tokens, and for more: exp of rules' scores
    chart: Array  # [n, batch, n, symbols], the highest of each span 1
    widened: Array  # [n, batch, n, 2, phrases²], or empty where that is too much
    scales: Array  # [n, batch, n]
    inverses: Array  # [n, batch, n]: of the highest sum of each span
    pairs: dict[int, tuple[Array, Array]]  # of each width, where there is room to keep them


def is_worth_it(table: RuleTable, rules: Array) -> bool:
    """Whether most rules that there could be exist, and their scores are the same for all spans."""
    return rules.shape[1] == 1 and len(table.parents) >= WORTH_IT * table.n_phrases * table.n_symbols**2


def _product(left: Array, right: Array) -> Array:
    """left @ right by torch, which keeps to its number of threads; a right side of one matrix serves all rows."""
    if _is_too_small_for_threads(left, right):
        out = np.zeros((*left.shape[:2], right.shape[2]))
        dense_kernels.product(left, right, out)
        return out
    one, other = torch.from_numpy(left), torch.from_numpy(right)
    if len(right) == 1:
        found: Array = (one.flatten(0, 1) @ other[0]).reshape(*left.shape[:2], right.shape[2]).numpy()
        return found
    product: Array = torch.bmm(one, other).numpy()
    return product


def _is_too_small_for_threads(left: Array, right: Array) -> bool:
    """Whether torch would wake threads for less work than waking them takes."""
    return torch.get_num_threads() > 1 and left.size * right.shape[2] < WORTH_SPLITTING


def _sums_of_rules(pairs: Array, weights: Array) -> Array:
    """pairs @ weightsᵀ, row by row."""
    turned = weights.transpose(0, 2, 1)
    if not _is_too_small_for_threads(pairs, turned):
        return _product(pairs, turned)
    sums = np.empty((*pairs.shape[:2], weights.shape[1]))
    dense_kernels.dots(pairs, weights, sums)
    return sums


def _add_product(left: Array, right: Array, out: torch.Tensor) -> None:
    """out += leftᵀ @ right, row by row."""
    if _is_too_small_for_threads(left, right):
        dense_kernels.product(np.ascontiguousarray(left.transpose(0, 2, 1)), right, out.numpy())
    else:
        out.baddbmm_(torch.from_numpy(left).transpose(1, 2), torch.from_numpy(right))


def inside(arrays: GrammarArrays) -> Scaled | None:
    """log Z of every row by equations (8) of `math.md`; None if a weight was too small to keep."""  # [S2, CKY]
    rules, lexical, root, nodes, lengths, table = arrays
    batch, n, _ = lexical.shape
    columns, of_rules = columns_of(table)
    full = np.zeros((len(rules), table.n_phrases, table.n_symbols**2))
    shifts, lost = dense_kernels.exp_rules(
        rules[:, 0, 0], table.parents * table.n_symbols**2 + of_rules, full.reshape(len(rules), -1)
    )
    narrow, wide = (np.ascontiguousarray(full[:, :, slice(*columns.span(w))]) for w in (1, 2))
    chart, scales = np.empty((n, batch, n, table.n_symbols)), np.full((n, batch, n), -np.inf)
    inverses, widened = np.zeros((n, batch, n)), _room_to_widen(n, batch, table.n_phrases)
    lost = dense_kernels.start(lexical, nodes, lengths, chart, scales) or lost
    kept: dict[int, tuple[Array, Array]] = {}
    keep = batch * n * n * wide.shape[2] <= 2 * MOST_ROOM
    for w in range(1, n):
        if lost:
            return None
        tops, pairs = _pairs(w, columns, chart, widened, scales, lengths)
        if keep:
            kept[w] = tops, pairs
        sums = _sums_of_rules(pairs, narrow if w == 1 else wide)
        lost = dense_kernels.normalise(w, sums, tops, shifts, nodes, lengths, chart, widened, scales, inverses)
    if lost:
        return None
    log_z = np.empty(batch)
    dense_kernels.finish(chart, scales, root, lengths, log_z)
    return Scaled(log_z, (narrow, wide), chart, widened, scales, inverses, kept)


def _room_to_widen(n: int, batch: int, n_phrases: int) -> Array:
    """For few phrases, whose outer products are quicker in one run; empty for many, which need no help."""
    shape = (n, batch, n, 2, n_phrases**2)
    return buffers.empty(shape) if n_phrases <= MOST_TO_WIDEN and np.prod(shape) <= MOST_ROOM else np.empty((0,) * 5)


def _pairs(
    w: int, columns: Columns, chart: Array, widened: Array, scales: Array, lengths: Array
) -> tuple[Array, Array]:
    """The scale of each span of a width, and its pairs relative to it."""
    _, batch, n = scales.shape
    first, last = columns.span(w)
    tops, pairs = np.full((batch, n - w), -np.inf), buffers.empty((batch, n - w, last - first))
    dense_kernels.pair_weights(w, chart, widened, scales, lengths, columns.shifted(first), tops, pairs)
    return tops, pairs


def outside(arrays: GrammarArrays, run: Scaled, grad: Array) -> tuple[Array, Array, Array, Array]:
    """Gradients of Σ_b grad[b] log Z[b] for each row, by rules, lexical, root and nodes; (9) of `math.md`."""
    _, lexical, root, nodes, lengths, table = arrays
    batch, n, _ = lexical.shape
    n_phrases, n_symbols = table.n_phrases, table.n_symbols
    columns, of_rules = columns_of(table)
    bars, by_widened = np.zeros(run.chart.shape), np.zeros(run.widened.shape)
    d_weights = [torch.zeros(batch, *each.shape[1:], dtype=torch.float64) for each in run.weights]
    dense_kernels.start_back(run.scales, root, lengths, run.log_z, grad, bars)
    for w in range(n - 1, 0, -1):
        tops, pairs = run.pairs.get(w) or _pairs(w, columns, run.chart, run.widened, run.scales, lengths)
        by_sum = np.empty((batch, n - w, n_phrases))
        dense_kernels.before_rules(w, bars, by_widened, nodes, run.inverses, lengths, by_sum)
        _add_product(by_sum, pairs, d_weights[int(w > 1)])
        by_pair = _product(by_sum, run.weights[int(w > 1)])
        shifted = columns.shifted(columns.span(w)[0])
        dense_kernels.push_pairs(
            w, by_pair, run.chart, run.widened, run.scales, lengths, shifted, tops, bars, by_widened
        )
    d_rules = np.zeros((batch, len(of_rules)))
    for w, weights, by_weight in zip((1, 2), run.weights, d_weights, strict=True):
        dense_kernels.gather_rules(by_weight.numpy(), weights, table.parents, of_rules, *columns.span(w), d_rules)
    d_lexical, d_root = np.zeros(lexical.shape), np.zeros((batch, n_symbols))
    d_nodes = np.zeros((batch, n, n, n_symbols))
    dense_kernels.collect(run.chart, bars, lengths, d_nodes, d_lexical, d_root)
    return d_rules[:, None, None], d_lexical, d_root, d_nodes


def best_derivations(arrays: GrammarArrays, found: Array, possible: Array) -> None:
    """The best derivation of each row into `found` [batch, 2n-1, 3]; whether there is one into `possible`."""
    rules, lexical, root, nodes, lengths, table = arrays
    columns, of_rules = columns_of(table)
    is_small, places = table.n_phrases <= MOST_TO_WIDEN, table.parents * table.n_symbols**2 + of_rules
    work = len(lengths) * lexical.shape[1] ** 2 * table.n_phrases * table.n_symbols**2 // 4
    over_rows(
        dense_tree_kernels.best_derivations, len(lengths), work,
        (rules[:, 0, 0], lexical, root, nodes, lengths), columns.shifted(0), places,
        table.n_phrases, columns.span(1)[0], is_small, found, possible,
    )  # fmt: skip
