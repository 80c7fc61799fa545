"""Sparse weighted grammars with unary rules: every chain of them is summed, or the best one found, in closed form.

>>> grammar = ClosedGrammar.of(
...     ["S", "NP", "VP", "N", "V"], {(0, 1, 2): 1.0}, {(1, 3): 1.0, (2, 4): 1.0}, {0: 1.0}
... )
>>> chart = grammar.inside(np.array([[0, 0, 0, 0.5, 0], [0, 0, 0, 0, 0.1]]))
>>> round(float(np.exp(chart.log_z)), 6)
0.05
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.structures.grammar import closed_kernels as kernels
from trelliswork.structures.grammar.closed_best import BestTrees, Node
from trelliswork.structures.grammar.unary_chains import (
    Through,
    Unary,
    UnaryChain,
    best_chains,
    best_through,
    simple_chains,
    summed_chains,
)

Known = Mapping[tuple[int, int], frozenset[int]]  # symbols of which one must be above tokens i..j


class Lists(NamedTuple):
    """Entries sorted by a symbol: those of symbol a are from `starts[a]` to `starts[a + 1]`."""

    starts: Array
    others: tuple[Array, ...]
    weights: Array

    @staticmethod
    def by(keys: Array, size: int, *others: Array, weights: Array) -> Lists:
        """Sort entries by a symbol.

        Args:
            keys: symbol of each entry [entries].
            size: number of symbols.
            others: further columns of the entries [entries].
            weights: weight of each entry [entries].

        Returns:
            The sorted columns, and where each symbol begins.
        """
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(size + 1))
        return Lists(starts, tuple(np.ascontiguousarray(each[order]) for each in others), weights[order])

    @property
    def arrays(self) -> tuple[Array, ...]:
        """As the kernels take them."""
        return (self.starts, *self.others, self.weights)

    def of(self, symbol: int) -> slice:
        """Return the entries of a symbol."""
        return slice(int(self.starts[symbol]), int(self.starts[symbol + 1]))


class Chart(NamedTuple):
    """One sentence: the charts of `closed_kernels`, the log of the sum (or the best) of all trees, what is known."""

    base: Array
    full: Array
    scale: Array
    log_z: float
    known: Known


@dataclass(frozen=True, eq=False, repr=False)
class ClosedGrammar:
    """Binary rules by the left child and by the parent, chains of unary rules by the child, and weights of roots."""

    symbols: tuple[str, ...]
    by_left: Lists
    by_parent: Lists
    chains: Lists  # all of them summed
    best_chains: Lists
    below: Mapping[int, Sequence[tuple[int, float]]]  # the unary rules of each symbol: (child, weight)
    roots: Array
    _chains_from: dict[int, list[UnaryChain]] = field(default_factory=dict)

    @staticmethod
    def of(
        symbols: Sequence[str],
        binary: Mapping[tuple[int, int, int], float],
        unary: Unary,
        roots: Mapping[int, float],
    ) -> ClosedGrammar:
        """Build it from weights of rules (parent, left, right) and (parent, child), and of roots.

        Args:
            symbols: name of each symbol.
            binary: weight of each rule (parent, left, right), symbols by number.
            unary: weights of the rules (parent, child).
            roots: weight of each root symbol.

        Returns:
            The grammar, its chains of unary rules summed.
        """
        size = len(symbols)
        rules = np.array(list(binary), np.int64).reshape(-1, 3)
        weights = np.array(list(binary.values()), np.float64)
        of_roots = np.zeros(size)
        of_roots[list(roots)] = list(roots.values())
        below: dict[int, list[tuple[int, float]]] = {}
        for (parent, child), weight in unary.items():
            below.setdefault(parent, []).append((child, weight))
        return ClosedGrammar(
            tuple(symbols), Lists.by(rules[:, 1], size, rules[:, 0], rules[:, 2], weights=weights),
            Lists.by(rules[:, 0], size, rules[:, 1], rules[:, 2], weights=weights),
            _chain_lists(summed_chains(unary), size), _chain_lists(best_chains(unary), size), below, of_roots,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"ClosedGrammar({len(self.symbols)} symbols, {len(self.by_left.weights)} binary rules)"

    # --- charts ----------------------------------------------------------------------------------------------

    def inside(self, lexical: Array, *, best: bool = False, known: Known | None = None) -> Chart:
        """Return sums over all trees above each span, or the best; `lexical` [n, symbol] are the weights of words.

        With `known`, only trees count that have each of its spans, with one of its symbols.

        Args:
            lexical: weights of the symbols above each word [n, symbol].
            best: whether the best tree counts alone, instead of the sum over all.
            known: spans that a tree must have, each with one of its symbols; None for no condition.

        Returns:
            The chart of all spans.
        """
        n, size = lexical.shape
        base, full, scale = np.zeros((n, n, size)), np.zeros((n, n, size)), np.full((n, n), -np.inf)
        chains, pins = (self.best_chains if best else self.chains).arrays, self._pins(known or {}, n, best)
        kernels.fill(np.ascontiguousarray(lexical), self.by_left.arrays, chains, pins, best, base, full, scale)
        whole = full[0, n - 1] * self.roots
        z = float(whole.max() if best else whole.sum())
        return Chart(base, full, scale, float(np.log(z) + scale[0, n - 1]) if z > 0 else -np.inf, known or {})

    def posteriors(self, chart: Chart) -> Array:
        """Return [i, j, symbol]: how often it is expected above tokens i..j, given a chart of sums with some tree."""
        out, expected = self.outside(chart), np.zeros_like(chart.full)
        kernels.posteriors(chart.full, out, self.chains.arrays, expected)
        for place, wanted in chart.known.items():
            expected[place] = Through(self.unary, wanted).expected(out[place], chart.base[place])
        return expected

    def outside(self, chart: Chart) -> Array:
        """Return the derivative of log Z by each entry of `chart.full`.

        Their product is P(the topmost symbol of a span).
        """
        out, n = np.zeros_like(chart.full), len(chart.scale)
        rules, pins = self.by_parent.arrays, self._pins(chart.known, n, best=False)
        kernels.outside(self.roots, rules, self.chains.arrays, pins, chart.base, chart.full, chart.scale, out)
        return out

    def entropy(self, chart: Chart, lexical: Array) -> float:
        """Return -Σ p(tree) log p(tree), of a chart of sums with some tree and the weights of words that it is of.

        log p(tree) is a sum over its parts, so it takes the expected number of each.
        """
        out, tops = self.outside(chart), chart.full[0, -1] * self.roots
        total = _log_weights(tops / tops.sum(), self.roots)
        pins = self._pins(chart.known, len(chart.scale), best=False)
        total += kernels.log_weights(self.by_parent.arrays, self.chains.arrays, pins, *chart[:3], out)
        of_words = np.zeros_like(lexical)
        for i in range(len(lexical)):
            kernels.open_span(i, i, self.chains.arrays, pins, out, of_words[i])
            of_words[i] *= chart.base[i, i]
        total += _log_weights(of_words, lexical)
        return chart.log_z - total - self._log_chains(chart, out)

    def _log_chains(self, chart: Chart, out: Array) -> float:
        """Return the expected logarithm of the weights of all unary rules."""
        every, total = Through(self.unary, ()), 0.0
        for i, j in np.argwhere(chart.scale > -np.inf).tolist():
            wanted = chart.known.get((i, j))
            chains = every if wanted is None else Through(self.unary, wanted)
            total += chains.expected_log_weight(out[i, j], chart.base[i, j], is_free=wanted is None)
        return total

    @property
    def unary(self) -> dict[tuple[int, int], float]:
        """The weights of the unary rules (parent, child)."""
        return {(parent, child): weight for parent, rules in self.below.items() for child, weight in rules}

    def _pins(self, known: Known, n: int, best: bool) -> tuple[Array, ...]:
        """Return for kernels which chains each span has (0 all, -1 no span, k those of list k), and these lists.

        A binary tree without any span that crosses one has that one.
        """
        kinds, sets = np.zeros((n, n), np.int64), list(dict.fromkeys(known.values()))
        for (i, j), wanted in known.items():
            kinds[i, j] = 1 + sets.index(wanted)
        for i, j in known:
            kinds[:i, i:j] = kinds[i + 1 : j + 1, j + 1 :] = kernels.ABSENT
        lists = [_chain_lists(self._through(wanted, best), len(self.symbols)) for wanted in sets]
        ends = np.cumsum([0, *(len(each.weights) for each in lists)])
        starts = [each.starts + first for each, first in zip(lists, ends[:-1], strict=True)]
        empty = Lists.by(np.zeros(0, np.int64), len(self.symbols), np.zeros(0, np.int64), weights=np.zeros(0))
        ancestors = np.concatenate([empty.others[0], *(each.others[0] for each in lists)])
        weights = np.concatenate([empty.weights, *(each.weights for each in lists)])
        return kinds, np.array([empty.starts, *starts]), ancestors, weights

    def _through(self, wanted: frozenset[int], best: bool) -> Unary:
        if not best:
            return Through(self.unary, wanted).chains()
        every = [(symbol, chain) for symbol in range(len(self.symbols)) for chain in self.chains_from(symbol)]
        return best_through(every, wanted)

    # --- trees -----------------------------------------------------------------------------------------------

    def top_k(self, chart: Chart, k: int) -> list[tuple[list[Node], float]]:
        """The k best trees of a chart of maxima with the logarithms of their weights, fewer if there are no more.

        Trees in which a chain of unary rules meets a symbol twice are left out.
        """
        if chart.log_z == -np.inf:
            raise ScoreError("expected a sentence that the grammar has a tree for, got one without; smooth the rules")
        return BestTrees(self, chart).trees(k)

    def chains_from(self, symbol: int) -> list[UnaryChain]:
        """Return every chain of unary rules down from a symbol that meets none twice, that of no rule first."""
        if symbol not in self._chains_from:
            self._chains_from[symbol] = simple_chains(symbol, self.below)
        return self._chains_from[symbol]


def _log_weights(amounts: Array, weights: Array) -> float:
    """Return Σ amount log weight, over what there is some of."""
    some = amounts > 0
    return float((amounts[some] * np.log(weights[some])).sum())


def _chain_lists(chains: Mapping[tuple[int, int], float], size: int) -> Lists:
    """Return lists of ancestors and weights by child."""
    pairs = np.array(list(chains), np.int64).reshape(-1, 2)
    return Lists.by(pairs[:, 1], size, pairs[:, 0], weights=np.array(list(chains.values()), np.float64))
