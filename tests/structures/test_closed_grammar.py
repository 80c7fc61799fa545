"""Grammars with unary rules against enumeration of all their trees."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest

from trelliswork.errors import ScoreError
from trelliswork.structures.grammar.closed import ClosedGrammar, best_chains, simple_chains, summed_chains

SYMBOLS = ("S", "NP", "VP", "X", "n", "v")
S, NP, VP, X, N, V = range(6)
BINARY = {(S, NP, VP): 0.6, (NP, NP, NP): 0.2, (VP, V, NP): 0.5, (X, V, N): 0.4, (NP, X, N): 0.1}
UNARY = {(S, VP): 0.3, (S, X): 0.1, (NP, N): 0.7, (VP, V): 0.3, (VP, X): 0.2, (X, V): 0.6}
ROOTS = {S: 0.8, NP: 0.2}
GRAMMAR = ClosedGrammar.of(SYMBOLS, BINARY, UNARY, ROOTS)
TREES = tuple[tuple[tuple[int, int, int], ...], float]


def words(n: int, seed: int) -> np.ndarray:
    found = np.zeros((n, len(SYMBOLS)))
    found[:, [N, V]] = np.random.default_rng(seed).uniform(0.01, 1.0, (n, 2))
    return found


def enumerated(lexical: np.ndarray) -> dict[tuple[tuple[int, int, int], ...], float]:
    """Every tree as nodes, parents before children, with its weight; unary rules have no cycle here."""

    @cache
    def below(i: int, j: int, a: int) -> tuple[TREES, ...]:
        node, found = (i, j, a), []
        if j - i == 1 and lexical[i, a] > 0:
            found.append(((node,), lexical[i, a]))
        for (parent, child), weight in UNARY.items():
            if parent == a:
                found += [((node, *nodes), weight * w) for nodes, w in below(i, j, child)]
        for (parent, left, right), weight in BINARY.items():
            if parent == a:
                for k in range(i + 1, j):
                    for nodes, w in below(i, k, left):
                        found += [((node, *nodes, *more), weight * w * v) for more, v in below(k, j, right)]
        return tuple(found)

    n = len(lexical)
    return {nodes: root * w for a, root in ROOTS.items() for nodes, w in below(0, n, a)}


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_sums_posteriors_and_the_best_trees_are_those_of_enumeration(n: int) -> None:
    lexical = words(n, n)
    trees = enumerated(lexical)
    chart, z = GRAMMAR.inside(lexical), math.fsum(trees.values())
    assert chart.log_z == pytest.approx(math.log(z), abs=1e-12)
    expected: Counter[tuple[int, int, int]] = Counter()
    for nodes, weight in trees.items():
        for node in nodes:
            expected[node] += weight / z
    found = GRAMMAR.posteriors(chart)
    for i, last, a in np.ndindex(found.shape):
        assert found[i, last, a] == pytest.approx(expected[i, last + 1, a], abs=1e-12)
    best = sorted(trees.values(), reverse=True)[:7]
    ranked = GRAMMAR.top_k(GRAMMAR.inside(lexical, best=True), 7)
    assert [score for _, score in ranked] == pytest.approx([math.log(each) for each in best], abs=1e-12)
    for nodes, score in ranked:
        assert math.log(trees[tuple(nodes)]) == pytest.approx(score, abs=1e-12)
    assert len({tuple(nodes) for nodes, _ in ranked}) == len(ranked) == min(7, len(trees))


def test_a_cycle_of_unary_rules_is_summed_to_its_end() -> None:
    unary = {(0, 1): 0.5, (1, 0): 0.4, (1, 2): 0.3}
    chains = summed_chains(unary)
    assert chains[0, 2] == pytest.approx(0.5 * 0.3 / (1 - 0.2))
    assert chains[0, 0] == pytest.approx(0.2 / (1 - 0.2))
    assert best_chains(unary)[0, 2] == pytest.approx(0.15)
    down = simple_chains(0, {0: [(1, 0.5)], 1: [(0, 0.4), (2, 0.3)]})
    assert [(chain.above, chain.bottom) for chain in down] == [((), 0), ((0,), 1), ((0, 1), 2)]
    with pytest.raises(ScoreError, match="must sum to a number"):
        summed_chains({(0, 1): 1.0, (1, 0): 1.0})


def test_long_sentences_do_not_underflow() -> None:
    lexical = words(60, 0) * 1e-30
    chart = GRAMMAR.inside(lexical)
    assert math.isfinite(chart.log_z) and chart.log_z < -60 * 30
    of_words = GRAMMAR.posteriors(chart)[range(60), range(60)][:, [N, V]].sum(1)
    np.testing.assert_allclose(of_words, 1.0, rtol=1e-9)


def test_a_sentence_without_a_tree_is_said() -> None:
    lexical = np.zeros((2, len(SYMBOLS)))
    chart = GRAMMAR.inside(lexical, best=True)
    assert chart.log_z == -math.inf
    with pytest.raises(ScoreError, match="expected a sentence that the grammar has a tree for"):
        GRAMMAR.top_k(chart, 1)
