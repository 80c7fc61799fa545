"""A trie of n-grams from lists of them, as files have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.ngram_arrays import NgramArrays, first_children


class Grams(NamedTuple):
    """The n-grams of one length in any order, none of them twice."""

    words: Array  # int32 [n-gram, word]
    log_prob: Array
    log_backoff: Array


class _Trie:
    """The nodes of the lengths that are there so far; n-grams of one length are sorted by their keys."""

    def __init__(self, size: int) -> None:
        self.size, self.keys, self.starts = size, [np.arange(size, dtype=np.int64)], [0, 1]

    def nodes(self, words: Array) -> Array:
        """Return the node of each row of words, -1 where it is missing."""
        node = np.zeros(len(words), np.int64)
        for i, keys in enumerate(self.keys[: words.shape[1]]):
            wanted = node * self.size + words[:, i]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            node = np.where((node >= 0) & (keys[at] == wanted), at + self.starts[i + 1], -1)
        return node

    def add(self, keys: Array) -> None:
        self.starts.append(self.starts[-1] + len(self.keys[-1]))
        self.keys.append(keys)


def trie_of(grams: Sequence[Grams], n_words: int) -> NgramArrays:
    """Return the model of n-grams of the lengths 1, 2, ...; all words, END and BEGIN are among the first.

    An n-gram that longer ones begin with and that is missing has the probability that backing off gives it.
    """
    grams = list(grams)
    while (made := _attempt(grams, n_words)) is None:
        pass
    return made


def _attempt(grams: list[Grams], n_words: int) -> NgramArrays | None:
    """Return the model, or None after adding what longer n-grams begin with to the shorter ones."""
    trie, first = _Trie(n_words + 2), np.argsort(grams[0].words[:, 0])
    parts = [[np.array([-1]), grams[0].words[first, 0]], [np.zeros(1, np.int64), np.zeros(len(first), np.int64)],
             [np.zeros(1), grams[0].log_prob[first]], [np.zeros(1), grams[0].log_backoff[first]], []]  # fmt: skip
    parts[4] = [np.zeros(n_words + 2, np.int64)]
    for length, each in enumerate(grams[1:], 2):
        before = trie.nodes(each.words[:, :-1])
        if (before < 0).any():
            lacking = np.unique(each.words[before < 0, :-1], axis=0)
            unknown = np.full(len(lacking), np.nan)
            shorter = grams[length - 2]
            grams[length - 2] = Grams(
                np.concatenate([shorter.words, lacking]), np.concatenate([shorter.log_prob, unknown]),
                np.concatenate([shorter.log_backoff, np.zeros(len(lacking))]),
            )  # fmt: skip
            return None
        keys = before * trie.size + each.words[:, -1]
        order = np.argsort(keys)
        suffix = np.zeros(len(keys), np.int64)
        for start in range(1, length):
            missing = np.flatnonzero(suffix == 0)
            suffix[missing] = np.maximum(trie.nodes(each.words[missing, start:]), 0)
        columns = each.words[order, -1], suffix[order], each.log_prob[order], each.log_backoff[order], before[order]
        for part, column in zip(parts, columns, strict=True):
            part.append(column)
        trie.add(keys[order])
    word, suffix, log_prob, log_backoff, parents = (np.concatenate(part) for part in parts)
    made = NgramArrays(
        word.astype(np.int32), first_children(parents, len(word)), suffix.astype(np.int32), log_prob, log_backoff,
        n_words,
    )  # fmt: skip
    return _complete(made, parents)


def _complete(arrays: NgramArrays, parents: Array) -> NgramArrays:
    """Give the n-grams without a probability that of backing off; the shortest come first."""
    for node in np.flatnonzero(np.isnan(arrays.log_prob)).tolist():
        history, total = int(parents[node - 1]), 0.0
        while True:
            total += float(arrays.log_backoff[history])
            history = int(arrays.suffix[history])
            low, high = arrays.first[history], arrays.first[history + 1]
            at = low + int(np.searchsorted(arrays.word[low:high], arrays.word[node]))
            if at < high and arrays.word[at] == arrays.word[node]:
                arrays.log_prob[node] = total + arrays.log_prob[at]
                break
    return arrays
