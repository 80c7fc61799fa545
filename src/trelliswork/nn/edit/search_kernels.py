"""One level of the search for strings: the mass of each prefix, of its end, and of the prefixes one symbol longer.

A hypothesis h is a prefix of y with the column α(i, j) of its lattice: log p(the prefix is written when i symbols are
read). `arriving` [h, i] is the part of it that comes from writing the last symbol; deletions move mass within a column.
Cells of h are the rows of `outputs` from offsets[h] on; see `kernels` for the other arrays.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.nn.edit.kernels import (
    COPY,
    DELETE,
    INSERT,
    N_OPERATIONS,
    SUBSTITUTE,
    choose_operations,
    log_add,
    normalise,
)
from trelliswork.runtime.arrays import INF, NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import insert
from trelliswork.structures.frontier_kernels import offer, prune, split


@kernel(EXACT)
def _join(x, y, best):
    """Return x ⊕ y: the log of the sum of two probabilities, or the larger one if `best`."""
    return max(x, y) if best else log_add(x, y)


@kernel(EXACT)
def columns(first, last, outputs, offsets, lengths, copies, best, arriving, ends, masses):
    """Take one level of prefixes: fill the mass of each prefix as a whole string, and of each prefix one symbol longer.

    Args:
        first: The first hypothesis.
        last: The one behind the last.
        outputs: Scores of operations and symbols, float32 [cells, operations + v]; they become probabilities.
        offsets: Where the cells of each hypothesis begin, int64 [hypotheses].
        lengths: Length of x, int64 [hypotheses].
        copies: The symbol that copying x_i writes, -1 if none, int64 [hypotheses, n].
        best: Whether the most probable path counts instead of the sum over paths.
        arriving: Log mass that arrives in each cell, float64 [hypotheses, n+1]; α takes its place.
        ends: Log p(the prefix is the string), float64 [hypotheses], filled in.
        masses: Log p(the prefix and y are written), float64 [hypotheses, symbols], filled in.
    """
    for h in range(first, last):
        n, alpha = lengths[h], arriving[h]
        for i in range(n + 1):
            row = outputs[offsets[h] + i]
            choose_operations(row, i == n, i < n and copies[h, i] >= 0)
            normalise(row[N_OPERATIONS:])
            if i > 0:
                deleted = outputs[offsets[h] + i - 1, DELETE]
                if deleted > 0.0:
                    alpha[i] = _join(alpha[i], alpha[i - 1] + math.log(deleted), best)
        top = alpha[: n + 1].max()  # masses are summed as probabilities relative to the highest α
        ended = outputs[offsets[h] + n, DELETE]
        ends[h] = alpha[n] + math.log(ended) if ended > 0.0 else NEG_INF
        masses[h] = 0.0
        for i in range(n + 1):
            row, share = outputs[offsets[h] + i], math.exp(alpha[i] - top)
            if best:
                _highest(share * max(row[INSERT], row[SUBSTITUTE]), row[N_OPERATIONS:], masses[h])
                if i < n and copies[h, i] >= 0:
                    masses[h, copies[h, i]] = max(masses[h, copies[h, i]], share * row[COPY])
            else:
                _add(share * (row[INSERT] + row[SUBSTITUTE]), row[N_OPERATIONS:], masses[h])
                if i < n and copies[h, i] >= 0:
                    masses[h, copies[h, i]] += share * row[COPY]
        for y in range(masses.shape[1]):
            masses[h, y] = top + math.log(masses[h, y]) if masses[h, y] > 0.0 else NEG_INF


@kernel(FAST)
def _add(share, row, to):
    for y in range(row.shape[0]):
        to[y] += share * row[y]


@kernel(FAST)
def _highest(share, row, to):
    for y in range(row.shape[0]):
        to[y] = max(to[y], share * row[y])


@kernel(EXACT)
def arrive(first, last, outputs, cells, best, alpha, parents, symbols, arriving):
    """Fill the mass that arrives in the column of each new hypothesis, from the α of its parent and its last symbol.

    Args:
        first: The first new hypothesis.
        last: The one behind the last.
        outputs: Probabilities in the cells of the parents, float32 [cells, operations + v].
        cells: Offsets, lengths and copies of the parents, as `columns` takes them.
        best: Whether the most probable path counts instead of the sum over paths.
        alpha: Log mass of each cell of the parents, float64 [parents, n+1].
        parents: Parent of each new hypothesis, int64 [new].
        symbols: Its last symbol, int64 [new].
        arriving: Float64 [new, n+1], filled in.
    """
    offsets, lengths, copies = cells
    v = outputs.shape[1] - N_OPERATIONS
    for new in range(first, last):
        h, y = parents[new], symbols[new]
        arriving[new] = NEG_INF
        for i in range(lengths[h] + 1):
            row = outputs[offsets[h] + i]
            symbol = row[N_OPERATIONS + y] if y < v else 0.0
            copied = row[COPY] if i < lengths[h] and copies[h, i] == y else 0.0
            stays, goes = row[INSERT] * symbol, row[SUBSTITUTE] * symbol
            goes = max(goes, copied) if best else goes + copied
            if stays > 0.0:
                arriving[new, i] = _join(arriving[new, i], alpha[h, i] + math.log(stays), best)
            if goes > 0.0:
                arriving[new, i + 1] = alpha[h, i] + math.log(goes)


@kernel(EXACT)
def survivors(masses, starts, bounds, width, parents, symbols, kept, lost):
    """Choose the heaviest longer prefixes of each row that can still beat its bound; return their number.

    Args:
        masses: Log mass of each longer prefix, float64 [hypotheses, symbols].
        starts: The first hypothesis of each row, int64 [rows + 1].
        bounds: Log mass that a prefix must exceed, float64 [rows].
        width: How many prefixes a row may have.
        parents: Parent of each chosen prefix, int64 [room], filled in.
        symbols: Its last symbol, int64 [room], filled in.
        kept: Its log mass, float64 [room], filled in.
        lost: Float64 [rows], raised to the heaviest prefix that is dropped.
    """
    count, n_symbols = 0, masses.shape[1]
    heaviest, numbers = np.empty(width + 1), np.empty(width + 1, np.int64)
    for r in range(len(starts) - 1):
        size = 0
        for h in range(starts[r], starts[r + 1]):
            for y in range(n_symbols):
                if masses[h, y] > bounds[r] and (size <= width or masses[h, y] > heaviest[0]):
                    size = offer(heaviest, numbers, size, masses[h, y], h * (n_symbols + 1) + y)
        size, dropped = prune(heaviest, numbers, size, width, INF)
        lost[r] = max(lost[r], dropped)
        split(numbers, size, n_symbols, parents[count:], symbols[count:])
        kept[count : count + size] = heaviest[:size]
        count += size
    return count


@kernel(EXACT)
def finish(ends, starts, first_number, best, numbers):
    """Insert the ends of hypotheses, numbered from `first_number`, into the k best of each row.

    Args:
        ends: Log p of each hypothesis as a whole string, float64 [hypotheses].
        starts: The first hypothesis of each row, int64 [rows + 1].
        first_number: Number of the first hypothesis.
        best: The k best of each row, float64 [rows, k], changed in place.
        numbers: Numbers of these hypotheses, int64 [rows, k], changed in place.
    """
    k = best.shape[1]
    for r in range(len(starts) - 1):
        for h in range(starts[r], starts[r + 1]):
            if ends[h] > best[r, k - 1]:
                insert(ends[h], first_number + h, best[r], numbers[r])
