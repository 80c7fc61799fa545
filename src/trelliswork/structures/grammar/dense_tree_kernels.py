"""CPU kernels that pick the best derivation of a dense grammar: rules lie as [phrase, column], see `dense.py`."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.grammar.dense_kernels import block_of, piece, widen

NEG_INF = -np.inf


@kernel(FAST)
def _highest_sum(one, other, work):
    """max_q one_q + other_q: quarters against one another, then halves, which runs in vector registers."""
    size = one.shape[0]
    m = size // 4
    one0, one1, one2, one3 = one[:m], one[m : 2 * m], one[2 * m : 3 * m], one[3 * m : 4 * m]
    other0, other1, other2, other3 = other[:m], other[m : 2 * m], other[2 * m : 3 * m], other[3 * m : 4 * m]
    for q in range(m):
        upper = max(one0[q] + other0[q], one1[q] + other1[q])
        work[q] = max(upper, max(one2[q] + other2[q], one3[q] + other3[q]))
    top = NEG_INF
    for q in range(4 * m, size):
        top = max(top, one[q] + other[q])
    while m > 8:
        half = m // 2
        lower, upper = work[:half], work[m - half : m]
        for q in range(half):
            lower[q] = max(lower[q], upper[q])
        m -= half
    for q in range(m):
        top = max(top, work[q])
    return top


@kernel(FAST)
def _keep_higher_outer(left, right, block):
    """block[p, r] = max(itself, left_p + right_r)."""
    for p in range(block.shape[0]):
        amount = left[p]
        for r in range(block.shape[1]):
            block[p, r] = max(block[p, r], amount + right[r])


@kernel(FAST)
def _keep_higher_sum(one, other, out):
    for q in range(out.shape[0]):
        out[q] = max(out[q], one[q] + other[q])


@kernel(EXACT)
def _best_pairs(chart, widened, i, j, columns, pairs):
    """pairs[column of (l, r)] = the best split's left + right."""
    n_phrases, n_lexical, starts = columns
    n_symbols = chart.shape[2]
    pairs[:] = NEG_INF
    for k in range(i, j):
        left, right = chart[i, k], chart[k + 1, j]
        if i < k < j - 1 and widened.shape[0] > 0:
            _keep_higher_sum(widened[i, k, 0], widened[k + 1, j, 1], pairs[: n_phrases**2])
            continue
        for half in range(2):
            la, lb = piece(k > i, half, n_phrases, n_lexical, n_symbols)
            for other in range(2):
                ra, rb = piece(k + 1 < j, other, n_phrases, n_lexical, n_symbols)
                if la < lb and ra < rb:
                    block = block_of(pairs, starts, half, other, n_phrases, n_symbols)
                    first, second = la - half * n_phrases, ra - other * n_phrases
                    inner = block[first : first + lb - la, second : second + rb - ra]
                    _keep_higher_outer(left[la:lb], right[ra:rb], inner)


@kernel(FAST)
def _edge_scores(rules, chart, n, starts, edges):
    """The best rule with one token below: edges[0, j, p, a] of a -> p token j, edges[1, i, p, a] of a -> token i p."""
    n_phrases = rules.shape[0]
    n_others = chart.shape[2] - n_phrases
    first_right, first_left = starts[0, 1], starts[1, 0]
    for i in range(n):
        token = chart[i, i, n_phrases:]
        for a in range(n_phrases):
            for p in range(n_phrases):
                ending = beginning = NEG_INF
                for t in range(n_others):
                    ending = max(ending, rules[a, first_right + p * n_others + t] + token[t])
                    beginning = max(beginning, rules[a, first_left + t * n_phrases + p] + token[t])
                edges[0, i, p, a], edges[1, i, p, a] = ending, beginning


@kernel(FAST)
def _best_at_edges(ending, before, beginning, after, found):
    """found_a = the best of splits with one token on the right, or on the left."""
    n_phrases = found.shape[0]
    found[:] = NEG_INF
    for p in range(n_phrases):
        for a in range(n_phrases):
            best = max(ending[p, a] + before[p], beginning[p, a] + after[p])
            found[a] = max(found[a], best)


