"""n-gram models of hundreds of thousands of sequences: modified Kneser-Ney smoothing over sorted arrays.

Every n-gram that was seen is a node of a trie, and so is every history: node 0 is the empty history, and the children
of a node, the words seen after it, are [first[node], first[node + 1]), in the order of their numbers.

    p(w | h) = max(c(h w) - D, 0) / c(h) + backoff(h) p(w | h'),   h' = h without its oldest word

Counts below the highest order are numbers of different words before an n-gram, and D is one of three discounts for
n-grams counted once, twice, and more often. Kneser and Ney (1995), Improved backing-off for m-gram language modeling;
Chen and Goodman (1999), An empirical study of smoothing techniques for language modeling.
"""  # [S2, n-gram]

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
ROOT = 0
DEFAULT_DISCOUNTS = (0.5, 0.75, 0.9)  # where too few n-grams were seen to estimate them


class NgramArrays(NamedTuple):
    """A back-off model. Words are 0..n_words - 1, then END, then BEGIN."""

    word: Array  # int32 [node]: the last word of each n-gram
    first: Array  # int32 [node + 1]: its first child
    suffix: Array  # int32 [node]: the n-gram without its oldest word
    prob: Array  # float64 [node]: p(last word | the words before it)
    backoff: Array  # float64 [node]: of the n-gram as a history; 1 where nothing was seen after it
    state: Array  # int32 [node]: the longest suffix after which something was seen
    begin: int  # the node of BEGIN
    n_words: int

    @property
    def end(self) -> int:
        """The number of END."""
        return self.n_words


class _Level(NamedTuple):
    """The n-grams of one length."""

    word: Array
    history: Array  # the node of all words but the last
    suffix: Array
    seen: Array  # how often


def estimate(sequences: Sequence[Array], n_words: int, order: int) -> NgramArrays:
    """An interpolated model of sequences of word numbers; words that were never seen get a share of the unigrams'."""
    # [S2, n-gram]
    levels = _levels(sequences, n_words, order)
    counts = _continuations(levels, n_words)
    sizes = [1, *(len(level.word) for level in levels)]
    offsets = np.cumsum([0, *sizes])
    n = int(offsets[-1])
    word = np.concatenate([np.array([-1]), *(level.word for level in levels)]).astype(np.int32)
    suffix = np.concatenate([np.array([0]), *(level.suffix for level in levels)]).astype(np.int32)
    history = np.concatenate([np.array([-1]), *(level.history for level in levels)])
    first = np.searchsorted(history[1:], np.arange(n + 1)).astype(np.int32) + 1
    prob, backoff = np.ones(n), np.ones(n)
    for length, (level, count) in enumerate(zip(levels, counts, strict=True), 1):
        nodes = np.arange(offsets[length], offsets[length + 1])
        own, left = _discounted(level.history, count, n)
        seen = np.flatnonzero(left)
        backoff[seen] = left[seen]
        shorter = np.full(len(nodes), 1.0 / (n_words + 1)) if length == 1 else prob[level.suffix]
        prob[nodes] = own + backoff[level.history] * shorter
        if length == 1:
            prob[nodes[-1]] = 0.0  # BEGIN is never predicted
    backoff[ROOT] = 1.0
    return NgramArrays(word, first, suffix, prob, backoff, states_of(first, suffix), int(offsets[2]) - 1, n_words)


def states_of(first: Array, suffix: Array) -> Array:
    """For each node the longest suffix that has children: what follows depends on no more."""
    state = np.arange(len(suffix), dtype=np.int32)
    without = first[1:] == first[:-1]
    state[without] = suffix[without]
    while True:  # as often as the order is long
        further = state[state]
        if np.array_equal(further, state):
            return state
        state = further


def _levels(sequences: Sequence[Array], n_words: int, order: int) -> list[_Level]:
    """All n-grams with their counts; those of one length are sorted by history and word, so that children adjoin."""
    begin, end = n_words + 1, n_words
    lengths = np.array([len(each) + 2 for each in sequences])
    tokens = np.concatenate([np.concatenate(([begin], each, [end])) for each in sequences]).astype(np.int64)
    within = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # the place in its sequence
    raw = np.bincount(tokens, minlength=n_words + 2)
    levels = [_Level(np.arange(n_words + 2), np.zeros(n_words + 2, np.int64), np.zeros(n_words + 2, np.int64), raw)]
    node, offset = tokens + 1, n_words + 3  # the node of the n-gram that ends at each token, where there is one
    for length in range(2, order + 1):
        at = np.flatnonzero(within >= length - 1)
        if not len(at):
            break
        keys, where, inverse, count = np.unique(
            node[at - 1] * (n_words + 2) + tokens[at], return_index=True, return_inverse=True, return_counts=True
        )
        levels.append(_Level(keys % (n_words + 2), keys // (n_words + 2), node[at[where]], count))
        longer = node.copy()
        longer[at] = inverse + offset
        node, offset = longer, offset + len(keys)
    return levels


def _continuations(levels: Sequence[_Level], n_words: int) -> list[Array]:
    """Kneser-Ney's counts: below the highest order, how many different words precede an n-gram.

    Nothing precedes BEGIN: what begins with it keeps its own count.
    """
    offsets = np.cumsum([1, *(len(level.word) for level in levels)])
    counts, begins = [], np.arange(n_words + 2) == n_words + 1
    for i, level in enumerate(levels):
        count = level.seen.astype(np.float64)
        if i > 0:
            begins = begins[level.history - offsets[i - 1]]
        if i + 1 < len(levels):
            preceding = np.bincount(levels[i + 1].suffix - offsets[i], minlength=len(count))
            count = np.where(begins, count, preceding)
        if i == 0:
            count[-1] = 0.0
        counts.append(count)
    return counts


def _discounted(history: Array, count: Array, n: int) -> tuple[Array, Array]:
    """The discounted share of each n-gram, and by history the share that is left over."""
    kind = np.minimum(count, 3).astype(np.int64)
    off = np.array([0.0, *discounts(count)])[kind]
    total = np.bincount(history, count, n)
    left: Array = np.bincount(history, off, n)
    left[total > 0] /= total[total > 0]
    return (count - off) / np.maximum(total, 1.0)[history], left


def discounts(count: Array) -> tuple[float, float, float]:
    """What is taken from n-grams counted once, twice, and more often: Chen and Goodman's estimates.

    They fall back on fixed values where too few n-grams were seen, or the estimates lie outside of [0, count).
    """
    n1, n2, n3, n4 = (int((count == k).sum()) for k in (1, 2, 3, 4))
    if not min(n1, n2, n3, n4):
        return DEFAULT_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    fits = [0 < each < k for k, each in enumerate(found, 1)]
    return tuple(a if fit else b for a, b, fit in zip(found, DEFAULT_DISCOUNTS, fits, strict=True))  # type: ignore[return-value]
