"""CPU kernels that pick the best derivation of a dense grammar.

Rules lie as [phrase, left S + right] for S symbols; those above two phrases also by themselves, as [phrase, pair].
Phrases are symbols 0..P, lexical symbols the last ones, from `first_lexical` on.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import best_arrivals, first_best, higher
from trelliswork.structures.grammar.dense_kernels import widen


@kernel(FAST)
def _keep_higher_outer(left, right, block):
    """Compute block[p, r] = max(itself, left_p + right_r)."""
    for p in range(block.shape[0]):
        amount = left[p]
        for r in range(block.shape[1]):
            block[p, r] = higher(block[p, r], amount + right[r])


@kernel(EXACT)
def _above_tokens(rules, chart, n, first_lexical, edges):
    """The best rule with one token below: edges[0, j, p, a] of a -> p token j, edges[1, i, p, a] of a -> token i p.

    The phrases over two tokens are filled on the way.
    """
    n_phrases, n_symbols = rules.shape[0], chart.shape[2]
    n_lexical, best_token, best = n_symbols - first_lexical, np.empty(n), np.empty(n)
    tokens, following = np.empty((n_lexical, n)), np.empty((n_lexical, n))
    for t in range(n_lexical):
        for i in range(n):
            tokens[t, i] = chart[i, i, first_lexical + t]
            following[t, i] = chart[i + 1, i + 1, first_lexical + t] if i + 1 < n else NEG_INF
    for a in range(n_phrases):
        by_children = rules[a].reshape((n_symbols, n_symbols))
        rights, lefts = by_children[:, first_lexical:], by_children.T[:, first_lexical:]  # children that are tokens
        for p in range(n_phrases):
            best_arrivals(rights, p, tokens, best_token)
            for i in range(n):
                edges[0, i, p, a] = best_token[i]
            best_arrivals(lefts, p, tokens, best_token)
            for i in range(n):
                edges[1, i, p, a] = best_token[i]
        best[:] = NEG_INF
        for t in range(n_lexical):
            best_arrivals(rights, first_lexical + t, following, best_token)
            for i in range(n):
                best[i] = max(best[i], tokens[t, i] + best_token[i])
        for i in range(n - 1):
            chart[i, i + 1, a] = best[i]


@kernel(FAST)
def _fill_span(above_phrases, chart, widened, edges, i, j, pairs, best):
    """Compute the phrases over tokens i..j, three or more: one token at an edge, or phrases on both sides.

    Indices, as views cost a reference count each.
    """
    n_phrases, n_pairs = above_phrases.shape[0], above_phrases.shape[1] if j - i > 2 else 0
    best[:] = NEG_INF
    for p in range(n_phrases):
        before, after = chart[i, j - 1, p], chart[i + 1, j, p]
        for a in range(n_phrases):
            best[a] = higher(best[a], higher(edges[0, j, p, a] + before, edges[1, i, p, a] + after))
    if widened.shape[0] > 0:
        for q in range(n_pairs):
            pairs[q] = NEG_INF
        for k in range(i + 1, j - 1):
            for q in range(n_pairs):
                pairs[q] = higher(pairs[q], widened[i, k, 0, q] + widened[k + 1, j, 1, q])
    elif n_pairs > 0:
        pairs[:n_pairs] = NEG_INF
        block = pairs[:n_pairs].reshape((n_phrases, n_phrases))
        for k in range(i + 1, j - 1):
            _keep_higher_outer(chart[i, k, :n_phrases], chart[k + 1, j, :n_phrases], block)
    for a in range(n_phrases):
        top = best[a]
        for q in range(n_pairs):
            top = higher(top, above_phrases[a, q] + pairs[q])
        chart[i, j, a] = top


@kernel(EXACT)
def _fill(rules, lexical, nodes, n, chart, widened, edges, pairs):
    """Compute the inside recursion in (max, +)."""
    every, above_phrases = rules
    n_phrases, n_symbols = above_phrases.shape[0], chart.shape[2]
    first_lexical = n_symbols - lexical.shape[1]
    for i in range(n):
        chart[i, i, :first_lexical] = NEG_INF
        chart[i, i, first_lexical:] = lexical[i]
        if nodes.shape[0] > 0:
            chart[i, i] += nodes[i, i]
    _above_tokens(every, chart, n, first_lexical, edges)
    best = np.empty(n_phrases)
    for w in range(1, n):
        for i in range(n - w):
            if w > 1:
                _fill_span(above_phrases, chart, widened, edges, i, i + w, pairs, best)
            for a in range(n_phrases, n_symbols):
                chart[i, i + w, a] = NEG_INF
            if nodes.shape[0] > 0:
                chart[i, i + w] += nodes[i, i + w]
            if widened.shape[0] > 0:
                widen(chart[i, i + w, :n_phrases], widened[i, i + w])


@kernel(EXACT)
def _best_pairs(chart, i, j, n_phrases, first_lexical, pairs):
    """Compute pairs[l S + r] = the best split's left + right."""
    n_symbols = chart.shape[2]
    pairs[:] = NEG_INF
    block = pairs.reshape((n_symbols, n_symbols))
    for k in range(i, j):
        la, lb = (first_lexical, n_symbols) if k == i else (0, n_phrases)
        ra, rb = (first_lexical, n_symbols) if k + 1 == j else (0, n_phrases)
        _keep_higher_outer(chart[i, k, la:lb], chart[k + 1, j, ra:rb], block[la:lb, ra:rb])