@kernel(FAST)
def _keep_best_rules(rules, pairs, found):
    """found_a = max(itself, max_q rules[a, q] + pairs_q); four running maxima need not wait for one another."""
    size = pairs.shape[0]
    for a in range(found.shape[0]):
        top0, top1, top2, top3 = found[a], NEG_INF, NEG_INF, NEG_INF
        for step in range(size // 4):
            q = 4 * step
            top0, top1 = max(top0, rules[a, q] + pairs[q]), max(top1, rules[a, q + 1] + pairs[q + 1])
            top2, top3 = max(top2, rules[a, q + 2] + pairs[q + 2]), max(top3, rules[a, q + 3] + pairs[q + 3])
        for q in range(size - size % 4, size):
            top0 = max(top0, rules[a, q] + pairs[q])
        found[a] = max(max(top0, top1), max(top2, top3))


@kernel(EXACT)
def _best_inner_pairs(chart, widened, i, j, n_phrases, pairs):
    """Like `_best_pairs`, of splits with two or more tokens on both sides: phrases only."""
    pairs[:] = NEG_INF
    for k in range(i + 1, j - 1):
        if widened.shape[0] > 0:
            _keep_higher_sum(widened[i, k, 0], widened[k + 1, j, 1], pairs)
        else:
            block = pairs.reshape((n_phrases, n_phrases))
            _keep_higher_outer(chart[i, k, :n_phrases], chart[k + 1, j, :n_phrases], block)


@kernel(EXACT)
def _fill_span(rules, chart, widened, edges, i, j, columns, first_narrow, pairs, work):
    """The phrases over tokens i..j."""
    n_phrases, found = rules.shape[0], chart[i, j]
    if j - i > 1 and edges.shape[0] > 0:
        _best_at_edges(edges[0, j], chart[i, j - 1], edges[1, i], chart[i + 1, j], found[:n_phrases])
        if j - i > 2:
            inner = pairs[: n_phrases**2]
            _best_inner_pairs(chart, widened, i, j, n_phrases, inner)
            _keep_best_rules(rules, inner, found[:n_phrases])
        return
    lo, hi = (0, columns[2][1, 1]) if j - i > 1 else (first_narrow, rules.shape[1])
    _best_pairs(chart, widened, i, j, columns, pairs)
    for a in range(n_phrases):
        found[a] = _highest_sum(rules[a, lo:hi], pairs[lo:hi], work)


@kernel(EXACT)
def _fill(rules, lexical, nodes, n, columns, first_narrow, chart, widened, edges, works):
    """The inside recursion in (max, +); `edges` is empty where phrases can stand above single tokens."""
    n_lexical, n_phrases, n_symbols = lexical.shape[1], rules.shape[0], chart.shape[2]
    pairs, work = works
    for i in range(n):
        chart[i, i, : n_symbols - n_lexical] = NEG_INF
        chart[i, i, n_symbols - n_lexical :] = lexical[i]
        if nodes.shape[0] > 0:
            chart[i, i] += nodes[i, i]
    if edges.shape[0] > 0:
        _edge_scores(rules, chart, n, columns[2], edges)
    for w in range(1, n):
        for i in range(n - w):
            _fill_span(rules, chart, widened, edges, i, i + w, columns, first_narrow, pairs, work)
            chart[i, i + w, n_phrases:] = NEG_INF
            if nodes.shape[0] > 0:
                chart[i, i + w] += nodes[i, i + w]
            if widened.shape[0] > 0:
                widen(chart[i, i + w, :n_phrases], widened[i, i + w])


@kernel(EXACT)
def _first_best(one, other):
    """The first index of the highest sum."""
    found = 0
    for q in range(one.shape[0]):
        if one[q] + other[q] > one[found] + other[found]:
            found = q
    return found


@kernel(EXACT)
def _best_rule(scores, pairs, columns, n_symbols):
    """The symbols of the best rule: the lowest left, then right, among ties."""
    n_phrases, _, starts = columns
    best, left, right = NEG_INF, 0, 0
    for half in range(2):
        for other in range(2):
            rules = block_of(scores, starts, half, other, n_phrases, n_symbols)
            found = block_of(pairs, starts, half, other, n_phrases, n_symbols)
            for p in range(rules.shape[0]):
                for r in range(rules.shape[1]):
                    here, l_symbol, r_symbol = rules[p, r] + found[p, r], p + half * n_phrases, r + other * n_phrases
                    if here > best or (here == best and here > NEG_INF and (l_symbol, r_symbol) < (left, right)):
                        best, left, right = here, l_symbol, r_symbol
    return left, right


@kernel(EXACT)
def _trace(rules, n, root_symbol, columns, chart, widened, pairs, stack, found):
    """The best derivation, from the root down: at each node the best rule, then its best split."""
    waiting, done = 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, root_symbol
    while waiting > 0:
        waiting -= 1
        i, j, a = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        found[done, 0], found[done, 1], found[done, 2] = i, j + 1, a
        done += 1
        if i == j:
            continue
        _best_pairs(chart, widened, i, j, columns, pairs)
        left, right = _best_rule(rules[a], pairs, columns, chart.shape[2])
        best = i
        for k in range(i, j):
            mine = chart[i, k, left] + chart[k + 1, j, right]
            if mine > chart[i, best, left] + chart[best + 1, j, right]:
                best = k
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = best + 1, j, right
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = i, best, left
        waiting += 2


@kernel(EXACT)
def _place(scores, places, out):
    for r in range(places.shape[0]):
        out[places[r]] = scores[r]


@kernel(EXACT)
def best_derivations(first, last, scores, columns, places, n_phrases, first_narrow, small, found, possible):
    """The best derivation of each row; `places` says where rules lie.

    Among ties the lowest symbols, the first pair, the first split. The scores are rules, lexical, root, nodes, and the
    lengths.
    """
    rules, lexical, root, nodes, lengths = scores
    n_most, n_symbols = lexical.shape[1], root.shape[1]
    chart, pairs, work = np.empty((n_most, n_most, n_symbols)), np.empty(n_symbols**2), np.empty(n_symbols**2)
    stack = np.empty((2 * n_most, 3), np.int64)
    widened = np.empty((n_most if small else 0, n_most, 2, n_phrases**2))
    edges = np.empty((2 if first_narrow > 0 else 0, n_most, n_phrases, n_phrases))
    here = np.full((n_phrases, n_symbols**2), NEG_INF)
    for b in range(first, last):
        n, mine = lengths[b], root[b if root.shape[0] > 1 else 0]
        if b == first or rules.shape[0] > 1:
            _place(rules[b if rules.shape[0] > 1 else 0], places, here.ravel())
        own = nodes[b] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        _fill(here, lexical[b], own, n, columns, first_narrow, chart, widened, edges, (pairs, work))
        symbol = _first_best(mine, chart[0, n - 1])
        possible[b] = mine[symbol] + chart[0, n - 1, symbol] > NEG_INF
        if possible[b]:
            _trace(here, n, symbol, columns, chart, widened, pairs, stack, found[b])
