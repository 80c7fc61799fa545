"""CPU kernels of CKY for any grammar and any range of scores: log Z, its gradient, and kernels that pick derivations.

All work row by row in log space on C-contiguous float64 arrays. `rules` is [row, i, j, rule], `root` [row, symbol],
with axes of 1 where shared; `nodes` is empty where there are none. `grammar` is a tuple of arrays: lefts and rights of
the pairs, the pair of each rule, where the rules of each phrase start, ranges of pairs by the widths of the children.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import at, exp, higher, highest, log, log_sum
from trelliswork.runtime.kernel_random import choose

LOWEST = -1e300  # stands for -inf where it is subtracted


@kernel(FAST)
def _keep_higher(left, right, lefts, rights, tops):
    for q in range(tops.shape[0]):
        tops[q] = higher(tops[q], left[lefts[q]] + right[rights[q]])


@kernel(FAST)
def _add_exp(left, right, lefts, rights, tops, totals):
    for q in range(tops.shape[0]):
        totals[q] += exp(left[lefts[q]] + right[rights[q]] - tops[q])


@kernel(EXACT)
def fill_pairs(chart, i, j, grammar, best, pairs, totals):
    """Compute pairs_q = log Σ (or max) over splits of left + right; `math.md`, (3).

    Args:
        chart: weights of the nodes of one row, float64 [n, n, symbols].
        i: first token of the span.
        j: its last token.
        grammar: symbols of the pairs and rules, by number.
        best: whether the best derivation counts alone, instead of the sum over all.
        pairs: float64 [pairs], filled in.
        totals: room for as many numbers.
    """
    lefts, rights, _, _, ranges = grammar
    pairs[:] = NEG_INF if best else LOWEST
    for k in range(i, j):
        for half in range(2):
            lo, hi = ranges[int(k > i), int(k + 1 < j), half]
            _keep_higher(chart[i, k], chart[k + 1, j], lefts[lo:hi], rights[lo:hi], pairs[lo:hi])
    if best:
        return
    totals[:] = 0.0
    for k in range(i, j):
        for half in range(2):
            lo, hi = ranges[int(k > i), int(k + 1 < j), half]
            _add_exp(chart[i, k], chart[k + 1, j], lefts[lo:hi], rights[lo:hi], pairs[lo:hi], totals[lo:hi])
    for q in range(pairs.shape[0]):
        pairs[q] += log(totals[q])


@kernel(FAST)
def _fill_row(rules, lexical, nodes, n, grammar, best, chart, pairs, totals):
    """Compute the inside recursion, narrow spans first; `math.md`, (2) to (4)."""
    _, _, pair_of, starts, _ = grammar
    first_lexical, n_phrases = chart.shape[2] - lexical.shape[1], starts.shape[0] - 1
    for i in range(n):
        chart[i, i, :first_lexical] = NEG_INF
        chart[i, i, first_lexical:] = lexical[i]
        if nodes.shape[0] > 0:
            chart[i, i] += nodes[i, i]
    for w in range(1, n):
        for i in range(n - w):
            j = i + w
            here = rules[at(i, rules.shape[0]), at(j, rules.shape[1])]
            fill_pairs(chart, i, j, grammar, best, pairs, totals)
            chart[i, j] = NEG_INF
            for a in range(n_phrases):
                mine, scores = pair_of[starts[a] : starts[a + 1]], here[starts[a] : starts[a + 1]]
                top, total = NEG_INF, 0.0
                for r in range(mine.shape[0]):
                    top = higher(top, pairs[mine[r]] + scores[r])
                if not best and top > NEG_INF:
                    for r in range(mine.shape[0]):
                        total += exp(pairs[mine[r]] + scores[r] - top)
                    top += np.log(total)
                chart[i, j, a] = top
            if nodes.shape[0] > 0:
                chart[i, j] += nodes[i, j]


@kernel(EXACT)
def _total(chart, root, n, best, work):
    """Return log Σ (or max) over symbols of the whole row with the root's score."""
    for a in range(root.shape[0]):
        work[a] = chart[0, n - 1, a] + root[a]
    return highest(work, root.shape[0]) if best else log_sum(work, root.shape[0])


