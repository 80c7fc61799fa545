"""Skip-gram with negative sampling, and the character n-grams of words, as kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_random import uniform

WATCHED = 16  # the loss is computed for one word in so many, since logarithms cost more than the rest


class Bags(NamedTuple):
    """The rows of each word: its own, and those of its character n-grams, rows[indptr[w]:indptr[w + 1]]."""

    indptr: Array
    rows: Array


class AliasTable(NamedTuple):
    """A distribution to draw from in constant time: i if a uniform number is below share[i], alias[i] otherwise.

    Walker (1977), An efficient method for generating discrete random variables with general distributions.
    """

    share: Array
    alias: Array


class SkipGram(NamedTuple):
    """Arrays that a pass over the text reads and changes.

    `keep` is the probability that an occurrence of a word is kept, `inputs` are the vectors of rows and `outputs` those
    of context words.
    """

    keep: Array
    bags: Bags
    noise: AliasTable
    inputs: Array
    outputs: Array


class Pace(NamedTuple):
    """Sizes, and the learning rate, which falls linearly from `rate` to 0 over `total` tokens; `done` are behind."""

    window: int
    negatives: int
    rate: float
    done: int
    total: int


@kernel(EXACT)
def hash_ngrams(text, ends, shortest, longest, n_buckets, indptr, buckets):
    """Fill in the buckets of the character n-grams of words, from `indptr[i]` on; without buckets, count them.

    Word i is text[ends[i]:ends[i + 1]], in UTF-8 between angle brackets. An n-gram is the whole word never. The hash is
    FNV-1a of 32 bits over the bytes.

    Args:
        text: The bytes of all words, uint8.
        ends: Start of each word, and the end of the last, int64 [words + 1].
        shortest: Characters of the shortest n-grams.
        longest: Characters of the longest ones.
        n_buckets: Number of buckets.
        indptr: Start of the n-grams of each word, and the end of the last, int64 [words + 1], filled in.
        buckets: Bucket of each n-gram, int64, filled in; of length 0 to count them.
    """
    n_all, write = 0, buckets.shape[0] > 0
    for i in range(ends.shape[0] - 1):
        low, high = ends[i], ends[i + 1]
        indptr[i] = n_all
        for start in range(low, high):
            if (text[start] & 0xC0) == 0x80:
                continue
            value, at, n = np.uint64(2166136261), start, 0
            while at < high and n < longest:
                value = ((value ^ np.uint64(text[at])) * np.uint64(16777619)) & np.uint64(0xFFFFFFFF)
                at += 1
                while at < high and (text[at] & 0xC0) == 0x80:
                    value = ((value ^ np.uint64(text[at])) * np.uint64(16777619)) & np.uint64(0xFFFFFFFF)
                    at += 1
                n += 1
                if n >= shortest and not (start == low and at == high):
                    if write:
                        buckets[n_all] = value % np.uint64(n_buckets)
                    n_all += 1
    indptr[ends.shape[0] - 1] = n_all


@kernel(EXACT, inline=True)
def draw_noise(noise, state):
    """Return a word by its share of the noise."""
    place = uniform(state) * noise.share.shape[0]
    i = np.int64(place)
    return i if place - i < noise.share[i] else np.int64(noise.alias[i])


@kernel(FAST)
def skip_gram(model, tokens, offsets, first, last, pace, state, seen):
    """Learn from sentences [first, last): each word predicts those in a window of random width, and not the noise.

    Sentence s is tokens[offsets[s]:offsets[s + 1]]; numbers without a vector are left out. A word moves once for all
    words in its window. `seen` adds up the losses that are watched, and how many they are.

    Args:
        model: The arrays; `inputs` and `outputs` are changed in place.
        tokens: Numbers of words, int32.
        offsets: Start of each sentence, and the end of the last, int64 [sentences + 1].
        first: The first sentence.
        last: The sentence to stop before.
        pace: Sizes and learning rate; `done` are the tokens of earlier calls, in all epochs.
        state: State of the random numbers, uint64 [1], changed in place.
        seen: Sum of the watched losses, and their number, float64 [2], added to.
    """  # [S4.460, 462, 464]
    dim, longest = model.inputs.shape[1], 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    line, hidden, change = np.empty(longest, np.int64), np.empty(dim, np.float32), np.empty(dim, np.float32)
    done = pace.done
    for s in range(first, last):
        n = 0
        for i in range(offsets[s], offsets[s + 1]):
            word = tokens[i]
            if word < model.keep.shape[0] and uniform(state) < model.keep[word]:
                line[n] = word
                n += 1
        rate = np.float32(pace.rate * max(1.0 - done / pace.total, 1e-4))
        done += offsets[s + 1] - offsets[s]
        for i in range(n):
            width = 1 + np.int64(uniform(state) * pace.window)
            low, high = max(i - width, 0), min(i + width + 1, n)
            if high - low < 2:
                continue
            bag = model.bags.rows[model.bags.indptr[line[i]] : model.bags.indptr[line[i] + 1]]
            _mean(model.inputs, bag, hidden)
            change[:] = 0
            for j in range(low, high):
                if j != i:
                    loss = _learn_pair(model, line[j], hidden, change, rate, pace.negatives, state, i % WATCHED == 0)
                    seen[0] += loss
                    seen[1] += 1.0 if i % WATCHED == 0 else 0.0
            for row in bag:
                for d in range(dim):
                    model.inputs[row, d] += change[d]


@kernel(FAST, inline=True)
def _mean(inputs, bag, hidden):
    hidden[:] = 0
    for row in bag:
        for d in range(hidden.shape[0]):
            hidden[d] += inputs[row, d]
    share = np.float32(1.0 / bag.shape[0])
    for d in range(hidden.shape[0]):
        hidden[d] *= share


@kernel(FAST, inline=True)
def _learn_pair(model, context, hidden, change, rate, negatives, state, watched):
    """Move the context word and words of noise; add to the change of the word, and return the loss if it is watched."""
    total = 0.0
    for k in range(negatives + 1):
        other = context if k == 0 else draw_noise(model.noise, state)
        if k > 0 and other == context:
            continue
        score = np.float32(0.0)
        for d in range(hidden.shape[0]):
            score += hidden[d] * model.outputs[other, d]
        p = np.float32(1.0) / (np.float32(1.0) + np.exp(-score))
        step = rate * ((np.float32(1.0) if k == 0 else np.float32(0.0)) - p)
        if watched:
            total += np.log1p(np.exp(np.float64(-score if k == 0 else score)))
        for d in range(hidden.shape[0]):
            change[d] += step * model.outputs[other, d]
            model.outputs[other, d] += step * hidden[d]
    return total
