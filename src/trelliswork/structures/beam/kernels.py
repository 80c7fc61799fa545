"""CPU kernels of beam search: a step of any system, and the whole search where a chain is tagged."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_heap import offer, sort_heap


@kernel(EXACT)
def choose_rows(scores, added, done, parents, decisions, best):
    """The best continuations of each row: their hypotheses, what they decide (-1: nothing, as done) and their scores.

    Returns how many places the fullest row has filled; the others hold -1 and -inf.
    """
    n_rows, beam, a = added.shape
    codes, fullest = np.empty(best.shape[1], np.int64), 0
    for row in range(n_rows):
        size = 0
        for place in range(beam):
            here = scores[row, place]
            if done[row, place]:
                size = offer(best[row], codes, size, here, place * (a + 1) + a)
            elif here > NEG_INF:
                for d in range(a):
                    size = offer(best[row], codes, size, here + added[row, place, d], place * (a + 1) + d)
        sort_heap(best[row], codes, size)
        for rank in range(len(codes)):
            parents[row, rank], decisions[row, rank] = 0, -1
            if rank >= size:
                best[row, rank] = NEG_INF
                continue
            parents[row, rank] = codes[rank] // (a + 1)
            if codes[rank] % (a + 1) < a:
                decisions[row, rank] = codes[rank] % (a + 1)
        if size > fullest:
            fullest = size
    return fullest


@kernel(EXACT)
def chain_beams(emissions, arrivals, end, lengths, decisions, scores):
    """The beam search of `ChainScorer`, row by row: decisions [batch, beam, n] (-1 behind the end) and scores.

    The last row of `arrivals` is for no tag yet. Returns how many hypotheses the fullest row has; 0 if a row has none.
    """
    n_rows, room, n = decisions.shape
    c, fullest = emissions.shape[2], 0
    parents, tags = np.empty((n, room), np.int64), np.empty((n, room), np.int64)
    totals, best, codes = np.empty(room), np.empty(room), np.empty(room, np.int64)
    for row in range(n_rows):
        totals[0], size = 0.0, 1
        for t in range(lengths[row]):
            found = 0
            for place in range(size):
                last = tags[t - 1, place] if t > 0 else c
                for d in range(c):
                    added = emissions[row, t, d] + arrivals[last, d]
                    if t == lengths[row] - 1:
                        added += end[d]
                    found = offer(best, codes, found, totals[place] + added, place * c + d)
            if found == 0:
                return 0
            sort_heap(best, codes, found)
            size = found
            for rank in range(size):
                totals[rank], parents[t, rank], tags[t, rank] = best[rank], codes[rank] // c, codes[rank] % c
        for rank in range(room):
            scores[row, rank], place = totals[rank] if rank < size else NEG_INF, rank
            for t in range(n - 1, -1, -1):
                decisions[row, rank, t] = -1
                if rank < size and t < lengths[row]:
                    decisions[row, rank, t], place = tags[t, place], parents[t, place]
        if size > fullest:
            fullest = size
    return fullest