@kernel(EXACT)
def _trace(rules, n, root_symbol, first_lexical, chart, pairs, stack, nodes):
    """Compute the best derivation, from the root down: at each node the best rule, then its best split."""
    n_phrases, n_symbols, waiting, done = rules.shape[0], chart.shape[2], 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, root_symbol
    while waiting > 0:
        waiting -= 1
        i, j, a = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        nodes[done, 0], nodes[done, 1], nodes[done, 2] = i, j + 1, a
        done += 1
        if i == j:
            continue
        _best_pairs(chart, i, j, n_phrases, first_lexical, pairs)
        for q in range(pairs.shape[0]):
            pairs[q] += rules[a, q]
        pair, _ = first_best(pairs, pairs.shape[0])
        left, right, best = pair // n_symbols, pair % n_symbols, i  # again: back-pointers of all spans cost more
        for k in range(i, j):
            mine = chart[i, k, left] + chart[k + 1, j, right]
            if mine > chart[i, best, left] + chart[best + 1, j, right]:
                best = k
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = best + 1, j, right
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = i, best, left
        waiting += 2


@kernel(EXACT)
def _place(scores, places, n_symbols, out):
    """Lay out rules by their phrase and pair; `out` has them all, and those above phrases."""
    every, above_phrases = out
    flat, n_phrases = every.ravel(), every.shape[0]
    for r in range(places.shape[0]):
        flat[places[r]] = scores[r]
    for a in range(n_phrases):
        for p in range(n_phrases):
            for q in range(n_phrases):
                above_phrases[a, p * n_phrases + q] = every[a, p * n_symbols + q]


@kernel(EXACT)
def best_derivations(first, last, scores, places, n_phrases, is_small, derivations, possible):
    """Compute the best derivation of each row; `places` says where rules lie.

    Among ties the lowest symbols, the first pair, the first split. The scores are rules, lexical, root, nodes, and the
    lengths.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: rules, lexical, root, nodes and lengths.
        places: place of each rule in a table of parents and pairs, int64 [rules].
        n_phrases: number of symbols that stand above others.
        is_small: whether the tables of all rules are small enough to be widened.
        derivations: (start, end, symbol) of each node, int64 [batch, 2n-1, 3], filled in.
        possible: whether a row has a derivation, bool [batch], filled in.
    """
    rules, lexical, root, nodes, lengths = scores
    n_most, n_lexical, n_symbols = lexical.shape[1], lexical.shape[2], root.shape[1]
    chart, pairs = np.empty((n_most, n_most, n_symbols)), np.empty(n_symbols**2)
    stack = np.empty((2 * n_most, 3), np.int64)
    widened = np.empty((n_most if is_small else 0, n_most, 2, n_phrases**2))
    edges = np.empty((2, n_most, n_phrases, n_phrases))
    every = np.full((n_phrases, n_symbols**2), NEG_INF)
    here = (every, np.empty((n_phrases, n_phrases**2)))
    for b in range(first, last):
        n, mine = lengths[b], root[b if root.shape[0] > 1 else 0]
        if b == first or rules.shape[0] > 1:
            _place(rules[b if rules.shape[0] > 1 else 0], places, n_symbols, here)
        own = nodes[b] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        _fill(here, lexical[b], own, n, chart, widened, edges, pairs)
        for a in range(n_symbols):
            pairs[a] = mine[a] + chart[0, n - 1, a]
        symbol, score = first_best(pairs, n_symbols)
        possible[b] = score > NEG_INF
        if possible[b]:
            _trace(every, n, symbol, n_symbols - n_lexical, chart, pairs, stack, derivations[b])
