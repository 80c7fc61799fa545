"""One step of two LSTMs, which read from either end, between its products; and its gradient.

`gates` [2, m, 4 hidden] has the blocks i, f, g, o as `nn.LSTM` does; the first axis is the direction. The `count` rows
from `start` belong to the sentences that go on in this step. `cells` and `states` [2, first + m, hidden] have those
before the first step ahead of the others; the ones that this step begins with stand from `before`.
"""

from __future__ import annotations

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.compilation import FAST, kernel


@kernel(FAST)
def advance(gates, bias, recurrent, cells, squashed, states, start, before, count):
    """gates + bias + recurrent become i, f, g, o; cells = f c + i g, squashed = tanh(cells), states = o squashed.

    `recurrent` is flat: of both directions, `count` rows each.
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
    """σ of i, f and o, tanh of g: tanh x = 2 σ(2 x) - 1."""
    one = row.dtype.type(1.0)  # a plain 1.0 would make everything double
    for j in range(row.shape[0]):
        row[j] += bias[j] + recurrent[j]
    g = row[2 * hidden : 3 * hidden]
    for j in range(hidden):
        g[j] += g[j]
    for j in range(row.shape[0]):
        share = one / (one + exp_of(-abs(row[j])))
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
    """by_gates: dL/d(gates before σ and tanh), from dL/d(states) and what comes back from the next step.

    `left` are gates, cells and tanh of the cells. `by_next`, flat, is dL/d(states) through that step, for `n_next`
    sentences in both directions; `by_cells` is dL/d(cells) through it and becomes that of the cells before.
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