@kernel(EXACT)
def inside(first, last, rules, lexical, root, nodes, lengths, grammar, charts, log_z):
    """Compute log Z of rows first..last-1, and their charts [row, i, j, symbol].

    Args:
        first: the first row.
        last: the row behind the last.
        rules: scores of the binary rules, float64 [1 or batch, 1 or n, 1 or n, rules].
        lexical: scores of the symbols above each word, float64 [batch, n, lexical].
        root: scores of the root symbols, float64 [1 or batch, symbols].
        nodes: scores that every node adds, float64 [batch, n, n, symbols]; empty for 0.
        lengths: words of each row, int64 [batch].
        grammar: symbols of the pairs and rules, by number.
        charts: float64 [rows, n, n, symbols], filled in.
        log_z: float64 [batch], filled in.
    """  # [S2, CKY]
    n_pairs = grammar[0].shape[0]
    pairs, totals, work = np.empty(n_pairs), np.empty(n_pairs), np.empty(root.shape[1])
    for b in range(first, last):
        own = nodes[at(b, nodes.shape[0])] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        here = rules[at(b, rules.shape[0])]
        _fill_row(here, lexical[b], own, lengths[b], grammar, False, charts[b], pairs, totals)
        log_z[b] = _total(charts[b], root[at(b, root.shape[0])], lengths[b], False, work)


@kernel(EXACT)
def _outside_span(chart, bars, i, j, here, base, grammar, pairs, totals, d_rules):
    """Pass the derivatives by the symbols of a span on to rules and to the symbols below; `math.md`, (6)."""
    lefts, rights, pair_of, starts, ranges = grammar
    fill_pairs(chart, i, j, grammar, False, pairs, totals)
    totals[:] = 0.0
    for a in range(starts.shape[0] - 1):
        amount = bars[i, j, a]
        if amount != 0.0:
            for r in range(starts[a], starts[a + 1]):
                share = amount * exp(min(pairs[pair_of[r]] + here[r] - base[a], 0.0))
                d_rules[r] += share
                totals[pair_of[r]] += share
    for k in range(i, j):
        for half in range(2):
            lo, hi = ranges[int(k > i), int(k + 1 < j), half]
            for q in range(lo, hi):
                if totals[q] != 0.0:
                    inner = chart[i, k, lefts[q]] + chart[k + 1, j, rights[q]] - pairs[q]
                    share = totals[q] * exp(min(inner, 0.0))
                    bars[i, k, lefts[q]] += share
                    bars[k + 1, j, rights[q]] += share


@kernel(EXACT)
def outside(first, last, scores, grammar, charts, log_z, grad, gradients):
    """Gradients of Σ grad log Z, for each row: gradients are d_rules, d_lexical, d_root and d_nodes, and come as zeros.

    d_nodes are the posteriors of nodes, times grad. The scores are rules, root, nodes, and the lengths.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: rules, root, nodes and lengths.
        grammar: symbols of the pairs and rules, by number.
        charts: float64 [rows, n, n, symbols].
        log_z: log Z of each row, float64 [batch].
        grad: weight of each row, float64 [batch].
        gradients: by rules, lexical, root and nodes, for each row; come as zeros, filled in.
    """
    rules, root, nodes, lengths = scores
    d_rules, d_lexical, d_root, d_nodes = gradients
    n_pairs, n_symbols = grammar[0].shape[0], root.shape[1]
    pairs, totals, base = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_symbols)
    for b in range(first, last):
        if log_z[b] == NEG_INF:
            continue
        n, chart, bars, shared = lengths[b], charts[b], d_nodes[b], rules[at(b, rules.shape[0])]
        for a in range(n_symbols):
            whole = chart[0, n - 1, a] + root[at(b, root.shape[0]), a] - log_z[b]
            d_root[b, a] = grad[b] * exp(min(whole, 0.0))  # a probability: rounding must not pass 1
            bars[0, n - 1, a] += d_root[b, a]
        for w in range(n - 1, 0, -1):
            for i in range(n - w):
                j = i + w
                here = shared[at(i, shared.shape[0]), at(j, shared.shape[1])]
                base[:] = chart[i, j]
                if nodes.shape[0] > 0:
                    for a in range(n_symbols):
                        base[a] = chart[i, j, a] - max(nodes[b, i, j, a], LOWEST)
                mine = d_rules[b, at(i, d_rules.shape[1]), at(j, d_rules.shape[2])]
                _outside_span(chart, bars, i, j, here, base, grammar, pairs, totals, mine)
        for i in range(n):
            d_lexical[b, i] = bars[i, i, n_symbols - d_lexical.shape[2] :]


