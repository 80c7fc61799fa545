"""Grammars with unary rules against enumeration of all their trees."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest

from trelliswork.errors import ScoreError
from trelliswork.structures.grammar.closed import ClosedGrammar
from trelliswork.structures.grammar.unary_chains import Through, best_chains, simple_chains, summed_chains

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


KNOWN = [
    {(0, 1): {NP}},
    {(1, 2): {X, VP}},
    {(2, 2): {NP}, (0, 3): {S}},
    {(1, 3): {VP}, (2, 3): {X, NP}, (0, 0): {N, V}},
    {(0, 3): {VP}},
]


@pytest.mark.parametrize("known", KNOWN)
def test_known_constituents_leave_the_trees_that_have_them(known: dict[tuple[int, int], set[int]]) -> None:
    lexical = words(4, 3)
    kept = {
        nodes: weight
        for nodes, weight in enumerated(lexical).items()
        if all(any((i, last + 1, a) in nodes for a in wanted) for (i, last), wanted in known.items())
    }
    pins = {place: frozenset(wanted) for place, wanted in known.items()}
    chart, z = GRAMMAR.inside(lexical, known=pins), math.fsum(kept.values())
    assert chart.log_z == pytest.approx(math.log(z), abs=1e-12)
    expected, tops = Counter[tuple[int, int, int]](), Counter[tuple[int, int, int]]()
    for nodes, weight in kept.items():
        seen = set()
        for i, j, a in nodes:
            expected[i, j, a] += weight / z
            if (i, j) not in seen:
                tops[i, j, a] += weight / z
            seen.add((i, j))
    found, topmost = GRAMMAR.posteriors(chart), chart.full * GRAMMAR.outside(chart)
    for i, last, a in np.ndindex(found.shape):
        assert found[i, last, a] == pytest.approx(expected[i, last + 1, a], abs=1e-12)
        assert topmost[i, last, a] == pytest.approx(tops[i, last + 1, a], abs=1e-12)
    best = sorted(kept.values(), reverse=True)[:7]
    ranked = GRAMMAR.top_k(GRAMMAR.inside(lexical, best=True, known=pins), 7)
    assert [score for _, score in ranked] == pytest.approx([math.log(each) for each in best], abs=1e-12)
    assert all(tuple(nodes) in kept for nodes, _ in ranked)
    assert GRAMMAR.entropy(chart, lexical) == pytest.approx(entropy_of(kept), abs=1e-12)


def entropy_of(trees: dict[tuple[tuple[int, int, int], ...], float]) -> float:
    z = math.fsum(trees.values())
    return -math.fsum(weight / z * math.log(weight / z) for weight in trees.values())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_entropy_is_that_of_all_trees(n: int) -> None:
    lexical = words(n, n)
    assert GRAMMAR.entropy(GRAMMAR.inside(lexical), lexical) == pytest.approx(
        entropy_of(enumerated(lexical)), abs=1e-12
    )


def test_constituents_that_cross_leave_no_tree() -> None:
    pins = {(0, 1): frozenset({NP}), (1, 2): frozenset({NP})}
    assert GRAMMAR.inside(words(4, 3), known=pins).log_z == -math.inf


def test_chains_through_a_symbol_are_those_that_meet_it() -> None:
    """Among all chains of a cycle, up to a length behind which nothing is left."""
    unary = {(0, 1): 0.5, (1, 0): 0.4, (1, 2): 0.3, (2, 3): 0.2}
    wanted = {1, 9}
    met, counts, chains = Counter[tuple[int, int]](), Counter[tuple[int, int, int]](), [((a,), 1.0) for a in range(4)]
    for _ in range(80):
        for nodes, weight in chains:
            if wanted & set(nodes):
                met[nodes[0], nodes[-1]] += weight
                for a in nodes:
                    counts[nodes[0], nodes[-1], a] += weight
        chains = [((*nodes, b), w * v) for nodes, w in chains for (a, b), v in unary.items() if a == nodes[-1]]
    found = Through(unary, wanted)
    assert found.chains() == pytest.approx({**met, (9, 9): 1.0})
    for top, bottom in np.ndindex(4, 4):
        out, base = np.eye(10)[top], np.eye(10)[bottom]
        assert found.expected(out, base)[:4] == pytest.approx([counts[top, bottom, a] for a in range(4)])
    assert found.expected(np.eye(10)[9], np.eye(10)[9])[9] == 1.0


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
