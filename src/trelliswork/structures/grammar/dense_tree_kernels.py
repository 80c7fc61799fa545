"""CPU kernels that pick the best derivation of a dense grammar: rules lie as [phrase, column], see `dense.py`."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import higher
from trelliswork.structures.grammar.dense_kernels import block_of, piece, widen

NEG_INF = -np.inf


@kernel(FAST)
def _highest_sum(one, other):
    """max_q one_q + other_q."""
    top = NEG_INF
    for q in range(one.shape[0]):
        top = higher(top, one[q] + other[q])
    return top


@kernel(FAST)
def _keep_higher_outer(left, right, block):
    """block[p, r] = max(itself, left_p + right_r)."""
    for p in range(block.shape[0]):
        amount = left[p]
        for r in range(block.shape[1]):
            block[p, r] = higher(block[p, r], amount + right[r])


@kernel(FAST)
def _keep_higher_phrases(widened, i, k, j, n_pairs, pairs):
    """The pairs of phrases over tokens i..k and k+1..j; indices rather than views, which cost a reference count each."""
    for q in range(n_pairs):
        pairs[q] = higher(pairs[q], widened[i, k, 0, q] + widened[k + 1, j, 1, q])


@kernel(EXACT)
def _best_pairs(chart, widened, i, j, columns, pairs):
    """pairs[column of (l, r)] = the best split's left + right."""
    n_phrases, n_lexical, starts = columns
    n_symbols = chart.shape[2]
    pairs[:] = NEG_INF
    for k in range(i, j):
        left, right = chart[i, k], chart[k + 1, j]
        if i < k < j - 1 and widened.shape[0] > 0:
            _keep_higher_phrases(widened, i, k, j, n_phrases**2, pairs)
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
def _best_tokens(rules, first, step, tokens, found):
    """found_i = max_t rules[first + step t] + tokens[t, i], four symbols a pass."""
    size, t = tokens.shape[0], 0
    for i in range(found.shape[0]):
        found[i] = NEG_INF
    while t + 3 < size:
        at = first + step * t
        r0, r1, r2, r3 = rules[at], rules[at + step], rules[at + 2 * step], rules[at + 3 * step]
        for i in range(found.shape[0]):
            low = higher(r0 + tokens[t, i], r1 + tokens[t + 1, i])
            high = higher(r2 + tokens[t + 2, i], r3 + tokens[t + 3, i])
            found[i] = higher(found[i], higher(low, high))
        t += 4
    while t < size:
        r0 = rules[first + step * t]
        for i in range(found.shape[0]):
            found[i] = higher(found[i], r0 + tokens[t, i])
        t += 1


@kernel(EXACT)
def _edge_scores(rules, chart, n, starts, edges):
    """The best rule with one token below: edges[0, j, p, a] of a -> p token j, edges[1, i, p, a] of a -> token i p."""
    n_phrases = rules.shape[0]
    n_others = chart.shape[2] - n_phrases
    tokens, found = np.empty((n_others, n)), np.empty(n)
    for t in range(n_others):
        for i in range(n):
            tokens[t, i] = chart[i, i, n_phrases + t]
    for side in range(2):
        for a in range(n_phrases):
            for p in range(n_phrases):
                first, step = (starts[1, 0] + p, n_phrases) if side else (starts[0, 1] + p * n_others, 1)
                _best_tokens(rules[a], first, step, tokens, found)
                for i in range(n):
                    edges[side, i, p, a] = found[i]


@kernel(FAST)
def _best_at_edges(edges, chart, i, j, n_phrases):
    """chart[i, j] = the best of splits with one token on the right, or on the left."""
    for a in range(n_phrases):
        chart[i, j, a] = NEG_INF
    for p in range(n_phrases):
        before, after = chart[i, j - 1, p], chart[i + 1, j, p]
        for a in range(n_phrases):
            best = higher(edges[0, j, p, a] + before, edges[1, i, p, a] + after)
            chart[i, j, a] = higher(chart[i, j, a], best)


@kernel(EXACT)
def _best_inner_pairs(chart, widened, i, j, n_phrases, pairs):
    """Like `_best_pairs`, of splits with two or more tokens on both sides: phrases only."""
    for q in range(n_phrases**2):
        pairs[q] = NEG_INF
    for k in range(i + 1, j - 1):
        if widened.shape[0] > 0:
            _keep_higher_phrases(widened, i, k, j, n_phrases**2, pairs)
        else:
            block = pairs[: n_phrases**2].reshape((n_phrases, n_phrases))
            _keep_higher_outer(chart[i, k, :n_phrases], chart[k + 1, j, :n_phrases], block)


