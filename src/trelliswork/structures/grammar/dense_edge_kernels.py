"""CPU kernels of CKY for dense grammars: splits of three or more tokens with one token at an edge.

edges[0, row, j, p P + a] sums the rules a -> p t over the symbols t of token j, edges[1, row, i, p P + a] the rules
a -> t p over those of token i: found once a token, they save the pairs of phrases and lexical symbols in every span.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import FAST, kernel


@kernel(FAST)
def add_edges(w, edges, chart, scales, lengths, tops, sums):
    """Splits with one token on the right, or on the left, of spans of three or more."""
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
    """Derivatives by the sums of `add_edges` passed on to phrases and edges."""
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
