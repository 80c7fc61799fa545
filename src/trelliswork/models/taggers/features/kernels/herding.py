"""CPU kernel of conditional herding: batches of sentences against the best labels and hidden states of the moment.

Label y has the hidden states y · m .. y · m + m - 1 of the chain, m = `per_label`: the weights are those of states,
`gold` are labels.

Gelfand, Chen, van der Maaten and Welling (2010), On herding and the perceptron cycling theorem.
"""

from __future__ import annotations

from trelliswork.models.taggers.features.kernels.decoding import (
    add_difference,
    clear,
    decode,
    no_change,
    path_for,
    score_arcs,
    score_tokens,
)
from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def herding_epoch(order, rows, index, gold, moving, clock, rate, batch, per_label):
    """Run one pass; return (clock, wrong labels, highest w · v, highest ‖v‖²), v the mean change of a batch.

    (y*, z*) is the best path over all states, z the best one over the states of the gold labels.

    Args:
        order: the sentences, in the order in which they are met.
        rows: attributes of the tokens (`RowArrays`).
        index: the weights of each attribute, and those of the arcs (`WeightIndex`).
        gold: the label of each token, [tokens].
        moving: the weights, and the sums that make their average (`Moving`).
        clock: steps so far.
        rate: the step length.
        batch: sentences of a step.
        per_label: hidden states of each label.
    """
    # [S4.230]
    weights, wanted = moving.weights, gold.copy()
    path, change = path_for(rows.lengths.max(), index.legal), no_change(weights.shape[0])
    n_wrong, highest, largest = 0, NEG_INF, 0.0
    for begin in range(0, order.shape[0], batch):
        members = order[begin : begin + batch]
        score_arcs(index, weights, path.transitions)
        for s in members:
            n, first = rows.lengths[s], rows.starts[s]
            score_tokens(first, first + n, rows, index, weights, path.emissions[0])
            decode(rows.lengths[s : s + 1], path, path.transitions, path.tags)
            wrong = 0
            for i in range(n):
                wrong += path.tags[0, i] // per_label != gold[first + i]
            n_wrong += wrong
            if wrong == 0:  # then z* is best among the states of the gold labels, too
                continue
            if per_label > 1:
                _best_hidden(rows.lengths[s : s + 1], gold[first:], per_label, path, wanted[first:])
            add_difference(first, rows, index, wanted, path.tags[0], n, change)
        product, square = 0.0, 0.0
        for k in range(change.n_touched[0]):
            w = change.touched[k]
            v = change.amounts[w] / members.shape[0]
            product += v * weights[w]
            square += v * v
            step = rate * change.amounts[w] / members.shape[0]
            weights[w] += step
            moving.sums[w] += clock * step
        clear(change)
        highest, largest = max(highest, product), max(largest, square)
        clock += 1.0
    return clock, n_wrong, highest, largest


@kernel(EXACT)
def _best_hidden(length, gold, per_label, path, out):
    """Set out[:n] = the best path among the states of the gold labels; the emissions of others become -inf."""
    n = length[0]
    for i in range(n):
        for j in range(path.emissions.shape[2]):
            if j // per_label != gold[i]:
                path.emissions[0, i, j] = NEG_INF
    decode(length, path, path.transitions, out[:n].reshape((1, n)))