@kernel(EXACT)
def _columns_above(width, size, columns, first_narrow):
    """The columns of pairs that spans of width + 1 tokens can have."""
    return (0, columns[2][1, 1]) if width > 1 else (first_narrow, size)


@kernel(EXACT)
def _fill_span(rules, chart, widened, edges, i, j, columns, first_narrow, pairs):
    """The phrases over tokens i..j."""
    n_phrases, found = rules.shape[0], chart[i, j]
    if j - i > 1 and edges.shape[0] > 0:
        _best_at_edges(edges, chart, i, j, n_phrases)
        if j - i > 2:
            _best_inner_pairs(chart, widened, i, j, n_phrases, pairs)
            for a in range(n_phrases):
                found[a] = higher(found[a], _highest_sum(rules[a, : n_phrases**2], pairs))
        return
    lo, hi = _columns_above(j - i, rules.shape[1], columns, first_narrow)
    _best_pairs(chart, widened, i, j, columns, pairs)
    for a in range(n_phrases):
        found[a] = _highest_sum(rules[a, lo:hi], pairs[lo:hi])


@kernel(EXACT)
def _fill(rules, lexical, nodes, n, columns, first_narrow, chart, widened, edges, pairs):
    """The inside recursion in (max, +); `edges` is empty where phrases can stand above single tokens."""
    n_lexical, n_phrases, n_symbols = lexical.shape[1], rules.shape[0], chart.shape[2]
    for i in range(n):
        chart[i, i, : n_symbols - n_lexical] = NEG_INF
        chart[i, i, n_symbols - n_lexical :] = lexical[i]
        if nodes.shape[0] > 0:
            chart[i, i] += nodes[i, i]
    if edges.shape[0] > 0:
        _edge_scores(rules, chart, n, columns[2], edges)
    for w in range(1, n):
        for i in range(n - w):
            _fill_span(rules, chart, widened, edges, i, i + w, columns, first_narrow, pairs)
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
def _best_rule(rules, a, pairs, lo, hi, columns, n_symbols):
    """The symbols of the best rule in columns lo..hi: the lowest left, then right, among ties."""
    n_phrases, _, starts = columns
    best = _highest_sum(rules[a, lo:hi], pairs[lo:hi])
    for left in range(n_symbols):
        half = int(left >= n_phrases)
        for other in range(2):
            n_right = n_symbols - n_phrases if other else n_phrases
            first = starts[half, other] + (left - half * n_phrases) * n_right
            for r in range(n_right if lo <= first < hi else 0):
                if rules[a, first + r] + pairs[first + r] == best:
                    return left, r + other * n_phrases
    return 0, 0


@kernel(EXACT)
def _trace(rules, n, root_symbol, columns, first_narrow, chart, widened, pairs, stack, found):
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
        lo, hi = _columns_above(j - i, rules.shape[1], columns, first_narrow)
        left, right = _best_rule(rules, a, pairs, lo, hi, columns, chart.shape[2])
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
    chart, pairs = np.empty((n_most, n_most, n_symbols)), np.empty(n_symbols**2)
    stack = np.empty((2 * n_most, 3), np.int64)
    widened = np.empty((n_most if small else 0, n_most, 2, n_phrases**2))
    edges = np.empty((2 if first_narrow > 0 else 0, n_most, n_phrases, n_phrases))
    here = np.full((n_phrases, n_symbols**2), NEG_INF)
    for b in range(first, last):
        n, mine = lengths[b], root[b if root.shape[0] > 1 else 0]
        if b == first or rules.shape[0] > 1:
            _place(rules[b if rules.shape[0] > 1 else 0], places, here.ravel())
        own = nodes[b] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        _fill(here, lexical[b], own, n, columns, first_narrow, chart, widened, edges, pairs)
        symbol = _first_best(mine, chart[0, n - 1])
        possible[b] = mine[symbol] + chart[0, n - 1, symbol] > NEG_INF
        if possible[b]:
            _trace(here, n, symbol, columns, first_narrow, chart, widened, pairs, stack, found[b])
