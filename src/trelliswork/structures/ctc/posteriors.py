"""The posterior of each label of a string given all others: p(ℓ) over the sum of p of all strings that differ there.

A string differs in place u if another label stands there, or none. The paths of all of them share what comes before
and after, so that one pass over the frames sums up the paths of every other label in every place.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array


def label_posteriors(scores: Array, labels: list[int], blank: int) -> Array:
    """Return p(ℓ_u | ℓ without place u, x) for each place u [u]; NaN where the string itself is impossible.

    Args:
        scores: Log probabilities of the symbols in each frame [t, c].
        labels: The string.
        blank: The symbol that is no label.
    """  # [S4, CTC label posteriors]
    n, (t, c) = len(labels), scores.shape
    if n == 0:
        return np.zeros(0)
    before_any, before_blank = _prefixes(scores, labels, blank)  # paths of frames < i that spell labels < u
    after_any, after_blank = (each[::-1, ::-1] for each in _prefixes(scores[::-1], labels[::-1], blank))
    after_any, after_blank = after_any[:, 1:], after_blank[:, 1:]  # paths of frames >= i that spell labels > u
    begins, goes_on = before_any[:, :n, None].repeat(c, 2), after_any[:, :, None].repeat(c, 2)
    places = np.arange(n)
    begins[:, places[1:], labels[:-1]] = before_blank[:, 1:n]  # the same label again needs a blank between
    goes_on[:, places[:-1], labels[1:]] = after_blank[:, :-1]
    inside, totals = np.full((n, c), NEG_INF), np.full((n, c), NEG_INF)
    for i in range(t):
        inside = np.logaddexp(inside, begins[i]) + scores[i]
        totals = np.logaddexp(totals, inside + goes_on[i + 1])
    totals[:, blank] = [_log_prob(scores, labels[:u] + labels[u + 1 :], blank) for u in range(n)]
    with np.errstate(invalid="ignore"):
        weights = np.exp(totals - totals.max(1, keepdims=True))
        shares: Array = weights[places, labels] / weights.sum(1)
    return shares


def _prefixes(scores: Array, labels: list[int], blank: int) -> tuple[Array, Array]:
    """Return for i frames and u labels the log weight of the paths that spell these, and of those that end in a blank.

    Both are [t + 1, u + 1]; no frame spells no label, and counts as a blank.
    """
    n, t = len(labels), len(scores)
    any_end, in_blank = np.full((t + 1, n + 1), NEG_INF), np.full((t + 1, n + 1), NEG_INF)
    in_label = np.full(n + 1, NEG_INF)
    any_end[0, 0] = in_blank[0, 0] = 0.0
    again = np.array([False, False, *(a == b for a, b in zip(labels, labels[1:], strict=False))][: n + 1])
    for i in range(t):
        arriving = np.where(again[1:], in_blank[i, :-1], any_end[i, :-1])
        in_label[1:] = np.logaddexp(in_label[1:], arriving) + scores[i, labels]
        in_blank[i + 1] = any_end[i] + scores[i, blank]
        any_end[i + 1] = np.logaddexp(in_blank[i + 1], in_label)
    return any_end, in_blank


def _log_prob(scores: Array, labels: list[int], blank: int) -> float:
    return float(_prefixes(scores, labels, blank)[0][-1, -1])
