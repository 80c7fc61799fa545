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
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


class Chain(NamedTuple):
    """Unary rules one below the other: their weight, the symbols above the last, and the last."""

    weight: float
    above: tuple[int, ...]
    bottom: int


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
    below: Mapping[int, Sequence[tuple[int, float]]]  # the unary rules of each symbol: (child, weight)
    roots: Array
    _chains_from: dict[int, list[Chain]] = field(default_factory=dict)

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
        rules, chains = self.by_parent.arrays, self.chains.arrays
        kernels.outside(self.roots, rules, chains, chart.base, chart.full, chart.scale, out)
        kernels.posteriors(chart.full, out, chains, found)
        return found

    # --- trees -----------------------------------------------------------------------------------------------

    def top_k(self, chart: Chart, k: int) -> list[tuple[list[Node], float]]:
        """The k best trees of a chart of maxima with the logarithms of their weights, fewer if there are no more.

        Trees in which a chain of unary rules meets a symbol twice are left out.
        """
        if chart.log_z == -np.inf:
            raise ScoreError("expected a sentence that the grammar has a tree for, got one without; smooth the rules")
        return KBest(self, chart).trees(k)

    def chains_from(self, symbol: int) -> list[Chain]:
        """Every chain of unary rules down from a symbol that meets none twice, that of no rule first."""
        if symbol not in self._chains_from:
            self._chains_from[symbol] = simple_chains(symbol, self.below)
        return self._chains_from[symbol]


Vertex = tuple[int, int, int, bool]  # tokens i..j, symbol, and whether chains count


class Edge(NamedTuple):
    """A way to make a vertex of others: its own weight, the vertices, and the symbols that it puts above them."""

    log_weight: float
    tails: tuple[Vertex, ...]
    ranks: tuple[int, ...]
    symbols: tuple[int, ...]


class KBest:
    """Lazy search for the k best trees: each vertex finds its next best only when it is asked for.

    Huang and Chiang (2005), Better k-best parsing, algorithm 3.
    """

    def __init__(self, grammar: ClosedGrammar, chart: Chart):
        self.grammar, self.chart = grammar, chart
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
            weight = float((self.chart.full if is_full else self.chart.base)[i, j, a])
            return math.log(weight) + float(self.chart.scale[i, j]) if weight > 0 else -math.inf
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
        return [
            Edge(math.log(chain.weight), ((i, j, chain.bottom, False),), (0,), chain.above)
            for chain in self.grammar.chains_from(a)
            if self.chart.base[i, j, chain.bottom] > 0
        ]

    def _rule_edges(self, vertex: Vertex) -> list[Edge]:
        """The k best ways to split a span; of a token there is one, without tails."""
        i, j, a, _ = vertex
        if i == j:
            return [Edge(self._score(vertex, 0), (), (), (a,))]
        rules = self.grammar.by_parent
        mine = rules.of(a)
        lefts, rights = (each[mine] for each in rules.others)
        full, scale = self.chart.full, self.chart.scale
        with np.errstate(divide="ignore"):
            pairs = np.log(full[i, i:j][:, lefts]) + np.log(full[i + 1 : j + 1, j][:, rights])
        scores = pairs + np.log(rules.weights[mine]) + (scale[i, i:j] + scale[i + 1 : j + 1, j])[:, None]
        order = np.argsort(-scores, axis=None, kind="stable")[: self._k]
        found = []
        for at in order.tolist():
            s, r = divmod(at, scores.shape[1])
            if scores[s, r] > -np.inf:
                k, weight = i + s, float(np.log(rules.weights[mine][r]))
                tails = ((i, k, int(lefts[r]), True), (k + 1, j, int(rights[r]), True))
                found.append(Edge(weight, tails, (0, 0), (a,)))
        return found

    def _nodes(self, vertex: Vertex, rank: int) -> list[Node]:
        found: list[Node] = []
        waiting = [(vertex, rank)]
        while waiting:
            vertex, rank = waiting.pop()
            while len(self._derivations(vertex)) <= rank:
                self._next(vertex)
            edge = self._found[vertex][rank][1]
            found.extend((vertex[0], vertex[1] + 1, symbol) for symbol in edge.symbols)
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


def best_chains(unary: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """The weight of the best chain of one rule or more from each ancestor to each child."""
    parents: dict[int, list[tuple[int, float]]] = {}
    for (parent, child), weight in unary.items():
        parents.setdefault(child, []).append((parent, weight))
    best: dict[tuple[int, int], float] = {}
    for child in parents:
        heap, done = [(-1.0, child)], set()
        while heap:
            weight, symbol = heapq.heappop(heap)
            if symbol in done:
                continue
            done.add(symbol)
            if symbol != child:
                best[symbol, child] = -weight
            for parent, step in parents.get(symbol, ()):
                if parent not in done:
                    heapq.heappush(heap, (weight * step, parent))
    return best


def simple_chains(symbol: int, below: Mapping[int, Sequence[tuple[int, float]]]) -> list[Chain]:
    """Every chain down from a symbol that meets none twice."""
    found, waiting = [], [Chain(1.0, (), symbol)]
    while waiting:
        chain = waiting.pop()
        found.append(chain)
        above = (*chain.above, chain.bottom)
        waiting += [
            Chain(chain.weight * weight, above, child)
            for child, weight in below.get(chain.bottom, ())
            if child not in above and weight > 0
        ]
    return found
