"""Fewer n-grams: those go whose loss changes the model least.

Stolcke (1998), Entropy-based pruning of backoff language models.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.ngram_arrays import NgramArrays


def pruned(arrays: NgramArrays, threshold: float) -> NgramArrays:
    """Return a model without the n-grams each of which raises its perplexity by a share below `threshold` if it goes.

    The longest go first; what longer n-grams begin with stays. With the loss of w after h, the weight of h becomes
    a' = (u + p(w | h)) / (v + p(w | h')), where u = a v and v are the shares of unseen words after h and h', and

        KL = -p(h) (p(w | h) (log p(w | h') + log a' - log p(w | h)) + u (log a' - log a))
    """  # [S2, n-gram]
    parent, starts, suffix = arrays.parent, arrays.starts, arrays.suffix
    keep, backoff = np.ones(len(parent), bool), arrays.log_backoff.astype(np.float64)
    log_prob = arrays.log_prob.astype(np.float64)
    log_history = _log_histories(arrays, parent)
    for low, high in reversed(list(zip(starts[2:-1].tolist(), starts[3:].tolist(), strict=True))):
        nodes, before = np.arange(low, high), parent[low:high]
        p, lower = np.exp(log_prob[low:high]), np.exp(log_prob[suffix[low:high]])
        free = np.maximum(1.0 - np.bincount(before, lower, low), 0.0)  # v
        unseen = np.exp(backoff[:low]) * free  # u
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.log((unseen[before] + p) / (free[before] + lower))
            kept_mass = p * (np.log(lower) + weight - log_prob[low:high])
            loss = -np.exp(log_history[before]) * (kept_mass + unseen[before] * (weight - backoff[before]))
        leads_on = np.bincount(parent[high:][keep[high:]], minlength=high)[low:high] > 0
        gone = (np.expm1(loss) < threshold) & ~leads_on
        keep[nodes[gone]] = False
        unseen += np.bincount(before[gone], p[gone], low)
        free += np.bincount(before[gone], lower[gone], low)
        backoff[:low] = _weights(unseen, free, backoff[:low])
    return normalised(arrays._replace(log_backoff=backoff).kept(keep))


def _weights(unseen: Array, free: Array, others: Array) -> Array:
    """Return the logs of unseen / free; where nearly all words were seen, a difference says nothing."""
    clear = (free > 1e-9) & (unseen > 0)
    weights = others.copy()
    weights[clear] = np.log(unseen[clear] / free[clear])
    return weights


def normalised(arrays: NgramArrays) -> NgramArrays:
    """Return the model with back-off weights with which each history sums to 1, the shortest first."""
    parent, starts, suffix = arrays.parent, arrays.starts, arrays.suffix
    backoff = arrays.log_backoff.copy()
    for low, high in zip(starts[2:-1].tolist(), starts[3:].tolist(), strict=True):
        before = parent[low:high]
        lower, end = arrays.log_prob[suffix[low:high]].copy(), parent[suffix[low:high]]
        shorter = suffix[before]
        while len(longer := np.flatnonzero(shorter != end)):
            lower[longer] += backoff[shorter[longer]]
            shorter[longer] = suffix[shorter[longer]]
        histories = np.unique(before)
        unseen = 1.0 - np.bincount(before, np.exp(arrays.log_prob[low:high]), low)[histories]
        free = 1.0 - np.bincount(before, np.exp(lower), low)[histories]
        backoff[histories] = _weights(unseen, free, backoff[histories])
    backoff[np.diff(arrays.first) == 0] = 0.0
    return arrays._replace(log_backoff=backoff)


def _log_histories(arrays: NgramArrays, parent: Array) -> Array:
    """Return log p of all words of each n-gram; that of BEGIN is taken to be that of END, which is as frequent."""
    log_history = arrays.log_prob.astype(np.float64)
    log_history[arrays.begin] = log_history[arrays.n_words + 1]
    log_history[0] = 0.0
    starts = arrays.starts
    for low, high in zip(starts[2:-1].tolist(), starts[3:].tolist(), strict=True):
        log_history[low:high] += log_history[parent[low:high]]
    return log_history
