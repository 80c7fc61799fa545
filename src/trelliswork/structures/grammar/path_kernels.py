"""CPU kernels of the k best derivations: every symbol of a span keeps a descending list of scores and their origins."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import at, insert

NEG_INF = -np.inf


@kernel(EXACT)
def _insert_pairs(left, right, score, code, values, origins):
    """Insert left_a + right_b + score for all pairs that can be among the k highest; origin (code k + a) k + b."""
    k = values.shape[0]
    for a in range(k):
        if left[a] == NEG_INF:
            break
        for b in range(k // (a + 1)):
            value = left[a] + right[b] + score
            if value == NEG_INF or value <= values[k - 1]:
                break
            insert(value, (code * k + a) * k + b, values, origins)


@kernel(EXACT)
def _fill_lists(rules, lexical, nodes, n, grammar, values, origins):
    """The k best derivations of every symbol and span, narrow spans first."""
    lefts, rights, pair_of, starts, _ = grammar
    n_symbols = values.shape[2]
    first_lexical, has_nodes = n_symbols - lexical.shape[1], nodes.shape[0] > 0
    values[:n, :n] = NEG_INF
    for w in range(n):
        for i in range(n - w):
            j = i + w
            if w == 0:
                values[i, i, first_lexical:, 0] = lexical[i]
            here = rules[at(i, rules.shape[0]), at(j, rules.shape[1])]
            for a in range(starts.shape[0] - 1 if w > 0 else 0):
                for r in range(starts[a], starts[a + 1]):
                    q = pair_of[r]
                    for s in range(i, j if here[r] > NEG_INF else i):
                        left, right = values[i, s, lefts[q]], values[s + 1, j, rights[q]]
                        _insert_pairs(left, right, here[r], r * n + s, values[i, j, a], origins[i, j, a])
            for a in range(n_symbols if has_nodes else 0):
                values[i, j, a] += nodes[i, j, a]


@kernel(EXACT)
def _trace(n, symbol, rank, grammar, origins, stack, found):
    """The derivation of one rank of a symbol above the whole row."""
    lefts, rights, pair_of, _, _ = grammar
    k, waiting, done = origins.shape[3], 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n - 1, symbol, rank
    while waiting > 0:
        waiting -= 1
        i, j, a, r = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        found[done, 0], found[done, 1], found[done, 2] = i, j + 1, a
        done += 1
        if i == j:
            continue
        origin = origins[i, j, a, r]
        split, q = origin // (k * k) % n, pair_of[origin // (k * k) // n]
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] = split + 1, j, rights[q], origin % k
        left_rank = origin // k % k
        waiting += 1
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] = i, split, lefts[q], left_rank
        waiting += 1


@kernel(EXACT)
def top_derivations(first, last, rules, lexical, root, nodes, lengths, grammar, found, scores):
    """The k best derivations of each row and their scores, -inf where there are fewer."""
    k, n_most, n_symbols = scores.shape[0], lexical.shape[1], root.shape[1]
    values, origins = np.empty((n_most, n_most, n_symbols, k)), np.zeros((n_most, n_most, n_symbols, k), np.int64)
    best, roots, stack = np.empty(k), np.zeros(k, np.int64), np.empty((2 * n_most, 4), np.int64)
    for b in range(first, last):
        n, mine = lengths[b], root[at(b, root.shape[0])]
        own = nodes[b] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        _fill_lists(rules[at(b, rules.shape[0])], lexical[b], own, n, grammar, values, origins)
        best[:] = NEG_INF
        for a in range(n_symbols):
            for r in range(k):
                value = values[0, n - 1, a, r] + mine[a]
                if value > best[k - 1]:
                    insert(value, a * k + r, best, roots)
        for rank in range(k):
            scores[rank, b] = best[rank]
            if best[rank] > NEG_INF:
                _trace(n, roots[rank] // k, roots[rank] % k, grammar, origins, stack, found[rank, b])
