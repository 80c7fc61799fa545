"""CPU kernels that sum over alignments: log p(ℓ | x) and frame occupancies. `path_kernels.py` has those that pick some.

States of ℓ' lie in two rows of cells: `blanks[u]` is the blank before label u (u = 0..U), `labels[u]` label u, with a
cell at the end of each row that is never reached. Rows of the batch lie behind one another, so that each loop runs over
the states of many rows at once; the empty cell keeps neighbours apart.

α is kept in exp space with a range of its own: value = mantissa 2^(512 e), the mantissa in [2^-256, 2^256], the
exponent e any whole number (its arrays are called `ups`). Nothing can underflow, whatever the scores, and nothing but
the scores is exponentiated. What the gradient needs of α are the shares of a state's predecessors, all at most 1.
Callers have checked shapes, lengths, labels, NaN and +inf.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import LARGEST_SCORE, exp

UP, DOWN = 2.0**512, 2.0**-512  # one exponent
SMALL, LARGE = 2.0**-256, 2.0**256
UNIT = 512 * math.log(2.0)  # one exponent in nats
NOTHING = -1e308  # the exponent of 0, below that of any score
LOWEST = -1e300  # scores below are taken as this


@kernel(EXACT)
def gather(scores, targets, lengths, target_lengths, blank, emissions, bars):
    """emissions[0, t, b, u] is the blank's score, emissions[1, t, b, u] label u's; -inf where there is no frame or
    label. bars[b, u] is -inf where label u must not follow label u-1 at once.

    Args:
        scores: scores of the symbols of each frame, [batch, t, c].
        targets: labels of each row, int64 [batch, u].
        lengths: frames of each row, int64 [batch].
        target_lengths: labels of each row, int64 [batch].
        blank: number of the blank.
        emissions: float64 [2, t, batch, u+1], filled in.
        bars: float64 [batch, u+1], filled in.
    """
    for b in range(targets.shape[0]):
        for u in range(bars.shape[1]):
            inside = 0 < u < target_lengths[b]
            bars[b, u] = 0.0 if inside and targets[b, u] != targets[b, u - 1] else NEG_INF
    for t in range(emissions.shape[1]):
        for b in range(targets.shape[0]):
            n_labels = target_lengths[b] if t < lengths[b] else -1
            row, labels, blanks, named = scores[b, t], targets[b], emissions[0, t, b], emissions[1, t, b]
            silence = row[blank]
            for u in range(n_labels + 1):
                blanks[u] = silence
            for u in range(n_labels):
                named[u] = row[labels[u]]
            for u in range(n_labels + 1, blanks.shape[0]):
                blanks[u] = NEG_INF
            for u in range(max(n_labels, 0), blanks.shape[0]):
                named[u] = NEG_INF


@kernel(FAST, inline=True)
def _lowered(mantissa, exponent, top):
    """A mantissa at a higher exponent; 0 if it is two or more above: less than the last digit of what is there."""
    below = exponent - top
    return mantissa if below > -0.5 else (mantissa * DOWN if below > -1.5 else 0.0)


@kernel(FAST, inline=True)
def _add(mantissa, exponent, other, other_exponent):
    """Return a sum, its exponent, and the share of the first of both: 0 of a sum of 0; any other is above DOWN."""
    top = max(exponent, other_exponent)
    own = _lowered(mantissa, exponent, top)
    total = own + _lowered(other, other_exponent, top)
    return total, top, own / max(total, DOWN)


@kernel(FAST)
def _weigh(scores, mantissas, exponents):
    """Compute e^score as mantissas in [2^-512, 1] and exponents; -inf is 0."""
    n_wide = 0
    for u in range(scores.shape[0]):
        n_wide += scores[u] > 0.0 or NEG_INF < scores[u] < -UNIT
    if n_wide == 0:  # as log probabilities are, nearly always
        for u in range(scores.shape[0]):
            mantissas[u], exponents[u] = exp(scores[u]), 0.0
        return
    for u in range(scores.shape[0]):
        score = max(scores[u], LOWEST)
        exponents[u] = np.ceil(score / UNIT)
        rest = min(max(score - exponents[u] * UNIT, -UNIT), 0.0)  # huge scores have no digits left for a rest
        mantissas[u] = exp(rest) if scores[u] > NEG_INF else 0.0


@kernel(FAST)
def _multiply(mantissas, exponents, weights, weight_exponents):
    """Multiply by weights and bring the mantissas back into their range."""
    for u in range(weights.shape[0]):
        mantissa, exponent = mantissas[u] * weights[u], exponents[u] + weight_exponents[u]
        scale = UP if mantissa < SMALL else (DOWN if mantissa > LARGE else 1.0)
        moved = -1.0 if mantissa < SMALL else (1.0 if mantissa > LARGE else 0.0)
        mantissas[u] = mantissa * scale
        exponents[u] = exponent + moved if mantissa > 0.0 else NOTHING


@kernel(FAST)
def _enter(before_blanks, before_labels, bars, shares, label_shares, sums, ups, new_labels, new_ups):
    """The sums of one frame of α, two of two: `sums` into blanks, `new_labels` into labels.

    Into blank u lead itself and label u-1 (`labels[u]`, one cell in front): shares[u] is the part of the blank. Into
    label u lead itself, with label_shares[u], and that same sum, or the blank alone where the labels are equal.
    """  # [S4.655-656, 659-661]
    (blanks, blank_ups), (labels, label_ups) = before_blanks, before_labels
    own_labels, own_ups = labels[1:], label_ups[1:]
    for u in range(bars.shape[0]):
        sums[u], ups[u], shares[u] = _add(blanks[u], blank_ups[u], labels[u], label_ups[u])
    for u in range(bars.shape[0]):
        entering = sums[u] if bars[u] == 0.0 else blanks[u]
        up = ups[u] if bars[u] == 0.0 else blank_ups[u]
        new_labels[u], new_ups[u], label_shares[u] = _add(own_labels[u], own_ups[u], entering, up)


@kernel(FAST)
def _finish(blank, blank_up, label, label_up):
    """Return (share of the total that ends in the last blank, log of the total)."""  # [S4.657]
    total, up, share = _add(blank, blank_up, label, label_up)
    return (share, math.log(total) + up * UNIT) if total > 0.0 else (1.0, NEG_INF)


@kernel(FAST)
def forward(first, last, emissions, bars, lengths, target_lengths, shares, ends, log_z):
    """log p(ℓ | x) of rows first..last, all of them at once, and the shares of predecessors that the way back follows.

    shares[0..1, t, b] are those of blanks and labels in `_enter`; ends[b] is how much of the total ends in the last
    blank, the rest in the last label.

    Args:
        first: the first row.
        last: the row behind the last.
        emissions: scores of the blank and of labels, float64 [2, t, batch, u+1].
        bars: -inf where a label must not follow the one before at once, else 0, float64 [batch, u+1].
        lengths: frames of each row, int64 [batch].
        target_lengths: labels of each row, int64 [batch].
        shares: float64 [2, t, batch, u+1], filled in.
        ends: float64 [batch], filled in.
        log_z: float64 [batch], filled in.
    """  # [S4.650, 654-657]
    _, n_frames, batch, size = emissions.shape
    emitted, shared = emissions.reshape(2, n_frames, batch * size), shares.reshape(2, n_frames, batch * size)
    here, cell, stop, cells, flat_bars = 0, first * size, last * size, (last - first) * size, bars[first:last].ravel()
    # Mantissas and exponents; labels have one cell in front: before label 0 there is no label.
    blanks, blank_ups = np.zeros((2, cells)), np.full((2, cells), NOTHING)
    labels, label_ups = np.zeros((2, cells + 1)), np.full((2, cells + 1), NOTHING)
    weights, weight_ups = np.empty(cells), np.empty(cells)
    for b in range(first, last):
        ends[b], log_z[b], start = 1.0, 0.0 if target_lengths[b] == 0 else NEG_INF, (b - first) * size
        blanks[0, start] = labels[0, start + 1] = 1.0  # [S4.654], before it meets the scores
        blank_ups[0, start] = label_ups[0, start + 1] = 0.0
    for t in range(lengths[first:last].max()):
        if t > 0:
            new = 1 - here
            _enter(
                (blanks[here], blank_ups[here]), (labels[here], label_ups[here]), flat_bars,
                shared[0, t, cell:stop], shared[1, t, cell:stop], blanks[new], blank_ups[new],
                labels[new, 1:], label_ups[new, 1:],
            )  # fmt: skip
            here = new
        _weigh(emitted[0, t, cell:stop], weights, weight_ups)
        _multiply(blanks[here], blank_ups[here], weights, weight_ups)
        _weigh(emitted[1, t, cell:stop], weights, weight_ups)
        _multiply(labels[here, 1:], label_ups[here, 1:], weights, weight_ups)
        for b in range(first, last):
            if lengths[b] == t + 1:
                end = (b - first) * size + target_lengths[b]  # of labels the cell before: there is one in front
                label = labels[here, end] if target_lengths[b] > 0 else 0.0
                ends[b], log_z[b] = _finish(blanks[here, end], blank_ups[here, end], label, label_ups[here, end])


@kernel(FAST)
def _step_back(blank_mass, label_mass, bars, shares, label_shares, sums, new_blanks, new_labels):
    """Compute the occupancies of the frame before: each state's mass goes back to its predecessors by their shares."""
    for u in range(bars.shape[0]):
        entering = label_mass[u] * (1.0 - label_shares[u])
        sums[u] = blank_mass[u] + (entering if bars[u] == 0.0 else 0.0)  # what left blank u or label u-1
        new_blanks[u] = sums[u] * shares[u] + (0.0 if bars[u] == 0.0 else entering)
        new_labels[u] = label_mass[u] * label_shares[u]
    after_sums, after_shares = sums[1:], shares[1:]
    for u in range(bars.shape[0] - 1):
        new_labels[u] += after_sums[u] * (1.0 - after_shares[u])