@kernel(EXACT)
def _trace(rules, root, n, grammar, best, chart, stack, works, state, nodes):
    """Compute a derivation from the chart, from the root down: at each node a rule and a split, the best or drawn."""
    lefts, rights, pair_of, starts, _ = grammar
    pairs, totals, scores = works
    for a in range(root.shape[0]):
        scores[a] = chart[0, n - 1, a] + root[a]
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, choose(scores, root.shape[0], best, state)
    waiting, done = 1, 0
    while waiting > 0:
        waiting -= 1
        i, j, a = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        nodes[done, 0], nodes[done, 1], nodes[done, 2] = i, j + 1, a
        done += 1
        if i == j or a + 1 >= starts.shape[0] or starts[a] == starts[a + 1]:
            continue  # a word; or no rule, to which only scores that are not finite can lead
        here = rules[at(i, rules.shape[0]), at(j, rules.shape[1])]
        fill_pairs(chart, i, j, grammar, best, pairs, totals)
        for r in range(starts[a], starts[a + 1]):
            scores[r - starts[a]] = pairs[pair_of[r]] + here[r]
        q = pair_of[starts[a] + choose(scores, starts[a + 1] - starts[a], best, state)]
        for k in range(i, j):
            scores[k - i] = chart[i, k, lefts[q]] + chart[k + 1, j, rights[q]]
        k = i + choose(scores, j - i, best, state)
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = k + 1, j, rights[q]
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = i, k, lefts[q]
        waiting += 2


@kernel(EXACT)
def _works(grammar, n_symbols, n):
    n_pairs, most = grammar[0].shape[0], max(n_symbols, n)
    for a in range(grammar[3].shape[0] - 1):
        most = max(most, grammar[3][a + 1] - grammar[3][a])
    return np.empty(n_pairs), np.empty(n_pairs), np.empty(most)


@kernel(EXACT)
def best_derivations(first, last, rules, lexical, root, nodes, lengths, grammar, derivations, possible):
    """Compute the best derivation of each row; among ties the lowest symbols, the first rule, the first split.

    Args:
        first: the first row.
        last: the row behind the last.
        rules: scores of the binary rules, float64 [1 or batch, 1 or n, 1 or n, rules].
        lexical: scores of the symbols above each word, float64 [batch, n, lexical].
        root: scores of the root symbols, float64 [1 or batch, symbols].
        nodes: scores that every node adds, float64 [batch, n, n, symbols]; empty for 0.
        lengths: words of each row, int64 [batch].
        grammar: symbols of the pairs and rules, by number.
        derivations: (start, end, symbol) of each node, int64 [batch, 2n-1, 3], filled in.
        possible: whether a row has a derivation, bool [batch], filled in.
    """
    n_most, n_symbols = lexical.shape[1], root.shape[1]
    chart, works = np.empty((n_most, n_most, n_symbols)), _works(grammar, n_symbols, n_most)
    stack, state = np.empty((2 * n_most, 3), np.int64), np.zeros(1, np.uint64)
    for b in range(first, last):
        n, here, mine = lengths[b], rules[at(b, rules.shape[0])], root[at(b, root.shape[0])]
        own = nodes[b] if nodes.shape[0] > 0 else nodes.reshape((0, 0, 0))
        _fill_row(here, lexical[b], own, n, grammar, True, chart, works[0], works[1])
        possible[b] = _total(chart, mine, n, True, works[2]) > NEG_INF
        if possible[b]:
            _trace(here, mine, n, grammar, True, chart, stack, works, state, derivations[b])


@kernel(EXACT)
def sample_derivations(first, last, rules, root, lengths, grammar, charts, seeds, derivations):
    """Draw exact, independent samples from the charts of `inside`.

    Args:
        first: the first row.
        last: the row behind the last.
        rules: scores of the binary rules, float64 [1 or batch, 1 or n, 1 or n, rules].
        root: scores of the root symbols, float64 [1 or batch, symbols].
        lengths: words of each row, int64 [batch].
        grammar: symbols of the pairs and rules, by number.
        charts: float64 [rows, n, n, symbols].
        seeds: a seed for each sample, int64 [samples, batch].
        derivations: int64 [samples, batch, 2n-1, 3], filled in.
    """
    n_most = charts.shape[1]
    works, state = _works(grammar, root.shape[1], n_most), np.zeros(1, np.uint64)
    stack = np.empty((2 * n_most, 3), np.int64)
    for b in range(first, last):
        here, mine = rules[at(b, rules.shape[0])], root[at(b, root.shape[0])]
        for s in range(seeds.shape[0]):
            state[0] = np.uint64(seeds[s, b])
            _trace(here, mine, lengths[b], grammar, False, charts[b], stack, works, state, derivations[s, b])
