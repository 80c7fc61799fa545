"""CPU kernels of CKY for dense grammars: splits of three or more tokens with one token at an edge.

edges[0, row, j, p P + a] sums the rules a -> p t over the symbols t of token j, edges[1, row, i, p P + a] the rules
a -> t p over those of token i: found once a token, they save the pairs of phrases and lexical symbols in every span.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel

NEG_INF = -np.inf


@kernel(FAST)
def _add_edge(share, phrases, edge, sums):
    """sums_a += share Σ_p phrases_p edge[p P + a]."""
    size = sums.shape[0]
    for p in range(size):
        amount, row = share * phrases[p], edge[p * size : p * size + size]
        for a in range(size):
            sums[a] += amount * row[a]


@kernel(EXACT)
def add_edges(w, edges, chart, scales, lengths, tops, sums):
    """Splits with one token on the right, or on the left, of spans of three or more."""
    n_phrases = sums.shape[2]
    for b in range(sums.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            if tops[b, i] > NEG_INF:
                before = np.exp(scales[w - 1, b, i] + scales[0, b, i + w] - tops[b, i])
                after = np.exp(scales[0, b, i] + scales[w - 1, b, i + 1] - tops[b, i])
                _add_edge(before, chart[w - 1, b, i, :n_phrases], edges[0, b, i + w], sums[b, i])
                _add_edge(after, chart[w - 1, b, i + 1, :n_phrases], edges[1, b, i], sums[b, i])


@kernel(FAST)
def _share_edge(share, by_sum, phrases, edge, bars, by_edge):
    """What `_add_edge` summed, differentiated."""
    size = by_sum.shape[0]
    for p in range(size):
        row, by_row = edge[p * size : p * size + size], by_edge[p * size : p * size + size]
        amount, total = share * phrases[p], 0.0
        for a in range(size):
            total += row[a] * by_sum[a]
        for a in range(size):
            by_row[a] += amount * by_sum[a]
        bars[p] += share * total


@kernel(EXACT)
def push_edges(w, by_sum, edges, chart, scales, lengths, tops, bars, by_edges):
    """Derivatives by the sums of `add_edges` passed on to phrases and edges."""
    n_phrases = by_sum.shape[2]
    for b in range(by_sum.shape[0]):
        for i in range(max(lengths[b] - w, 0)):
            if tops[b, i] > NEG_INF:
                share = np.exp(scales[w - 1, b, i] + scales[0, b, i + w] - tops[b, i])
                phrases, by_phrases = chart[w - 1, b, i, :n_phrases], bars[w - 1, b, i, :n_phrases]
                _share_edge(share, by_sum[b, i], phrases, edges[0, b, i + w], by_phrases, by_edges[0, b, i + w])
                share = np.exp(scales[0, b, i] + scales[w - 1, b, i + 1] - tops[b, i])
                phrases, by_phrases = chart[w - 1, b, i + 1, :n_phrases], bars[w - 1, b, i + 1, :n_phrases]
                _share_edge(share, by_sum[b, i], phrases, edges[1, b, i], by_phrases, by_edges[1, b, i])
