"""CPU kernels of CKY for dense grammars, in exp space: what lies between the matrix products of `dense.py`.

A chart is [width, row, i, symbol]: weights of tokens i..i+width, divided by e^scale of their span, so that the highest
is 1.
A matrix of pairs is [row, i, pair] for the spans of one width: pairs of symbols lo..hi, the lexical ones above two
tokens, else the phrases.

Splits of three or more tokens with one token at an edge take `edges` in place of pairs: edges[0, row, j, p P + a] sums
the rules a -> p t over the symbols t of token j, edges[1, row, i, p P + a] the rules a -> t p over those of token i.
Found once a token, they save the pairs of phrases and lexical symbols in every span.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import add_products, matrix_times, share_products, shifted_exp

SMALLEST = 1e-140  # its square is still a normal float64: products of two weights never vanish


@kernel(FAST)
def _exp_scaled(scores, out):
    """Return out = exp(scores - highest); the highest, and whether a possible one all but vanished."""
    top, n_lost = shifted_exp(scores, out), 0
    for a in range(scores.shape[0]):
        n_lost += (out[a] < SMALLEST) & (scores[a] > NEG_INF)
    return top, n_lost > 0


@kernel(EXACT)
def exp_rules(scores, places, weights):
    """Return weights[b, places] = exp(scores[b] - highest); the highest of each row, and whether one was lost.

    Args:
        scores: scores of the rules, float64 [rows, rules].
        places: place of each rule in `weights`, int64 [rules].
        weights: float64 [rows, parents, pairs], filled in.
    """
    tops, lost, work = np.empty(scores.shape[0]), False, np.empty(scores.shape[1])
    for b in range(scores.shape[0]):
        tops[b], one = _exp_scaled(scores[b], work)
        lost = lost or one
        for r in range(places.shape[0]):
            weights[b, places[r]] = work[r]
    return tops, lost


@kernel(EXACT)
def gather_rules(by_weights, weights, symbols, n_phrases, first_lexical, by_rules):
    """Compute by_rules[b, r] = the derivative by the weight of rule r, times the weight.

    A rule has a share for what it is above: two phrases, two tokens, or one of each, on either side.

    Args:
        by_weights: derivatives by the weights of pairs of phrases, of tokens, and of one of each.
        weights: weights of the rules, float64 [batch, parents, symbols²].
        symbols: parent, left and right symbol of each rule, int64 [rules].
        n_phrases: number of symbols that stand above others.
        first_lexical: the first symbol that stands above words.
        by_rules: float64 [batch, rules], filled in.
    """
    by_phrases, by_tokens, by_edges = by_weights
    parents, lefts, rights = symbols
    n_lexical = weights.shape[2] - first_lexical
    for b in range(by_rules.shape[0]):
        for r in range(by_rules.shape[1]):
            a, left, right, total = parents[r], lefts[r], rights[r], 0.0
            if left < n_phrases and right < n_phrases:
                total += by_phrases[b, a, left * n_phrases + right]
            if left >= first_lexical and right >= first_lexical:
                total += by_tokens[b, a, (left - first_lexical) * n_lexical + right - first_lexical]
            if left < n_phrases and right >= first_lexical:
                total += by_edges[0, b, left * n_phrases + a, right - first_lexical]
            if left >= first_lexical and right < n_phrases:
                total += by_edges[1, b, right * n_phrases + a, left - first_lexical]
            by_rules[b, r] = total * weights[b if weights.shape[0] > 1 else 0, a, left, right]


@kernel(EXACT)
def start(lexical, nodes, lengths, chart, scales):
    """Return weights of single tokens; True if one was lost.

    Args:
        lexical: scores of the symbols above each word, float64 [batch, n, lexical].
        nodes: scores that every node adds, float64 [batch, n, n, symbols]; empty for 0.
        lengths: words of each row, int64 [batch].
        chart: float64 [n, batch, n, symbols]; the tokens are filled in.
        scales: float64 [n, batch, n]; those of tokens are filled in.
    """
    batch, n, n_lexical = lexical.shape
    first, lost = chart.shape[3] - n_lexical, False
    scores = np.empty(n_lexical)
    for b in range(batch):
        for i in range(n):
            chart[0, b, i] = 0.0
            if i < lengths[b]:
                scores[:] = lexical[b, i]
                if nodes.shape[0] > 0:
                    scores += nodes[b, i, i, first:]
                scales[0, b, i], one = _exp_scaled(scores, chart[0, b, i, first:])
                lost = lost or one
    return lost


@kernel(FAST)
def _add_outer(share, left, right, block):
    """Add: block[p, r] += share left_p right_r."""
    for p in range(block.shape[0]):
        amount = share * left[p]
        for r in range(block.shape[1]):
            block[p, r] += amount * right[r]


@kernel(EXACT)
def widen(phrases, wide):
    """wide[0, p P + r] = phrases_p and wide[1, p P + r] = phrases_r: their product is the outer product, in one run."""
    size = phrases.shape[0]
    for p in range(size):
        left, right = wide[0, p * size : p * size + size], wide[1, p * size : p * size + size]
        for r in range(size):
            left[r], right[r] = phrases[p], phrases[r]


@kernel(EXACT)
def pair_weights(w, chart, widened, scales, lengths, below, tops, pairs):
    """Compute pairs[b, i, (l, r)] = Σ over splits of left times right weight, relative to e^tops; `math.md`, (8).

    Args:
        w: the width of the spans, less 1.
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        widened: phrases of both sides repeated for products of pairs; empty if they are not.
        scales: logarithm of what each span was divided by, float64 [n, batch, n].
        lengths: words of each row, int64 [batch].
        below: the symbols that pairs of tokens have, from and to.
        tops: logarithm of what the pairs of each span were divided by, float64 [batch, n].
        pairs: float64 [batch, n, pairs], filled in.
    """
    pairs[:] = 0.0
    (lo, hi), (first, stop) = below, (1, w - 1) if w > 1 else (0, 1)  # wider spans have tokens at edges apart
    for b in range(pairs.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            tops[b, i] = NEG_INF
            for s in range(w):
                tops[b, i] = max(tops[b, i], scales[s, b, i] + scales[w - 1 - s, b, i + s + 1])
            for s in range(first, stop if tops[b, i] > NEG_INF else 0):
                share = np.exp(scales[s, b, i] + scales[w - 1 - s, b, i + s + 1] - tops[b, i])
                if widened.shape[0] > 0 and w > 1:
                    one, other = widened[s, b, i, 0], widened[w - 1 - s, b, i + s + 1, 1]
                    add_products(pairs[b, i], share, one, other, pairs.shape[2])
                else:
                    left, right = chart[s, b, i, lo:hi], chart[w - 1 - s, b, i + s + 1, lo:hi]
                    _add_outer(share, left, right, pairs[b, i].reshape((hi - lo, hi - lo)))


@kernel(EXACT)
def normalise(w, sums, tops, shifts, nodes, lengths, chart, widened, scales, inverses):
    """Scale the phrases of one width; True if a weight (almost) vanished: only log space can tell if it matters.

    Args:
        w: the width of the spans, less 1.
        sums: sums over the rules of each phrase, float64 [batch, n, phrases].
        tops: logarithm of what the pairs of each span were divided by, float64 [batch, n].
        shifts: what the rules were shifted by, float64 [1 or batch].
        nodes: scores that every node adds, float64 [batch, n, n, symbols]; empty for 0.
        lengths: words of each row, int64 [batch].
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        widened: phrases of both sides repeated for products of pairs; empty if they are not.
        scales: logarithm of what each span was divided by, float64 [n, batch, n].
        inverses: what sums were multiplied by, float64 [n, batch, n].
    """
    batch, _, n_phrases = sums.shape
    lost = False
    factors = np.ones(n_phrases)
    for b in range(batch):
        shift = shifts[b if shifts.shape[0] > 1 else 0]
        for i in range(max(lengths[b] - w, 0)):
            top_node = 0.0
            if nodes.shape[0] > 0:
                top_node, one = _exp_scaled(nodes[b, i, i + w, :n_phrases], factors)
                lost = lost or one
            highest = 0.0
            for a in range(n_phrases):
                lost = lost or sums[b, i, a] < SMALLEST  # also for an exact 0, which only log space can tell apart
                highest = max(highest, sums[b, i, a] * factors[a])
            chart[w, b, i] = 0.0
            if highest == 0.0:
                scales[w, b, i] = NEG_INF
                inverses[w, b, i] = 0.0
                if widened.shape[0] > 0:
                    widened[w, b, i] = 0.0
                continue
            scales[w, b, i] = tops[b, i] + np.log(highest) + shift + top_node
            inverses[w, b, i] = 1.0 / highest
            for a in range(n_phrases):
                chart[w, b, i, a] = sums[b, i, a] * factors[a] / highest
                lost = lost or (factors[a] > 0.0 and chart[w, b, i, a] < SMALLEST)
            if widened.shape[0] > 0:
                widen(chart[w, b, i, :n_phrases], widened[w, b, i])
    return lost


@kernel(EXACT)
def before_rules(w, bars, by_widened, nodes, inverses, lengths, by_sum):
    """Compute derivatives by the sums that `normalise` took.

    Args:
        w: the width of the spans, less 1.
        bars: derivatives by the chart, float64 [n, batch, n, symbols].
        by_widened: derivatives by `widened`.
        nodes: scores that every node adds, float64 [batch, n, n, symbols]; empty for 0.
        inverses: what sums were multiplied by, float64 [n, batch, n].
        lengths: words of each row, int64 [batch].
        by_sum: float64 [batch, n, phrases], filled in.
    """
    n_phrases = by_sum.shape[2]
    factors = np.ones(n_phrases)
    by_sum[:] = 0.0
    for b in range(by_sum.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            if nodes.shape[0] > 0:
                _exp_scaled(nodes[b, i, i + w, :n_phrases], factors)
            for p in range(n_phrases if by_widened.shape[0] > 0 else 0):  # what `widen` copied, differentiated
                for r in range(n_phrases):
                    bars[w, b, i, p] += by_widened[w, b, i, 0, p * n_phrases + r]
                    bars[w, b, i, r] += by_widened[w, b, i, 1, p * n_phrases + r]
            for a in range(n_phrases):
                by_sum[b, i, a] = bars[w, b, i, a] * factors[a] * inverses[w, b, i]


@kernel(FAST)
def _share_outer(share, block, left, right, left_bars, right_bars):
    """Pass the derivatives by the sums of `_add_outer` on to both factors."""
    for p in range(block.shape[0]):
        amount, total = share * left[p], 0.0
        for r in range(block.shape[1]):
            total += block[p, r] * right[r]
            right_bars[r] += amount * block[p, r]
        left_bars[p] += share * total


@kernel(EXACT)
def push_pairs(w, by_pair, chart, widened, scales, lengths, below, tops, bars, by_widened):
    """Pass derivatives by pairs on to the weights of narrower spans; `math.md`, (9).

    Args:
        w: the width of the spans, less 1.
        by_pair: derivatives by the pairs, float64 [batch, n, pairs].
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        widened: phrases of both sides repeated for products of pairs; empty if they are not.
        scales: logarithm of what each span was divided by, float64 [n, batch, n].
        lengths: words of each row, int64 [batch].
        below: the symbols that pairs of tokens have, from and to.
        tops: logarithm of what the pairs of each span were divided by, float64 [batch, n].
        bars: derivatives by the chart, float64 [n, batch, n, symbols], added to.
        by_widened: derivatives by `widened`, added to.
    """
    (lo, hi), (first, stop) = below, (1, w - 1) if w > 1 else (0, 1)
    size = hi - lo
    for b in range(by_pair.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            for s in range(first, stop if tops[b, i] > NEG_INF else 0):
                share = np.exp(scales[s, b, i] + scales[w - 1 - s, b, i + s + 1] - tops[b, i])
                if widened.shape[0] > 0 and w > 1:
                    one, other = widened[s, b, i, 0], widened[w - 1 - s, b, i + s + 1, 1]
                    by_one, by_other = by_widened[s, b, i, 0], by_widened[w - 1 - s, b, i + s + 1, 1]
                    share_products(share, by_pair[b, i], one, other, by_one, by_other, by_pair.shape[2])
                else:
                    left, right = chart[s, b, i, lo:hi], chart[w - 1 - s, b, i + s + 1, lo:hi]
                    left_bars, right_bars = bars[s, b, i, lo:hi], bars[w - 1 - s, b, i + s + 1, lo:hi]
                    _share_outer(share, by_pair[b, i].reshape((size, size)), left, right, left_bars, right_bars)


@kernel(FAST)
def add_edges(w, edges, chart, scales, lengths, tops, sums):
    """Add splits with one token on the right, or on the left, of spans of three or more.

    Args:
        w: the width of the spans, less 1.
        edges: sums over rules with one token, by side, float64 [2, batch, n, phrases²].
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        scales: logarithm of what each span was divided by, float64 [n, batch, n].
        lengths: words of each row, int64 [batch].
        tops: logarithm of what the pairs of each span were divided by, float64 [batch, n].
        sums: float64 [batch, n, phrases], added to.
    """
    size = sums.shape[2]
    for b in range(sums.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            for side in range(2 if tops[b, i] > NEG_INF else 0):
                token, at = (i, i + 1) if side else (i + w, i)
                share = np.exp(scales[w - 1, b, at] + scales[0, b, token] - tops[b, i])
                phrases, edge, total = chart[w - 1, b, at], edges[side, b, token], sums[b, i]
                for p in range(size):
                    amount, row = share * phrases[p], edge[p * size : p * size + size]
                    for a in range(size):
                        total[a] += amount * row[a]


@kernel(FAST)
def push_edges(w, by_sum, edges, chart, scales, lengths, tops, bars, by_edges):
    """Pass the derivatives by the sums of `add_edges` on to phrases and edges.

    Args:
        w: the width of the spans, less 1.
        by_sum: derivatives by the sums, float64 [batch, n, phrases].
        edges: sums over rules with one token, by side, float64 [2, batch, n, phrases²].
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        scales: logarithm of what each span was divided by, float64 [n, batch, n].
        lengths: words of each row, int64 [batch].
        tops: logarithm of what the pairs of each span were divided by, float64 [batch, n].
        bars: derivatives by the chart, float64 [n, batch, n, symbols], added to.
        by_edges: derivatives by them, float64 [2, batch, n, phrases²], added to.
    """
    size = by_sum.shape[2]
    for b in range(by_sum.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            for side in range(2 if tops[b, i] > NEG_INF else 0):
                token, at = (i, i + 1) if side else (i + w, i)
                share = np.exp(scales[w - 1, b, at] + scales[0, b, token] - tops[b, i])
                phrases, by_phrases, mine = chart[w - 1, b, at], bars[w - 1, b, at], by_sum[b, i]
                edge, by_edge = edges[side, b, token], by_edges[side, b, token]
                for p in range(size):
                    row, by_row = edge[p * size : p * size + size], by_edge[p * size : p * size + size]
                    amount, total = share * phrases[p], 0.0
                    for a in range(size):
                        total += row[a] * mine[a]
                    for a in range(size):
                        by_row[a] += amount * mine[a]
                    by_phrases[p] += share * total


@kernel(EXACT)
def product(left, right, out):
    """Add: out[b] += left[b] @ right[b]; a right side of one matrix serves all rows.

    Args:
        left: [batch, i, k].
        right: [1 or batch, k, q].
        out: [batch, i, q], added to.
    """
    for b in range(left.shape[0]):
        mine = right[b if right.shape[0] > 1 else 0]
        for i in range(left.shape[1]):
            for k in range(left.shape[2]):
                if left[b, i, k] != 0.0:
                    for q in range(out.shape[2]):
                        out[b, i, q] += left[b, i, k] * mine[k, q]


@kernel(FAST)
def dots(left, right, out):
    """Compute out[b] = left[b] @ right[b]ᵀ; a right side of one matrix serves all rows.

    Args:
        left: [batch, i, k].
        right: [1 or batch, a, k].
        out: [batch, i, a], filled in.
    """
    for b in range(left.shape[0]):
        mine = right[b if right.shape[0] > 1 else 0]
        for i in range(left.shape[1]):
            matrix_times(mine, left[b, i], out[b, i])


@kernel(EXACT)
def collect(chart, bars, lengths, d_nodes, d_lexical, d_root):
    """Posteriors of nodes: each weight times the derivative by it; those of tokens and whole rows among them.

    Args:
        chart: weights of nodes by width, float64 [n, batch, n, symbols].
        bars: derivatives by the chart, float64 [n, batch, n, symbols].
        lengths: words of each row, int64 [batch].
        d_nodes: float64 [batch, n, n, symbols], filled in.
        d_lexical: float64 [batch, n, lexical], filled in.
        d_root: float64 [batch, symbols], filled in.
    """
    batch, n_symbols = chart.shape[1], chart.shape[3]
    first = n_symbols - d_lexical.shape[2]
    for b in range(batch):
        for w in range(lengths[b]):
            for i in range(lengths[b] - w):
                for a in range(n_symbols):
                    d_nodes[b, i, i + w, a] = chart[w, b, i, a] * bars[w, b, i, a]
        for i in range(lengths[b]):
            d_lexical[b, i] = d_nodes[b, i, i, first:]
        d_root[b] = d_nodes[b, 0, lengths[b] - 1]
