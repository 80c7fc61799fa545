"""Log probabilities of many sentences by an n-gram model, in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel

Array = np.ndarray[Any, Any]


class Backoff(NamedTuple):
    """The arrays of an n-gram model; the last two are those of the nodes that can have children."""

    word: Array  # int32
    suffix: Array  # int32
    log_prob: Array  # float32
    first: Array  # int32
    log_backoff: Array  # float32


@kernel(EXACT, inline=True)
def _child(model, node, word):
    """The n-gram that a word makes of a history, or -1."""
    if node == 0:
        return word + 1
    if node >= model.log_backoff.shape[0]:
        return -1
    low, high = model.first[node], model.first[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if model.word[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < model.first[node + 1] and model.word[low] == word else -1


@kernel(EXACT)
def score_tokens(model, begin, words, offsets, log_probs):
    """log_probs[i] = log p(words[i] | the words of its sentence before it); -1 is a word that the model cannot say.

    Sentence s is words[offsets[s]:offsets[s + 1]], its end included.
    """
    inner = model.log_backoff.shape[0]
    for s in range(offsets.shape[0] - 1):
        node = begin
        for i in range(offsets[s], offsets[s + 1]):
            word, total = words[i], 0.0
            if word < 0:
                log_probs[i], node = -np.inf, 0
                continue
            child = _child(model, node, word)
            while child < 0:
                if node < inner:
                    total += model.log_backoff[node]
                node = model.suffix[node]
                child = _child(model, node, word)
            log_probs[i] = total + model.log_prob[child]
            node = child
            while node > 0 and (
                node >= inner or (model.first[node] == model.first[node + 1] and model.log_backoff[node] == 0.0)
            ):
                node = model.suffix[node]
