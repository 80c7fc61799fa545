"""n-gram models as flat arrays: a trie of back-off weights, estimated from counts.

Every n-gram that was seen is a node of the trie, and so is every history: node 0 is the empty history, node w + 1 the
word w, and the children of a node, the words seen after it, are [first[node], first[node + 1]), in the order of their
numbers.

    p(w | h) = own(h w) + backoff(h) p(w | h'),   h' = h without its oldest word

Modified Kneser-Ney: own = max(c(h w) - D, 0) / c(h), where counts below the highest order are numbers of different
words before an n-gram, and D is one of three discounts for n-grams counted once, twice, and more often. Kneser and Ney
(1995), Improved backing-off for m-gram language modeling; Chen and Goodman (1999), An empirical study of smoothing
techniques for language modeling; Witten and Bell (1991), The zero-frequency problem; Brants et al. (2007), Large
language models in machine translation ("stupid" back-off, whose scores are no probabilities).
"""  # [S2, n-gram]

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.ngram_counts import NgramLevel, count_levels, padded

ROOT = 0
DEFAULT_DISCOUNTS = (0.5, 0.75, 0.9)  # where too few n-grams were seen to estimate them
METHODS = ("witten-bell", "absolute", "kneser-ney", "stupid")
STUPID = 0.4  # the back-off weight of every history


class NgramArrays(NamedTuple):
    """A back-off model. Words are 0..n_words - 1, then END, then BEGIN.

    `first` and `log_backoff` may end with the nodes that can have children, those below the highest order.
    """

    word: Array  # int32 [node]: the last word of each n-gram
    first: Array  # int32 [node + 1]: its first child
    suffix: Array  # int32 [node]: the n-gram without its oldest word, or the longest suffix that is there
    log_prob: Array  # [node]: log p(last word | the words before it)
    log_backoff: Array  # [node]: of the n-gram as a history; 0 where nothing was seen after it
    n_words: int

    @property
    def end(self) -> int:
        """Return the number of END."""
        return self.n_words

    @property
    def begin(self) -> int:
        """Return the node of BEGIN."""
        return self.n_words + 2

    @property
    def starts(self) -> Array:
        """Return the first node of each length, and one beyond the last: the children of a length are the next one."""
        starts = [0, 1]
        while starts[-1] < len(self.word):
            starts.append(int(self.first[starts[-1]]))
        return np.array(starts, np.int64)

    @property
    def parent(self) -> Array:
        """Return the node of all words but the last, of each node; -1 for the root."""
        inner = np.arange(len(self.first) - 1, dtype=np.int32)
        return np.concatenate([[-1], np.repeat(inner, np.diff(self.first))])

    def kept(self, keep: Array) -> NgramArrays:
        """Return the model with some of its nodes, which include all single words and the parents of those kept."""
        number, suffix = np.cumsum(keep) - 1, self.suffix[keep]
        while not keep[suffix].all():
            suffix = np.where(keep[suffix], suffix, self.suffix[suffix])
        first = first_children(number[self.parent[keep][1:]], int(keep.sum()))
        backoff = self.log_backoff[keep[: len(self.log_backoff)]]
        return NgramArrays(
            self.word[keep], first[: len(backoff) + 1], number[suffix].astype(np.int32), self.log_prob[keep], backoff,
            self.n_words,
        )  # fmt: skip

    def stored(self) -> NgramArrays:
        """Return the model with weights of 32 bits, and without what the n-grams of the highest order do not need."""
        inner = int(self.starts[-2]) if len(self.starts) > 2 else 1
        weights = self.log_prob.astype(np.float32), self.log_backoff[:inner].astype(np.float32)
        return NgramArrays(self.word, self.first[: inner + 1], self.suffix, *weights, self.n_words)


def first_children(parents: Array, n: int) -> Array:
    """Return the first child of each of n nodes, and the end of the last, from the sorted parents of nodes 1 to n."""
    return np.concatenate([[1], 1 + np.cumsum(np.bincount(parents, minlength=n))]).astype(np.int32)


def histories(arrays: NgramArrays) -> Array:
    """Return which nodes tell more about the next word than their suffixes: they have children or a weight."""
    tells = np.zeros(len(arrays.word), bool)
    tells[: len(arrays.log_backoff)] = (np.diff(arrays.first) > 0) | (arrays.log_backoff != 0)
    tells[ROOT] = True
    return tells


def states_of(arrays: NgramArrays) -> Array:
    """Return for each node the longest suffix on which the next word depends."""
    tells, suffix = histories(arrays), arrays.suffix
    state = np.where(tells, np.arange(len(tells), dtype=np.int32), suffix)
    while not tells[state].all():  # as often as the order is long
        state = np.where(tells[state], state, suffix[state])
    return state


