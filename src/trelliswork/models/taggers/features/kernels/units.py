"""CPU kernels of the hidden-unit CRF: scores of labels with the units summed out, and gradients of a batch.

e^{o_hy} = e^{b_h + w_h·x} e^{V_hy}: one exponential for each unit of a token and one for each cell of V in a batch
replace one for each pair of them at every token. Σ_h ln(1 + e^{o_hy}) needs a logarithm for eight units only, that of
their product. Where a sum of exponents leaves the range of that, a plain loop takes over.

Van der Maaten, Welling and Saul (2011), Hidden-unit conditional random fields.
"""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.likelihood import observe
from trelliswork.models.taggers.features.kernels.records import Arcs
from trelliswork.models.taggers.features.kernels.sets import sum_over_paths
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import exp, log
from trelliswork.structures.chain import kernels as chain

UNROLLED = 8  # units whose factors 1 + e^o are multiplied before one logarithm
HIGHEST = 80.0  # of o: the product of eight such factors is still a float64
NEGLIGIBLE = 1e-8  # a share of a label so small changes no float32 gradient


@kernel(FAST)
def drive_units(t, rows, w, b, drive):
    """Set drive[h] = b_h + w_h · x_t for the attributes of token t.

    Args:
        t: the token.
        rows: attributes of the tokens (`RowArrays`).
        w: weights of units, [attributes, units].
        b: biases, [units].
        drive: [units]; written.
    """
    n_units, valued = b.shape[0], rows.values.shape[0] > 0
    for h in range(n_units):
        drive[h] = b[h]
    for e in range(rows.offsets[t], rows.offsets[t + 1]):
        row, value = w[rows.ids[e]], rows.values[e] if valued else 1.0
        for h in range(n_units):
            drive[h] += value * row[h]


@kernel(FAST)
def exp_of(table, out):
    """Set out[:, :units] = e^table, 0 beyond; returns the highest absolute value of the table."""
    top = 0.0
    for y in range(table.shape[0]):
        for h in range(table.shape[1]):
            top = max(top, abs(table[y, h]))
            out[y, h] = exp(min(max(table[y, h], -300.0), 300.0))
        for h in range(table.shape[1], out.shape[1]):
            out[y, h] = 0.0
    return top


@kernel(FAST)
def raise_drive(drive, raised):
    """Set raised = e^drive, 0 beyond the units; returns the highest drive."""
    top = -np.inf
    for h in range(drive.shape[0]):
        top = max(top, drive[h])
        raised[h] = exp(min(drive[h], 300.0))
    return top


@kernel(FAST)
def _log_of_product(raised, column):
    """Return Σ_h ln(1 + raised_h column_h); both have a multiple of eight entries."""
    r, c = raised.reshape(UNROLLED, -1), column.reshape(UNROLLED, -1)
    r0, r1, r2, r3, r4, r5, r6, r7 = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]
    c0, c1, c2, c3, c4, c5, c6, c7 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
    total = 0.0
    for j in range(r.shape[1]):
        low = (1.0 + r0[j] * c0[j]) * (1.0 + r1[j] * c1[j]) * (1.0 + r2[j] * c2[j]) * (1.0 + r3[j] * c3[j])
        high = (1.0 + r4[j] * c4[j]) * (1.0 + r5[j] * c5[j]) * (1.0 + r6[j] * c6[j]) * (1.0 + r7[j] * c7[j])
        total += log(low * high)
    return total


@kernel(FAST)
def _sum_of_softplus(drive, column):
    """Return Σ_h ln(1 + e^{drive_h + column_h}) for any size of its terms."""
    total = 0.0
    for h in range(drive.shape[0]):
        o = drive[h] + column[h]
        total += max(o, 0.0) + log(1.0 + exp(-abs(o)))
    return total


@kernel(FAST)
def score_labels(drive, raised, v, exp_v, widest, c, scores):
    """Fill in scores[y] = c_y + Σ_h ln(1 + e^{drive_h + V_hy}); v is [labels, units]. True if exp space was enough.

    Args:
        drive: b + w · x of the token, [units].
        raised: room for e^drive, [units] rounded up; written.
        v: weights of units by label, [c, units].
        exp_v: e^v, [c, units] rounded up.
        widest: the highest absolute value of v.
        c: biases of labels, [c].
        scores: [c]; written.
    """
    # [S4.144]
    moderate = widest < 250.0 and raise_drive(drive, raised) + widest < HIGHEST
    for y in range(v.shape[0]):
        scores[y] = c[y] + (_log_of_product(raised, exp_v[y]) if moderate else _sum_of_softplus(drive, v[y]))
    return moderate


@kernel(FAST)
def spread_units(drive, raised, v, exp_v, moderate, share, d_v, d_drive):
    """Add share_y σ(o_hy) to d_v[y, h] and, summed over y, to d_drive[h].

    Args:
        drive: b + w · x of the token, [units].
        raised: e^drive, [units] rounded up.
        v: weights of units by label, [c, units].
        exp_v: e^v, [c, units] rounded up.
        moderate: whether exp space was enough for the token.
        share: gradient by the scores of labels, [c].
        d_v: [c, units]; added to.
        d_drive: [units]; written.
    """
    # [S4.181, 188-189]
    n_units = drive.shape[0]
    for h in range(n_units):
        d_drive[h] = 0.0
    for y in range(v.shape[0]):
        part = share[y]
        if abs(part) < NEGLIGIBLE:
            continue
        column, d_column = exp_v[y], d_v[y]
        if moderate:
            for h in range(n_units):
                u = raised[h] * column[h]
                amount = part * (u / (1.0 + u))
                d_column[h] += amount
                d_drive[h] += amount
        else:
            for h in range(n_units):
                o = drive[h] + v[y, h]
                small = exp(-abs(o))
                amount = part * ((1.0 if o >= 0.0 else small) / (1.0 + small))
                d_column[h] += amount
                d_drive[h] += amount


