"""The k best trees of a chart of a grammar with unary rules."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from trelliswork.structures.grammar.closed import Chart, ClosedGrammar

Node = tuple[int, int, int]  # start, end, symbol; parents before children, chains from the top down
Vertex = tuple[int, int, int, bool]  # tokens i..j, symbol, and whether chains count


class Edge(NamedTuple):
    """A way to make a vertex of others: its own weight, the vertices, and the symbols that it puts above them."""

    log_weight: float
    tails: tuple[Vertex, ...]
    ranks: tuple[int, ...]
    symbols: tuple[int, ...]


class BestTrees:
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
        """Return the k best."""
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
        """Return the score of the tree of a rank; -inf if there are fewer."""
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
        wanted = self.chart.known.get((i, j))
        return [
            Edge(math.log(chain.weight), ((i, j, chain.bottom, False),), (0,), chain.above)
            for chain in self.grammar.chains_from(a)
            if self.chart.base[i, j, chain.bottom] > 0 and (wanted is None or chain.meets(wanted))
        ]

    def _rule_edges(self, vertex: Vertex) -> list[Edge]:
        """Return the k best ways to split a span; of a token there is one, without tails."""
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
        edges = []
        for at in order.tolist():
            s, r = divmod(at, scores.shape[1])
            if scores[s, r] > -np.inf:
                k, weight = i + s, float(np.log(rules.weights[mine][r]))
                tails = ((i, k, int(lefts[r]), True), (k + 1, j, int(rights[r]), True))
                edges.append(Edge(weight, tails, (0, 0), (a,)))
        return edges

    def _nodes(self, vertex: Vertex, rank: int) -> list[Node]:
        nodes: list[Node] = []
        waiting = [(vertex, rank)]
        while waiting:
            vertex, rank = waiting.pop()
            while len(self._derivations(vertex)) <= rank:
                self._next(vertex)
            edge = self._found[vertex][rank][1]
            nodes.extend((vertex[0], vertex[1] + 1, symbol) for symbol in edge.symbols)
            waiting.extend(reversed(list(zip(edge.tails, edge.ranks, strict=True))))
        return nodes
