"""Scores of edit steps from the outputs of a network in each cell, and their gradient, in one pass over the cells.

The cells of a batch are packed. Arrays of the kernels:

    offsets [batch]             index of cell (0, 0) of each row; cell (i, j), 0 <= i <= n, 0 <= j <= m, follows i by i
    lengths, target_lengths     n and m of each row, [batch]
    copies [batch, n]           the symbol that copying x_i writes, -1 if none
    targets [batch, m]          the symbols of y; those from v on are no outputs of the network and can only be copied
    hidden [cells, d]           tanh(left(i) + right(j))
    outputs [cells, 4 + v]      scores of DELETE, INSERT, SUBSTITUTE and COPY, then of each symbol
    steps [batch, n+1, m+1, 3]  log p of the step into each cell
    ends [batch]                log p of the end

A prefix `by_` marks the gradient of the loss by an array. Kernels work on rows first..last.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import higher

N_OPERATIONS = 4
DELETE, INSERT, SUBSTITUTE, COPY = 0, 1, 2, 3
TINY = 1e-25  # smaller gradients are set to 0: products of denormal numbers are many times slower
BY_SUBSTITUTION, BY_DELETION, BY_INSERTION = 0, 1, 2  # the steps of `structures.edit`


@kernel(FAST)
def meet(first, last, left, right, offsets, lengths, target_lengths, hidden):
    """Fill hidden(i, j) = tanh(left(i) + right(j)) for rows first..last-1.

    Args:
        first: The first row.
        last: The row behind the last.
        left: Vectors of what is read, float32 [batch, n+1, d].
        right: Vectors of what is written, float32 [batch, m+1, d].
        offsets: Where the cells of each row begin, int64 [batch].
        lengths: Length of x of each row, int64 [batch].
        target_lengths: Length of y of each row, int64 [batch].
        hidden: Float32 [cells, d], filled in.
    """
    one = hidden.dtype.type(1.0)
    for b in range(first, last):
        cell = offsets[b]
        for i in range(lengths[b] + 1):
            ahead = left[b, i]
            for j in range(target_lengths[b] + 1):
                behind, output = right[b, j], hidden[cell]
                for k in range(output.shape[0]):
                    z = ahead[k] + behind[k]
                    shrunk = exp_of(-abs(z + z))  # tanh |z| = (1 - e^-2|z|) / (1 + e^-2|z|) cannot overflow
                    size = (one - shrunk) / (one + shrunk)
                    output[k] = size if z > 0 else -size
                cell += 1


@kernel(FAST)
def part(first, last, hidden, by_hidden, offsets, lengths, target_lengths, by_left, by_right):
    """Add the gradient of `meet` for rows first..last-1.

    Args:
        first: The first row.
        last: The row behind the last.
        hidden: What `meet` has filled in, float32 [cells, d].
        by_hidden: Gradient by it, float32 [cells, d].
        offsets: Where the cells of each row begin, int64 [batch].
        lengths: Length of x of each row, int64 [batch].
        target_lengths: Length of y of each row, int64 [batch].
        by_left: Float32 [batch, n+1, d], added to.
        by_right: Float32 [batch, m+1, d], added to.
    """
    one = hidden.dtype.type(1.0)
    for b in range(first, last):
        cell = offsets[b]
        for i in range(lengths[b] + 1):
            to_left = by_left[b, i]
            for j in range(target_lengths[b] + 1):
                to_right, output, grad = by_right[b, j], hidden[cell], by_hidden[cell]
                for k in range(output.shape[0]):
                    moved = grad[k] * (one - output[k] * output[k])
                    to_left[k] += moved
                    to_right[k] += moved
                cell += 1


@kernel(FAST)
def normalise(row):
    """Replace a row of scores by its softmax, and return log Σ exp of the scores."""
    top = row[0]
    for k in range(1, row.shape[0]):
        top = higher(top, row[k])
    total = row.dtype.type(0.0)
    for k in range(row.shape[0]):
        row[k] = exp_of(row[k] - top)
        total += row[k]
    share = row.dtype.type(1.0) / total
    for k in range(row.shape[0]):
        row[k] *= share
    return top + math.log(total)


@kernel(EXACT)
def choose_operations(row, at_end, copies):
    """Replace the scores of the operations by probabilities; at the end of x only DELETE and INSERT are possible.

    Args:
        row: Outputs of one cell, float32; its first entries are those of the operations, changed in place.
        at_end: Whether all of x has been read.
        copies: Whether the next symbol of x can be copied.
    """
    top = max(row[DELETE], row[INSERT])
    if not at_end:
        top = max(top, row[SUBSTITUTE])
        if copies:
            top = max(top, row[COPY])
    total = 0.0
    for k in range(N_OPERATIONS):
        allowed = k <= INSERT or (not at_end and (k == SUBSTITUTE or copies))
        row[k] = math.exp(row[k] - top) if allowed else 0.0
        total += row[k]
    for k in range(N_OPERATIONS):
        row[k] /= total


@kernel(EXACT)
def _log(x):
    return math.log(x) if x > 0.0 else NEG_INF


@kernel(EXACT)
def log_add(x, y):
    """Return log(e^x + e^y)."""
    if x < y:
        x, y = y, x
    return x if y == NEG_INF else x + math.log1p(math.exp(y - x))


@kernel(EXACT)
def score(first, last, outputs, offsets, lengths, target_lengths, copies, targets, steps, ends):
    """Compute the scores of the steps of edit scripts from the outputs of a network, for rows first..last-1.

    Args:
        first: The first row.
        last: The row behind the last.
        outputs: Scores of operations and symbols in each cell, float32 [cells, operations + v]; they become
            probabilities, of the symbols only where one can be written.
        offsets: Where the cells of each row begin, int64 [batch].
        lengths: Length of x of each row, int64 [batch].
        target_lengths: Length of y of each row, int64 [batch].
        copies: The symbol that copying x_i writes, -1 if none, int64 [batch, n].
        targets: Symbols of y, int64 [batch, m].
        steps: Log p of the step *into* each cell, as in `structures.edit`, float64 [batch, n+1, m+1, 3], filled in.
        ends: Log p of the end, float64 [batch], filled in.
    """
    v = outputs.shape[1] - N_OPERATIONS
    for b in range(first, last):
        cell, n, m = offsets[b], lengths[b], target_lengths[b]
        for i in range(n + 1):
            copied = copies[b, i] if i < n else -1
            for j in range(m + 1):
                row = outputs[cell]
                choose_operations(row, i == n, copied >= 0)
                if i < n:
                    steps[b, i + 1, j, BY_DELETION] = _log(row[DELETE])
                elif j == m:
                    ends[b] = _log(row[DELETE])
                if j < m:
                    y = targets[b, j]
                    log_symbol = NEG_INF
                    if 0 <= y < v:
                        log_symbol = row[N_OPERATIONS + y]
                        log_symbol -= normalise(row[N_OPERATIONS:])
                    steps[b, i, j + 1, BY_INSERTION] = _log(row[INSERT]) + log_symbol
                    if i < n:
                        copying = _log(row[COPY]) if copied == y else NEG_INF
                        written = _log(row[SUBSTITUTE]) + log_symbol
                        steps[b, i + 1, j + 1, BY_SUBSTITUTION] = log_add(written, copying)
                cell += 1


@kernel(EXACT)
def unscore(first, last, outputs, arrays, steps, by_steps, by_ends, by_outputs):
    """Compute the gradient of `score`, from the probabilities that it has left in `outputs`.

    Args:
        first: The first row.
        last: The row behind the last.
        outputs: Probabilities, float32 [cells, operations + v].
        arrays: Offsets, lengths, target lengths, copies and targets, as `score` takes them.
        steps: What `score` has filled in, float64 [batch, n+1, m+1, 3].
        by_steps: Gradient by the steps, float64 of the same shape.
        by_ends: Gradient by the ends, float64 [batch].
        by_outputs: Gradient by the scores, float32 [cells, operations + v], filled in.
    """
    offsets, lengths, target_lengths, copies, targets = arrays
    v = outputs.shape[1] - N_OPERATIONS
    grad = np.empty(N_OPERATIONS)
    for b in range(first, last):
        cell, n, m = offsets[b], lengths[b], target_lengths[b]
        for i in range(n + 1):
            for j in range(m + 1):
                row, by_row, y = outputs[cell], by_outputs[cell], targets[b, j] if j < m else -1
                grad[:] = 0.0
                if i < n:
                    grad[DELETE] = by_steps[b, i + 1, j, BY_DELETION]
                elif j == m:
                    grad[DELETE] = by_ends[b]
                if j < m:
                    grad[INSERT] = by_steps[b, i, j + 1, BY_INSERTION]
                if i < n and j < m:
                    moved = by_steps[b, i + 1, j + 1, BY_SUBSTITUTION]
                    # Writing y for x_i is a substitution or a copy: its gradient is split by their shares.
                    if copies[b, i] == y and moved != 0.0:
                        grad[COPY] = moved * math.exp(_log(row[COPY]) - steps[b, i + 1, j + 1, BY_SUBSTITUTION])
                    grad[SUBSTITUTE] = moved - grad[COPY]
                symbol = grad[INSERT] + grad[SUBSTITUTE]
                total = grad.sum()
                for k in range(N_OPERATIONS):
                    moved = grad[k] - row[k] * total
                    by_row[k] = moved if abs(moved) > TINY else 0.0
                chosen = y if 0 <= y < v else -1
                _unpick(row[N_OPERATIONS:], chosen, row.dtype.type(symbol), by_row[N_OPERATIONS:])
                cell += 1


@kernel(FAST)
def _unpick(row, chosen, grad, by_row):
    """Fill by_row = grad (1[chosen] - row), or 0 if chosen is -1."""
    if chosen < 0 or abs(grad) < TINY:
        by_row[:] = 0
        return
    tiny, zero = row.dtype.type(TINY), row.dtype.type(0.0)
    for k in range(row.shape[0]):
        share = row[k] * grad
        by_row[k] = -share if abs(share) > tiny else zero
    by_row[chosen] += grad