@kernel(FAST)
def score_tokens(rows, units, emissions):
    """Write scores [tokens, labels]; π and τ are added at the first and the last token of each sentence.

    Args:
        rows: attributes of the tokens (`RowArrays`).
        units: all parameters (`Units`).
        emissions: [tokens, c]; written.
    """
    n_units = units.b.shape[0]
    exp_v = np.empty((units.v.shape[0], (n_units + UNROLLED - 1) // UNROLLED * UNROLLED))
    widest = exp_of(units.v, exp_v)
    drive, raised = np.empty(n_units), np.zeros(exp_v.shape[1])
    for s in range(rows.lengths.shape[0]):
        first, last = rows.starts[s], rows.starts[s + 1]
        for t in range(first, last):
            drive_units(t, rows, units.w, units.b, drive)
            score_labels(drive, raised, units.v, exp_v, widest, units.c, emissions[t])
        if last > first:
            for y in range(units.c.shape[0]):
                emissions[first, y] += units.start[y]
                emissions[last - 1, y] += units.end[y]


@kernel(FAST)
def _spread_token(t, rows, d_drive, gradient, touched, seen, n_touched):
    """Add d_drive to the gradients of b and of the rows of W that token t has; returns how many were touched."""
    n_units, valued = d_drive.shape[0], rows.values.shape[0] > 0
    for h in range(n_units):
        gradient.b[h] += d_drive[h]
    for e in range(rows.offsets[t], rows.offsets[t + 1]):
        a, value = rows.ids[e], rows.values[e] if valued else 1.0
        d_row = gradient.w[a]
        for h in range(n_units):
            d_row[h] += value * d_drive[h]
        if not seen[a]:
            seen[a] = True
            touched[n_touched] = a
            n_touched += 1
    return n_touched


@kernel(FAST)
def batch_gradient(first, last, order, rows, gold, units, room, gradient, touched, seen):
    """Return Σ -log p of sentences order[first:last]; adds its gradient to `gradient`.

    Rows of W that the gradient reaches are listed in `touched` (and marked in `seen`); how many is returned, too.

    Args:
        first: the place in `order` of the first sentence.
        last: the place behind the last one.
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        gold: the label of each token, [tokens].
        units: all parameters (`Units`).
        room: memory for the longest sentence (`Room` of `sets`).
        gradient: by all parameters (`Units`); added to.
        touched: room for numbers of rows of W; written from the front.
        seen: [attributes] bool; set for these rows.
    """
    c, n_units = units.v.shape
    longest = 1
    for k in range(first, last):
        longest = max(longest, rows.lengths[order[k]])
    exp_v = np.empty((c, (n_units + UNROLLED - 1) // UNROLLED * UNROLLED))
    widest = exp_of(units.v, exp_v)
    drives, raised = np.empty((longest, n_units)), np.zeros((longest, exp_v.shape[1]))
    moderate, d_drive = np.empty(longest, np.bool_), np.empty(n_units)
    transitions = units.transitions.reshape(1, 1, c, c)
    d_transitions = gradient.transitions.reshape(1, 1, c, c)
    exp_arcs, shifts = np.empty((1, 1, c, (c + 7) // 8 * 8)), np.empty((1, 1))
    chain.exp_arcs(transitions, exp_arcs, shifts)
    arcs = Arcs(transitions, exp_arcs, shifts, units.start, units.end)
    loss, n_touched = 0.0, 0
    for k in range(first, last):
        s = order[k]
        n, begin = rows.lengths[s], rows.starts[s]
        if n == 0:
            continue
        emissions, d_emissions = room.emissions[: n * c].reshape(1, n, c), room.d_emissions[: n * c].reshape(1, n, c)
        for i in range(n):
            drive_units(begin + i, rows, units.w, units.b, drives[i])
            moderate[i] = score_labels(drives[i], raised[i], units.v, exp_v, widest, units.c, emissions[0, i])
        known = gold[begin : begin + n]
        loss += sum_over_paths(emissions, arcs, 1.0, room, d_emissions, d_transitions)
        loss -= observe(known, 1.0, emissions[0], transitions[0], d_emissions[0], d_transitions[0])
        loss -= units.start[known[0]] + units.end[known[n - 1]]
        for y in range(c):
            gradient.start[y] += d_emissions[0, 0, y]
            gradient.end[y] += d_emissions[0, n - 1, y]
        for i in range(n):
            share = d_emissions[0, i]
            for y in range(c):
                gradient.c[y] += share[y]
            spread_units(drives[i], raised[i], units.v, exp_v, moderate[i], share, gradient.v, d_drive)
            n_touched = _spread_token(begin + i, rows, d_drive, gradient, touched, seen, n_touched)
    return loss, n_touched