@kernel(FAST)
def backward(first, last, bars, run, strings, blank, grad, occupancies):
    """Add grad[b] p(π_t = symbol | ℓ, x) to occupancies [b, t, c]: the gradient of log p(ℓ | x) by frame scores.

    `run` are shares, ends and log_z of `forward`; `strings` targets, lengths and target_lengths.

    Args:
        first: the first row.
        last: the row behind the last.
        bars: -inf where a label must not follow the one before at once, else 0, float64 [batch, u+1].
        run: shares, ends and log_z of `forward`.
        strings: targets, lengths and target lengths.
        blank: number of the blank.
        grad: weight of each row, float64 [batch].
        occupancies: [batch, t, c], added to.
    """
    (shares, ends, log_z), (targets, lengths, target_lengths) = run, strings
    _, n_frames, batch, size = shares.shape
    shared, flat_bars = shares.reshape(2, n_frames, batch * size), bars[first:last].ravel()
    here, cell, stop, cells = 0, first * size, last * size, (last - first) * size
    blank_mass, label_mass, sums = np.zeros((2, cells)), np.zeros((2, cells)), np.empty(cells)
    for t in range(lengths[first:last].max() - 1, -1, -1):
        for b in range(first, last):
            start, n_labels = (b - first) * size, target_lengths[b]
            if lengths[b] == t + 1 and log_z[b] > NEG_INF:
                blank_mass[here, start + n_labels] = grad[b] * ends[b]
                if n_labels > 0:
                    label_mass[here, start + n_labels - 1] = grad[b] * (1.0 - ends[b])
            if t < lengths[b]:
                own, row, total = blank_mass[here, start : start + size], occupancies[b, t], 0.0
                for u in range(size):
                    total += own[u]
                row[blank] += total
                for u in range(n_labels):
                    row[targets[b, u]] += label_mass[here, start + u]
        if t > 0:
            _step_back(
                blank_mass[here], label_mass[here], flat_bars, shared[0, t, cell:stop], shared[1, t, cell:stop],
                sums, blank_mass[1 - here], label_mass[1 - here],
            )  # fmt: skip
            here = 1 - here


