"""CPU kernel of locally normalised models: a softmax over the labels of every token.

McCallum, Freitag and Pereira (2000), Maximum entropy Markov models for information extraction and segmentation.
"""

from __future__ import annotations

import numpy as np

from trelliswork.models.taggers.features.kernels.likelihood import add_up, spread
from trelliswork.models.taggers.features.kernels.records import PlannedWeights
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import exp, highest, log


@kernel(FAST)
def _softmax(scores, c):
    """Turn scores[:c] into probabilities; return the log of their normaliser."""
    top, total = highest(scores, c), 0.0
    for j in range(c):
        scores[j] = exp(scores[j] - top)
        total += scores[j]
    for j in range(c):
        scores[j] /= total
    return top + log(total)


@kernel(FAST)
def local_loss_and_gradient(first, last, rows, observed, weights):
    """Return -Σ_s shares_s Σ_t log p(y_t | y_{t-1}, x) of sentences first..last, y_{t-1} being the gold label;
    and its gradient.

    Args:
        first: the first sentence.
        last: the sentence behind the last one.
        rows: the corpus as it is laid out (`PlannedRows`).
        observed: what is known of the labels (`Observed`).
        weights: as they are laid out (`PlannedWeights`).

    Returns:
        The loss, and its gradient as the weights are laid out.
    """
    # [S4.136-138]
    transitions, table, loose = weights.transitions[0, 0], weights.table, weights.loose
    c = transitions.shape[0]
    scores = np.zeros(table.shape[1])
    d_transitions, d_table, d_loose = np.zeros((1, 1, c, c)), np.zeros(table.shape), np.zeros(loose.shape)
    total = 0.0
    for s in range(first, last):
        before = -1
        for t in range(rows.starts[s], rows.starts[s] + rows.lengths[s]):
            add_up(rows, t, table, loose, scores)
            if before >= 0:
                for j in range(c):
                    scores[j] += transitions[before, j]
            label = observed.gold[t]
            wanted = scores[label]
            total += observed.shares[s] * (_softmax(scores, c) - wanted)
            scores[label] -= 1.0
            for j in range(c):
                scores[j] *= observed.shares[s]
            if before >= 0:
                for j in range(c):
                    d_transitions[0, 0, before, j] += scores[j]
            spread(rows, t, scores, d_table, d_loose)
            before = label
    return total, PlannedWeights(d_transitions, d_table, d_loose, np.empty(0))


@kernel(FAST)
def local_scores(first, last, lengths, starts, scores, transitions, emissions, arcs):
    """Write log p(label | label before) of rows first..last: of first tokens into `emissions` [rows, n, c], then into
    `arcs` [rows, n-1, c, c]; what lies behind the end of a row is 0.

    Args:
        first: the first row.
        last: the row behind the last one.
        lengths: tokens of each row, [batch].
        starts: the first token of each row, [batch].
        scores: [tokens, c].
        transitions: [c, c].
        emissions: [batch, n, c]; written.
        arcs: [batch, n - 1, c, c]; written.
    """
    c = transitions.shape[0]
    row = np.empty(c)
    for b in range(first, last):
        emissions[b] = 0.0
        arcs[b] = 0.0
        for i in range(lengths[b]):
            token = scores[starts[b] + i]
            for before in range(c if i > 0 else 1):
                for j in range(c):
                    row[j] = token[j] + (transitions[before, j] if i > 0 else 0.0)
                target = arcs[b, i - 1, before] if i > 0 else emissions[b, 0]
                for j in range(c):
                    target[j] = row[j]
                log_z = _softmax(row, c)
                for j in range(c):
                    target[j] -= log_z


def local_arrays(scores: Array, transitions: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return emissions and arcs of Π_t p(y_t | y_{t-1}, x): a chain whose log Z is 0, each arc into position t scored
    by log p(y_t | y_{t-1}, x). Sentence b has the rows starts[b]..starts[b] + lengths[b] of `scores` [tokens, c].

    Args:
        scores: [tokens, c].
        transitions: [c, c].
        starts: the first token of each row, [batch].
        lengths: tokens of each row, [batch].

    Returns:
        Emissions [batch, n, c] and arcs [batch, n - 1, c, c].
    """
    # [S4.136]
    n, c = int(lengths.max(initial=1)), scores.shape[1]
    emissions, arcs = np.empty((len(lengths), n, c)), np.empty((len(lengths), n - 1, c, c))
    local_scores(0, len(lengths), lengths, starts, scores, transitions, emissions, arcs)
    return emissions, arcs
