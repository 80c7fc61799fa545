"""CPU kernels of beam search: a step of any system, and the whole search where a chain is tagged."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.frontier_kernels import NOTHING, offer, sort_heap, split, trace_back


@kernel(EXACT)
def choose_rows(scores, added, done, parents, decisions, best):
    """Fill in the best continuations of each row: their hypotheses, decisions (-1 if they are done) and scores.

    Returns how many places the fullest row has filled; the others hold -1 and -inf.

    Args:
        scores: Scores of the hypotheses [batch, beam].
        added: What each decision adds [batch, beam, a].
        done: Whether a hypothesis has finished and competes as it is [batch, beam].
        parents: Output [batch, room].
        decisions: Output [batch, room].
        best: Output [batch, room]: the scores of the continuations.
    """
    n_rows, beam, a = added.shape
    room, fullest = best.shape[1], 0
    heap, numbers = np.empty(room), np.empty(room, np.int64)
    parents[:], decisions[:], best[:] = 0, NOTHING, NEG_INF
    for row in range(n_rows):
        size = 0
        for place in range(beam):
            here = scores[row, place]
            if done[row, place]:
                size = offer(heap, numbers, size, here, place * (a + 1) + a)
            elif here > NEG_INF:
                for d in range(a):
                    score = here + added[row, place, d]
                    if size < room or score > heap[0]:
                        size = offer(heap, numbers, size, score, place * (a + 1) + d)
        sort_heap(heap, numbers, size)
        split(numbers, size, a, parents[row], decisions[row])
        best[row, :size] = heap[:size]
        fullest = max(fullest, size)
    return fullest


@kernel(EXACT)
def chain_beams(emissions, arrivals, end, lengths, decisions, scores):
    """Fill in what `ChainScorer` finds, row by row: decisions [batch, room, n] (-1 behind the end) and their scores.

    Returns how many hypotheses the fullest row has; 0 if a row has none.

    Args:
        emissions: Scores of tags [batch, n, c].
        arrivals: Scores of tags by the last one [c + 1, c]; the last row is for no tag yet.
        end: Scores of last tags [c].
        lengths: Lengths of rows [batch].
        decisions: Output [batch, room, n].
        scores: Output [batch, room].
    """
    n_rows, room, n = decisions.shape
    c, fullest = emissions.shape[2], 0
    parents, tags = np.empty((n, room), np.int64), np.empty((n, room), np.int64)
    totals, best, numbers = np.empty(room), np.empty(room), np.empty(room, np.int64)
    decisions[:], scores[:] = NOTHING, NEG_INF
    for row in range(n_rows):
        totals[0], size = 0.0, 1
        for t in range(lengths[row]):
            n_kept = 0
            for place in range(size):
                last = tags[t - 1, place] if t > 0 else c
                for d in range(c):
                    added = emissions[row, t, d] + arrivals[last, d]
                    if t == lengths[row] - 1:
                        added += end[d]
                    score = totals[place] + added
                    if n_kept < room or score > best[0]:
                        n_kept = offer(best, numbers, n_kept, score, place * (c + 1) + d)
            if n_kept == 0:
                return 0
            sort_heap(best, numbers, n_kept)
            split(numbers, n_kept, c, parents[t], tags[t])
            totals[:n_kept], size = best[:n_kept], n_kept
        scores[row, :size] = totals[:size]
        for rank in range(size):
            trace_back(parents, tags, lengths[row], rank, decisions[row, rank])
        fullest = max(fullest, size)
    return fullest