def estimate(
    sequences: Sequence[Array],
    n_words: int,
    order: int,
    *,
    smoothing: str = "kneser-ney",
    discount: float | None = None,
    cutoffs: Sequence[int] = (),
    levels: Sequence[NgramLevel] | None = None,
) -> NgramArrays:
    """Return a model of sequences of word numbers; words that were never seen get a share of the unigrams'.

    Args:
        sequences: the sentences, arrays of word numbers in 0..n_words-1.
        n_words: size of the vocabulary.
        order: length of the longest n-grams.
        smoothing: "kneser-ney", "absolute", "witten-bell" or "stupid".
        discount: what is taken off each count; None to estimate it.
        cutoffs: the least count of n-grams of each length, which must not fall; the last one holds for all longer ones.
        levels: the counts of the sequences, if they are known; None to count.

    Returns:
        The model as arrays.
    """  # [S2, n-gram]
    if levels is None:
        levels = count_levels(padded(sequences, n_words), n_words, order)
    counts = _continuations(levels) if smoothing == "kneser-ney" else [level.seen.astype(float) for level in levels]
    counts[0][n_words + 1] = 0.0  # BEGIN is never predicted
    offsets = np.cumsum([1, *(len(level.word) for level in levels)])
    n = int(offsets[-1])
    prob, backoff, keep = np.ones(n), np.ones(n), np.ones(n, bool)
    shorter, before = np.full(n_words + 2, 1.0 / (n_words + 1)), 0
    for i, (level, count) in enumerate(zip(levels, counts, strict=True)):
        nodes = slice(offsets[i], offsets[i + 1])
        parents = level.history - before
        own, left, seen = _shares(parents, count, smoothing, discount)
        if i > 0 and (least := _least(cutoffs, i)) > 1:
            keep[nodes] = level.seen >= least
            left += np.bincount(parents, np.where(keep[nodes], 0.0, own), len(left))
            own[~keep[nodes]] = 0.0
        histories = slice(before, before + len(left))
        backoff[histories] = np.where(seen, left, 1.0)
        below = shorter if i == 0 else prob[level.suffix]
        prob[nodes] = own + backoff[histories][parents] * below
        if smoothing == "stupid":
            prob[nodes] = np.where(own > 0, own, prob[nodes])
        before = int(offsets[i])
    prob[n_words + 2], backoff[ROOT] = 0.0, 1.0
    word = np.concatenate([[-1], *(level.word for level in levels)]).astype(np.int32)
    suffix = np.concatenate([[0], *(level.suffix for level in levels)]).astype(np.int32)
    first = first_children(np.concatenate([level.history for level in levels]), n)
    with np.errstate(divide="ignore"):
        arrays = NgramArrays(word, first, suffix, np.log(prob, out=prob), np.log(backoff, out=backoff), n_words)
    if keep.all():
        return arrays
    arrays = arrays.kept(keep)
    arrays.log_backoff[np.diff(arrays.first) == 0] = 0.0
    return arrays


def _least(cutoffs: Sequence[int], i: int) -> int:
    return cutoffs[min(i, len(cutoffs) - 1)] if cutoffs else 1


def _shares(history: Array, count: Array, smoothing: str, discount: float | None) -> tuple[Array, Array, Array]:
    """Return the share of each n-gram, and by history the share left over, and whether anything was seen after it."""
    n = int(history[-1]) + 1
    total = np.bincount(history, count, n)
    seen = total > 0
    total[~seen] = 1.0
    if smoothing == "witten-bell":
        kinds = np.bincount(history[count > 0], minlength=n)
        return count / (total + kinds)[history], kinds / (total + kinds), seen
    if smoothing == "stupid":
        return count / total[history], np.full(n, STUPID), seen
    three = (discount,) * 3 if discount is not None else discounts(count, single=smoothing == "absolute")
    off = np.array([0.0, *three])[np.minimum(count, 3).astype(np.int8)]
    return (count - off) / total[history], np.bincount(history, off, n) / total, seen


def _continuations(levels: Sequence[NgramLevel]) -> list[Array]:
    """Return Kneser-Ney's counts: below the highest order, how many different words precede an n-gram.

    Nothing precedes BEGIN: what begins with it keeps its own count.
    """
    offsets = np.cumsum([1, *(len(level.word) for level in levels)])
    counts, begins = [], np.arange(len(levels[0].word)) == len(levels[0].word) - 1
    for i, level in enumerate(levels):
        count = level.seen.astype(np.float64)
        if i > 0:
            begins = begins[level.history - offsets[i - 1]]
        if i + 1 < len(levels):
            preceding = np.bincount(levels[i + 1].suffix - offsets[i], minlength=len(count))
            count = np.where(begins, count, preceding)
        counts.append(count)
    return counts


def discounts(count: Array, *, single: bool = False) -> tuple[float, float, float]:
    """Return what is taken from n-grams counted once, twice, and more often: Chen and Goodman's estimates.

    They fall back on fixed values where too few n-grams were seen, or the estimates lie outside of [0, count). A
    single discount is n1 / (n1 + 2 n2), or 1/2.
    """
    n1, n2, n3, n4 = (int((count == k).sum()) for k in (1, 2, 3, 4))
    if single:
        return (n1 / (n1 + 2 * n2) if n1 and n2 else 0.5,) * 3
    if not min(n1, n2, n3, n4):
        return DEFAULT_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    estimates = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    fits = [0 < each < k for k, each in enumerate(estimates, 1)]
    return tuple(a if fit else b for a, b, fit in zip(estimates, DEFAULT_DISCOUNTS, fits, strict=True))  # type: ignore[return-value]


def check_smoothing(method: str, order: object, discount: float | None = None, cutoffs: Sequence[int] = ()) -> None:
    """Refuse what no model can be estimated with.

    Args:
        method: name of the smoothing.
        order: length of the longest n-grams.
        discount: what is taken off each count; None to estimate it.
        cutoffs: the least count of n-grams of each length.
    """
    if method not in METHODS or not isinstance(order, int) or order < 1:
        raise ScoreError(f"method must be one of {METHODS} and order at least 1; got {method!r} and {order}")
    if discount is not None and not 0 < discount < 1:
        raise ScoreError(f"discount must lie between 0 and 1; got {discount}; leave it out to estimate it")
    if list(cutoffs) != sorted(cutoffs) or min(cutoffs, default=1) < 1:
        raise ScoreError(f"count cut-offs must be at least 1 and must not fall; got {','.join(map(str, cutoffs))}")
