"""The elementwise part of one step of LSTMs in one or two directions, and its gradient.

Arrays of the kernels; the first axis is the direction, m is the number of tokens:

    gates [s, m, 4 hidden]          blocks i, f, g, o, as in `nn.LSTM`
    bias [s, 4 hidden]              is added to the gates
    recurrent [s * count * 4 hidden]   the product of the previous states with the recurrent weights, flat
    cells, states [s, first + m, hidden]   the initial cells and states of the `first` sentences, then those of tokens
    squashed [s, m, hidden]         tanh of the cells

A step works on `count` sentences: their tokens are the rows from `start`, their previous states those from `before`.
A prefix `by_` marks the gradient of the loss by an array.
"""

from __future__ import annotations

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.compilation import FAST, kernel


@kernel(FAST)
def advance(gates, bias, recurrent, cells, squashed, states, start, before, count):
    """Take a step: gates become i, f, g and o, cells = f c + i g, squashed = tanh(cells), states = o squashed.

    Args:
        gates: Scores of the gates from the inputs, float32 [sides, tokens, 4 hidden]; they become i, f, g and o.
        bias: Float32 [sides, 4 hidden].
        recurrent: Scores of the gates from the states before, float32, flat.
        cells: Float32 [sides, tokens and beginnings, hidden], filled in.
        squashed: Tanh of the cells, float32 [sides, tokens, hidden], filled in.
        states: Float32 [sides, tokens and beginnings, hidden], filled in.
        start: First token of the step.
        before: First token of the step before, in `cells`.
        count: Number of sentences that take part.
    """
    hidden, width = squashed.shape[2], gates.shape[2]
    own = cells.shape[1] - gates.shape[1] + start
    for side in range(gates.shape[0]):
        for i in range(count):
            row, first = gates[side, start + i], (side * count + i) * width
            _activate(row, bias[side], recurrent[first : first + width], hidden)
            cell, tanh, state = cells[side, own + i], squashed[side, start + i], states[side, own + i]
            _new_cell(row, cells[side, before + i], cell)
            _tanh(cell, tanh)
            for j in range(hidden):
                state[j] = row[3 * hidden + j] * tanh[j]


@kernel(FAST)
def _activate(row, bias, recurrent, hidden):
    """Apply σ to i, f and o, and tanh x = 2 σ(2 x) - 1 to g."""
    one = row.dtype.type(1.0)  # a literal 1.0 would make everything double precision
    for j in range(row.shape[0]):
        row[j] += bias[j] + recurrent[j]
    g = row[2 * hidden : 3 * hidden]
    for j in range(hidden):
        g[j] += g[j]
    for j in range(row.shape[0]):
        share = one / (one + exp_of(-abs(row[j])))  # σ(|x|), which cannot overflow
        row[j] = share if row[j] > 0 else one - share
    for j in range(hidden):
        g[j] += g[j] - one


@kernel(FAST)
def _new_cell(row, before, cell):
    hidden = cell.shape[0]
    for j in range(hidden):
        cell[j] = row[hidden + j] * before[j] + row[j] * row[2 * hidden + j]


@kernel(FAST)
def _tanh(cell, tanh):
    one = cell.dtype.type(1.0)
    for j in range(cell.shape[0]):
        shrunk = exp_of(-abs(cell[j] + cell[j]))
        size = (one - shrunk) / (one + shrunk)
        tanh[j] = size if cell[j] > 0 else -size


@kernel(FAST)
def retreat(left, by_states, by_cells, by_gates, by_next, start, before, count, n_next):
    """Go back a step: fill in the gradient by the gates, as they were before σ and tanh.

    Args:
        left: Gates, cells and squashed cells, as `advance` leaves them.
        by_states: Gradient by the states, float32 [sides, tokens, hidden], added to.
        by_cells: Gradient by the cells through the next step, float32 [sides, sentences, hidden]; becomes that through
            this one.
        by_gates: Float32 [sides, tokens, 4 hidden], filled in.
        by_next: Gradient by the states through the next step, float32, flat.
        start: First token of the step.
        before: First token of the step before, in `cells`.
        count: Number of sentences that take part.
        n_next: Number of those that take part in the next step.
    """
    gates, cells, squashed = left
    hidden = squashed.shape[2]
    for side in range(gates.shape[0]):
        for i in range(count):
            grad = by_states[side, start + i]
            if i < n_next:
                _add(by_next[(side * n_next + i) * hidden :], grad)
            row, tanh, out = gates[side, start + i], squashed[side, start + i], by_gates[side, start + i]
            _back_row(row, cells[side, before + i], tanh, grad, by_cells[side, i], out)


@kernel(FAST)
def _add(what, to):
    for j in range(to.shape[0]):
        to[j] += what[j]


@kernel(FAST)
def _back_row(row, before, tanh, grad, by_cell, out):
    hidden, one = before.shape[0], row.dtype.type(1.0)
    for j in range(hidden):
        o = row[3 * hidden + j]
        out[3 * hidden + j] = grad[j] * tanh[j] * o * (one - o)
        by_cell[j] += grad[j] * o * (one - tanh[j] * tanh[j])
    for j in range(hidden):
        i, g = row[j], row[2 * hidden + j]
        out[j] = by_cell[j] * g * i * (one - i)
        out[2 * hidden + j] = by_cell[j] * i * (one - g * g)
    for j in range(hidden):
        f = row[hidden + j]
        out[hidden + j] = by_cell[j] * before[j] * f * (one - f)
        by_cell[j] *= f
