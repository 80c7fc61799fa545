"""CPU kernel for the probabilities of spans of a chain."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import at, exp

BEFORE, SINGLE, FIRST, INSIDE, LAST, AFTER = range(6)  # rows of the sets of a pattern


@kernel(EXACT)
def set_of(position, first, last):
    """Return the set of a pattern that a position takes its label from.

    Args:
        position: a token.
        first: the first token of the span.
        last: the token behind the span.

    Returns:
        The row of the sets.
    """
    if position < first:
        return BEFORE
    if position >= last:
        return AFTER
    if last - first == 1:
        return SINGLE
    if position == first:
        return FIRST
    return LAST if position == last - 1 else INSIDE


@kernel(FAST)
def span_probabilities(spans, transitions, lengths, sums, patterns, ends, probabilities):
    """Set probabilities[s] = P(tokens first..last-1 of a row are one span), for spans (row, first, last, label).

    patterns[label, p] has the labels of each of the `set_of` sets, in pattern p, and ends[label, p] whether it may
    stand at the start and at the end of a row. Given y_t, y_{t-1} is i with probability
    exp(log α_{t-1}(i) + a_ij - logadd_t(j)), whatever comes behind: held(j) is the probability that the sets hold
    from the first position of the window up to t, given y_t = j.

    Args:
        spans: [spans, 4] row, first token, token behind the last, label.
        transitions: [1 or batch, 1 or n - 1, c, c].
        lengths: tokens of each row, [batch].
        sums: log α, its logadd before emissions, and marginals, each [batch, n, c].
        patterns: [labels, patterns, sets, c] bool.
        ends: [labels, patterns, 2] bool.
        probabilities: [spans]; written.
    """
    log_alphas, arrivals, marginals = sums
    c = marginals.shape[2]
    held, before = np.empty(c), np.empty(c)
    for s in range(spans.shape[0]):
        b, first, last, label = spans[s]
        begin, stop = max(first - 1, 0), min(last + 1, lengths[b])
        probabilities[s] = 0.0
        for p in range(patterns.shape[1]):
            if (first == 0 and not ends[label, p, 0]) or (last == lengths[b] and not ends[label, p, 1]):
                continue
            allowed = patterns[label, p, set_of(begin, first, last)]
            for j in range(c):
                held[j] = 1.0 if allowed[j] else 0.0
            for t in range(begin + 1, stop):
                allowed = patterns[label, p, set_of(t, first, last)]
                arcs = transitions[at(b, transitions.shape[0]), at(t - 1, transitions.shape[1])]
                for j in range(c):
                    before[j] = held[j]
                for j in range(c):
                    held[j] = 0.0
                    for i in range(c if allowed[j] and arrivals[b, t, j] > -np.inf else 0):
                        if before[i] > 0.0:
                            held[j] += before[i] * exp(log_alphas[b, t - 1, i] + arcs[i, j] - arrivals[b, t, j])
            for j in range(c):
                probabilities[s] += held[j] * marginals[b, stop - 1, j]
        probabilities[s] = min(probabilities[s], 1.0)
