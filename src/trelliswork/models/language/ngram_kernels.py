"""Log probabilities of many sentences by an n-gram model, in one call.

The n-grams that end at each word are looked up length by length for all words at once, so that lookups do not wait for
one another: first in a hash table, in which those of two and three words are, then among the children of a history.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.structures.automata.ngram_arrays import NgramArrays

HASHED = 3  # the longest n-grams in the hash table; the histories of longer ones have few children
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class Backoff(NamedTuple):
    """The arrays of an n-gram model, those side by side that are looked at together; see `interleaved`."""

    grams: Array  # int32 [node, 2]: the last word, and the bits of its log probability
    gram_weights: Array  # the same memory as float32
    links: Array  # int32 [history + 1, 2]: the first child, and the bits of the log back-off weight
    link_weights: Array  # the same memory as float32
    table: Array  # int32 [2^k]: nodes by the hash of history and word; 0 is free


def least_nodes(arrays: NgramArrays) -> Array:
    """Return for each length m the first node of m - 1, if every n-gram has its suffix in the model; 0 otherwise."""
    starts = arrays.starts
    firsts = zip(starts[2:-1].tolist(), starts[3:].tolist(), starts[1:-2].tolist(), strict=True)
    least = [
        0,
        0,
        *(int(shorter) if (arrays.suffix[low:high] >= shorter).all() else 0 for low, high, shorter in firsts),
    ]
    return np.array(least, np.int64)


def interleaved(arrays: NgramArrays) -> tuple[Backoff, NgramArrays]:
    """Return a model for the kernels, and the model itself in the same memory."""
    n, inner, starts = len(arrays.word), len(arrays.log_backoff), arrays.starts
    grams, links = np.empty((n, 2), np.int32), np.zeros((inner + 1, 2), np.int32)
    both = grams.view(np.float32), links.view(np.float32)
    grams[:, 0], both[0][:, 1] = arrays.word, arrays.log_prob
    links[:, 0], both[1][:inner, 1] = arrays.first, arrays.log_backoff
    hashed, histories = starts[: HASHED + 2][-1] - starts[2], min(int(starts[: HASHED + 1][-1]), inner)
    model = Backoff(grams, both[0], links, both[1], np.zeros(table_size(int(hashed)), np.int32))
    fill_table(model, histories)
    own = arrays._replace(word=grams[:, 0], log_prob=both[0][:, 1], first=links[:, 0], log_backoff=both[1][:inner, 1])
    return model, own


def table_size(n: int) -> int:
    """Return the number of places for n nodes, of which a quarter or more are free."""
    return 1 << max(int(4 * n // 3).bit_length(), 1)


@kernel(EXACT, inline=True)
def _place(node, word, mask):
    key = np.uint64(node) * FIRST_FACTOR + np.uint64(word) * SECOND_FACTOR
    key = (key ^ (key >> np.uint64(32))) * FIRST_FACTOR
    return np.int64((key >> np.uint64(32)) & np.uint64(mask))


@kernel(EXACT)
def fill_table(model, n_histories):
    """Enter the children of the first nodes but the root.

    Args:
        model: The n-grams; its table is filled in.
        n_histories: Number of nodes that have children.
    """
    mask = model.table.shape[0] - 1
    for node in range(1, n_histories):
        for child in range(model.links[node, 0], model.links[node + 1, 0]):
            place = _place(node, model.grams[child, 0], mask)
            while model.table[place] > 0:
                place = (place + 1) & mask
            model.table[place] = child


@kernel(EXACT, inline=True)
def _hashed(model, node, word):
    """Return the child of a node, or -1, by the table."""
    mask = model.table.shape[0] - 1
    low, high = model.links[node, 0], model.links[node + 1, 0]
    place = _place(node, word, mask)
    child = model.table[place]
    while child > 0 and not (low <= child < high and model.grams[child, 0] == word):
        place = (place + 1) & mask
        child = model.table[place]
    return child if child > 0 else -1


@kernel(EXACT, inline=True)
def _searched(model, node, word):
    """Return the child of a node, or -1, by halving."""
    low, size = model.links[node, 0], model.links[node + 1, 0] - model.links[node, 0]
    if size <= 0:
        return -1
    while size > 1:
        half = size >> 1
        low += half if model.grams[low + half - 1, 0] < word else 0
        size -= half
    return low if model.grams[low, 0] == word else -1


@kernel(EXACT)
def score_tokens(model, least, begin, words, offsets, log_probs):
    """Compute the log probability of each word after the words of its sentence before it.

    Args:
        model: The n-grams.
        least: An n-gram of length m is there only if the longest shorter one that ends with the same word is least[m]
            or a later node, int32 [order + 1].
        begin: The node of the beginning of a sentence.
        words: Words of all sentences, their ends included; -1 is a word that the model cannot say.
        offsets: Where each sentence begins, int64 [sentences + 1].
        log_probs: [words], filled in.
    """  # [S2, n-gram]
    n = words.shape[0]
    history, longest = np.empty(n, np.int32), np.empty(n, np.int32)  # the words before each; the n-gram that it ends
    for s in range(offsets.shape[0] - 1):
        before = begin
        for i in range(offsets[s], offsets[s + 1]):
            history[i] = before
            longest[i] = before = words[i] + 1 if words[i] >= 0 else -1
            log_probs[i] = 0.0
    for length in range(2, least.shape[0]):
        for s in range(offsets.shape[0] - 1):
            before = -1
            for i in range(offsets[s], offsets[s + 1]):
                node, child = history[i], -1
                if node >= 0 and words[i] >= 0:
                    if longest[i] >= least[length]:
                        child = _hashed(model, node, words[i]) if length <= HASHED else _searched(model, node, words[i])
                    if child >= 0:
                        longest[i], log_probs[i] = child, 0.0
                    else:
                        log_probs[i] += model.link_weights[node, 1]
                history[i] = before
                before = child
    for i in range(n):
        log_probs[i] = log_probs[i] + model.gram_weights[longest[i], 1] if longest[i] >= 0 else -np.inf
