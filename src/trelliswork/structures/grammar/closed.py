"""Sparse weighted grammars with unary rules: every chain of them is summed, or the best one found, in closed form.

>>> grammar = ClosedGrammar.of(
...     ["S", "NP", "VP", "N", "V"], {(0, 1, 2): 1.0}, {(1, 3): 1.0, (2, 4): 1.0}, {0: 1.0}
... )
>>> chart = grammar.inside(np.array([[0, 0, 0, 0.5, 0], [0, 0, 0, 0, 0.1]]))
>>> round(float(np.exp(chart.log_z)), 6)
0.05
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.bridge import Array
from trelliswork.structures.grammar import closed_kernels as kernels

Node = tuple[int, int, int]  # start, end, symbol; parents before children, chains from the top down
FAINT = 1e-12  # chains of less weight are left out of the sums


class Lists(NamedTuple):
    """Entries sorted by a symbol: those of symbol a are from `starts[a]` to `starts[a + 1]`."""

    starts: Array
    others: tuple[Array, ...]
    weights: Array

    @staticmethod
    def by(keys: Array, size: int, *others: Array, weights: Array) -> Lists:
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(size + 1))
        return Lists(starts, tuple(np.ascontiguousarray(each[order]) for each in others), weights[order])

    @property
    def arrays(self) -> tuple[Array, ...]:
        """As the kernels take them."""
        return (self.starts, *self.others, self.weights)

    def of(self, symbol: int) -> slice:
        """The entries of a symbol."""
        return slice(int(self.starts[symbol]), int(self.starts[symbol + 1]))


class Chart(NamedTuple):
    """One sentence: the charts of `closed_kernels`, and the log of the sum (or the best) of all trees."""

    base: Array
    full: Array
    scale: Array
    log_z: float


@dataclass(frozen=True, eq=False, repr=False)
class ClosedGrammar:
    """Binary rules by the left child and by the parent, chains of unary rules by the child, and weights of roots."""

    symbols: tuple[str, ...]
    by_left: Lists
    by_parent: Lists
    chains: Lists  # all of them summed
    best_chains: Lists
    below: Mapping[tuple[int, int], tuple[int, ...]]  # (ancestor, child) -> the best chain between them, both left out
    roots: Array

    @staticmethod
    def of(
        symbols: Sequence[str],
        binary: Mapping[tuple[int, int, int], float],
        unary: Mapping[tuple[int, int], float],
        roots: Mapping[int, float],
    ) -> ClosedGrammar:
        """From weights of rules (parent, left, right) and (parent, child), and of roots."""
        size = len(symbols)
        rules = np.array(list(binary), np.int64).reshape(-1, 3)
        weights = np.array(list(binary.values()), np.float64)
        of_roots = np.zeros(size)
        of_roots[list(roots)] = list(roots.values())
        best, below = best_chains(unary)
        return ClosedGrammar(
            tuple(symbols), Lists.by(rules[:, 1], size, rules[:, 0], rules[:, 2], weights=weights),
            Lists.by(rules[:, 0], size, rules[:, 1], rules[:, 2], weights=weights),
            _chain_lists(summed_chains(unary), size), _chain_lists(best, size), below, of_roots,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"ClosedGrammar({len(self.symbols)} symbols, {len(self.by_left.weights)} binary rules)"

    # --- charts ----------------------------------------------------------------------------------------------

    def inside(self, lexical: Array, *, best: bool = False) -> Chart:
        """Sums over all trees above each span, or the best; `lexical` [n, symbol] are the weights of words."""
        n, size = lexical.shape
        base, full, scale = np.zeros((n, n, size)), np.zeros((n, n, size)), np.full((n, n), -np.inf)
        chains = self.best_chains if best else self.chains
        kernels.fill(np.ascontiguousarray(lexical), self.by_left.arrays, chains.arrays, best, base, full, scale)
        whole = full[0, n - 1] * self.roots
        z = float(whole.max() if best else whole.sum())
        return Chart(base, full, scale, float(np.log(z) + scale[0, n - 1]) if z > 0 else -np.inf)

    def posteriors(self, chart: Chart) -> Array:
        """[i, j, symbol]: how often it is expected above tokens i..j, given a chart of sums with some tree."""
        out, found = np.zeros_like(chart.full), np.zeros_like(chart.full)
        kernels.outside(self.roots, self.by_left.arrays, self.chains.arrays, chart.full, chart.scale, out)
        kernels.posteriors(chart.full, out, self.chains.arrays, found)
        return found

    # --- trees -----------------------------------------------------------------------------------------------

    def top_k(self, chart: Chart, k: int) -> list[tuple[list[Node], float]]:
        """The k best trees of a chart of maxima with the logarithms of their weights, fewer if there are no more."""
        if chart.log_z == -np.inf:
            raise ScoreError("expected a sentence that the grammar has a tree for, got one without; smooth the rules")
        return KBest(self, chart).trees(k)

    @cached_property
    def above(self) -> list[list[int]]:
        """Of each symbol, the entries of `best_chains` that end in it."""
        found: list[list[int]] = [[] for _ in self.symbols]
        for entry, ancestor in enumerate(self.best_chains.others[0].tolist()):
            found[ancestor].append(entry)
        return found

    @cached_property
    def bottoms(self) -> Array:
        """The symbol below each entry of `best_chains`."""
        return np.repeat(np.arange(len(self.symbols)), np.diff(self.best_chains.starts))


class Edge(NamedTuple):
    """A way to make a vertex of others: its own weight, and the vertices."""

    log_weight: float
    tails: tuple[tuple[int, int, int, bool], ...]
    ranks: tuple[int, ...]


Vertex = tuple[int, int, int, bool]  # tokens i..j, symbol, and whether chains count


class KBest:
    """Lazy search for the k best trees: each vertex finds its next best only when it is asked for.

    Huang and Chiang (2005), Better k-best parsing, algorithm 3.
    """

    def __init__(self, grammar: ClosedGrammar, chart: Chart):
        self.grammar, self.chart = grammar, chart
        with np.errstate(divide="ignore"):
            self.base, self.full = np.log(chart.base), np.log(chart.full)
        self._found: dict[Vertex, list[tuple[float, Edge]]] = {}
        self._waiting: dict[Vertex, list[tuple[float, int, Edge]]] = {}
        self._seen: dict[Vertex, set[tuple[object, ...]]] = {}
        self._k = 1

    def trees(self, k: int) -> list[tuple[list[Node], float]]:
        """The k best."""
        self._k = k
        n = len(self.chart.scale)
        with np.errstate(divide="ignore"):
            roots = np.log(self.grammar.roots)
        tops = [(0, n - 1, int(a), True) for a in np.nonzero((self.chart.full[0, n - 1] > 0) & (roots > -np.inf))[0]]
        ranked = [
            (score + roots[top[2]], top, rank) for top in tops for rank in range(k)
            if (score := self._score(top, rank)) > -np.inf
        ]  # fmt: skip
        ranked.sort(key=lambda each: -each[0])
        return [(self._nodes(top, rank), float(score)) for score, top, rank in ranked[:k]]

    def _score(self, vertex: Vertex, rank: int) -> float:
        """The score of the tree of a rank; -inf if there are fewer."""
        if rank == 0:
            i, j, a, is_full = vertex
            return float((self.full if is_full else self.base)[i, j, a] + self.chart.scale[i, j])
        while len(self._derivations(vertex)) <= rank:
            if not self._next(vertex):
                return -np.inf
        return self._found[vertex][rank][0]

    def _derivations(self, vertex: Vertex) -> list[tuple[float, Edge]]:
        if vertex not in self._found:
            self._found[vertex], self._seen[vertex] = [], set()
            edges = self._chain_edges(vertex) if vertex[3] else self._rule_edges(vertex)
            self._waiting[vertex] = []
            for edge in edges:
                self._offer(vertex, edge)
            self._next(vertex)
        return self._found[vertex]

    def _offer(self, vertex: Vertex, edge: Edge) -> None:
        if edge in self._seen[vertex]:
            return
        self._seen[vertex].add(edge)
        score = edge.log_weight + sum(self._score(*each) for each in zip(edge.tails, edge.ranks, strict=True))
        if score > -np.inf:
            heapq.heappush(self._waiting[vertex], (-score, len(self._seen[vertex]), edge))

    def _next(self, vertex: Vertex) -> bool:
        """Settle the next best tree of a vertex, and offer those that follow from it."""
        if not self._waiting[vertex]:
            return False
        score, _, edge = heapq.heappop(self._waiting[vertex])
        self._found[vertex].append((-score, edge))
        if len(self._found[vertex]) < self._k:
            for at in range(len(edge.tails)):
                ranks = tuple(rank + (place == at) for place, rank in enumerate(edge.ranks))
                self._offer(vertex, edge._replace(ranks=ranks))
        return True

    def _chain_edges(self, vertex: Vertex) -> list[Edge]:
        i, j, a, _ = vertex
        entries = self.grammar.above[a]
        chains, bottoms = self.grammar.best_chains, self.grammar.bottoms
        ways = [(0.0, a), *((float(np.log(chains.weights[entry])), int(bottoms[entry])) for entry in entries)]
        return [Edge(weight, ((i, j, b, False),), (0,)) for weight, b in ways if self.chart.base[i, j, b] > 0]

    def _rule_edges(self, vertex: Vertex) -> list[Edge]:
        """The k best ways to split a span; of a token there is one, without tails."""
        i, j, a, _ = vertex
        if i == j:
            return [Edge(float(self.base[i, i, a] + self.chart.scale[i, i]), (), ())]
        rules = self.grammar.by_parent
        mine = rules.of(a)
        lefts, rights = (each[mine] for each in rules.others)
        ks = np.arange(i, j)
        halves = (self.chart.scale[i, i:j] + self.chart.scale[i + 1 : j + 1, j])[:, None]
        scores = self.full[i, i:j][:, lefts] + self.full[i + 1 : j + 1, j][:, rights] + np.log(rules.weights[mine]) + halves
        order = np.argsort(-scores, axis=None, kind="stable")[: self._k]
        found = []
        for at in order.tolist():
            s, r = divmod(at, scores.shape[1])
            if scores[s, r] > -np.inf:
                k, weight = int(ks[s]), float(np.log(rules.weights[mine][r]))
                tails = ((i, k, int(lefts[r]), True), (k + 1, j, int(rights[r]), True))
                found.append(Edge(weight, tails, (0, 0)))
        return found

    def _nodes(self, vertex: Vertex, rank: int) -> list[Node]:
        found: list[Node] = []
        waiting = [(vertex, rank)]
        while waiting:
            (i, j, a, is_full), rank = waiting.pop()
            while len(self._derivations((i, j, a, is_full))) <= rank:
                self._next((i, j, a, is_full))
            edge = self._found[i, j, a, is_full][rank][1]
            if is_full:
                bottom = edge.tails[0][2]
                above = () if bottom == a else (a, *self.grammar.below[a, bottom])
                found.extend((i, j + 1, symbol) for symbol in above)
            else:
                found.append((i, j + 1, a))
            waiting.extend(reversed(list(zip(edge.tails, edge.ranks, strict=True))))
        return found


def _chain_lists(chains: Mapping[tuple[int, int], float], size: int) -> Lists:
    """By child."""
    pairs = np.array(list(chains), np.int64).reshape(-1, 2)
    return Lists.by(pairs[:, 1], size, pairs[:, 0], weights=np.array(list(chains.values()), np.float64))


def summed_chains(unary: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Σ over all chains of one rule or more, (I - U)^-1 - I: the weights of (ancestor, child)."""
    if not unary:
        return {}
    used = sorted({symbol for pair in unary for symbol in pair})
    place = {symbol: i for i, symbol in enumerate(used)}
    step = np.zeros((len(used), len(used)))
    for (parent, child), weight in unary.items():
        step[place[parent], place[child]] += weight
    if np.abs(np.linalg.eigvals(step)).max() >= 1 - 1e-9:
        raise ScoreError("chains of unary rules must sum to a number; the rules of a cycle have weights of 1 or more")
    total = np.linalg.inv(np.eye(len(used)) - step) - np.eye(len(used))
    return {(used[a], used[b]): float(total[a, b]) for a, b in np.argwhere(total > FAINT).tolist()}


def best_chains(
    unary: Mapping[tuple[int, int], float],
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], tuple[int, ...]]]:
    """The best chain from each ancestor to each child that it has one to: its weight, and the symbols between."""
    parents: dict[int, list[tuple[int, float]]] = {}
    for (parent, child), weight in unary.items():
        parents.setdefault(child, []).append((parent, weight))
    best, below = {}, {}
    for child in parents:
        heap: list[tuple[float, int, tuple[int, ...]]] = [(-1.0, child, ())]
        done: set[int] = set()
        while heap:
            weight, symbol, path = heapq.heappop(heap)
            if symbol in done:
                continue
            done.add(symbol)
            if symbol != child:
                best[symbol, child], below[symbol, child] = -weight, path
            between = path if symbol == child else (symbol, *path)
            for parent, step in parents.get(symbol, ()):
                if parent not in done:
                    heapq.heappush(heap, (weight * step, parent, between))
    return best, below