@kernel(FAST)
def fill_exponentials(log_probs, lengths, grad, weighted):
    """Compute weighted[t, b, k] = grad[b] y_k^t at real frames, 0 at others, for log probabilities [t, b, c].

    Args:
        log_probs: log probabilities of the symbols of each frame, [t, batch, c].
        lengths: frames of each row, int64 [batch].
        grad: weight of each row, float64 [batch].
        weighted: [t, batch, c], filled in.
    """
    n_frames, batch, c = log_probs.shape
    given, out = log_probs.reshape(-1), weighted.reshape(-1)
    for i in range(given.shape[0]):  # in one run: rows are too short for it
        out[i] = exp(min(float(given[i]), 0.0))
    for t in range(n_frames):
        for b in range(batch):
            weight, scores, row = grad[b], log_probs[t, b], weighted[t, b]
            if t >= lengths[b] or weight == 0.0:
                for k in range(c):
                    row[k] = 0.0
                continue
            above = 0
            for k in range(c):
                above += scores[k] > 0.0
                row[k] *= weight
            if above:  # no probabilities: torch's loss goes on all the same
                for k in range(c):
                    row[k] = weight * np.exp(float(scores[k]))


@kernel(EXACT)
def labels_are_symbols(targets, target_lengths, c, blank):
    """Return False if a label is no symbol, or the blank.

    Args:
        targets: labels of each row, int64 [batch, u].
        target_lengths: labels of each row, int64 [batch].
        c: number of symbols.
        blank: number of the blank.
    """
    for b in range(targets.shape[0]):
        for u in range(target_lengths[b]):
            if not 0 <= targets[b, u] < c or targets[b, u] == blank:
                return False
    return True


@kernel(EXACT)
def frames_are_scores(log_probs, lengths):
    """Return False if a real frame of [t, b, c] has a NaN or +inf.

    Args:
        log_probs: log probabilities of the symbols of each frame, [t, batch, c].
        lengths: frames of each row, int64 [batch].
    """
    n_frames, batch, c = log_probs.shape
    bad = 0
    for t in range(n_frames):
        for b in range(batch):
            if t < lengths[b]:
                row = log_probs[t, b]
                for k in range(c):
                    bad += not (row[k] <= LARGEST_SCORE)
    return bad == 0
