"""Vectors of words: skip-gram with negative sampling, or shifted PMI and a singular value decomposition.

Mikolov et al. (2013), Distributed representations of words and phrases and their compositionality; Bojanowski et al.
(2017), Enriching word vectors with subword information; Levy and Goldberg (2014), Neural word embedding as implicit
matrix factorization; Yin and Shen (2018), On the dimensionality of word embedding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.models.language.config import VectorConfig
from trelliswork.models.language.corpus import Corpus
from trelliswork.models.language.vector_kernels import AliasTable, Bags, Pace, SkipGram, hash_ngrams, skip_gram
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.threads import side_by_side
from trelliswork.training.progress import Progress

if TYPE_CHECKING:
    from scipy.sparse import csr_array

sparse, sparse_linalg = lazy_module("scipy.sparse"), lazy_module("scipy.sparse.linalg")
NOISE_EXPONENT = 0.75  # of the counts of words, in noise and in the probabilities of contexts
AT_A_TIME = 100_000  # tokens of a call, between which Ctrl-C works
COUNTED_AT_A_TIME = 1 << 22  # tokens
DENSE = 500  # words at most whose matrix is decomposed as a whole


class WordRows(NamedTuple):
    """Vectors of words and, below them, of buckets of character n-grams, in the order of their numbers."""

    matrix: Array  # float32 [words + buckets, dim]
    buckets: Array  # int64, rising


class Text(NamedTuple):
    """Sentences tokens[offsets[s]:offsets[s + 1]]; numbers from `n_words` on have no vector."""

    tokens: Array
    offsets: Array
    counts: Array  # of the words with a vector

    @classmethod
    def of(cls, corpus: Corpus) -> Text:
        """Return a corpus without its unknown words."""
        counts = np.asarray(corpus.counts[:-1], np.int64)  # <unk> is the last unit
        if not len(counts):
            problem = "expected words that are frequent enough to learn a vector, got none"
            raise TrellisworkError(f"{problem}; give more text or lower --least-count")
        begins = np.flatnonzero(corpus.tokens == len(corpus.names) + 1)
        return cls(corpus.tokens, np.append(begins, len(corpus.tokens)), counts)


def buckets_of(words: Sequence[str], config: VectorConfig) -> Bags:
    """Return the buckets of the character n-grams of words, as `rows`."""
    texts = [f"<{word}>".encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([0, *map(len, texts)])
    text, indptr = np.frombuffer(b"".join(texts) or b"\0", np.uint8), np.zeros(len(words) + 1, np.int64)
    sizes = (config.min_ngram, config.max_ngram, config.buckets)
    hash_ngrams(text, ends, *sizes, indptr, np.empty(0, np.int64))
    buckets = np.empty(indptr[-1], np.int64)
    if len(buckets):
        hash_ngrams(text, ends, *sizes, indptr, buckets)
    return Bags(indptr, buckets)


def bags_of(words: Sequence[str], config: VectorConfig) -> tuple[Bags, Array]:
    """Return the rows of each word, its own first, and the buckets that have rows: those of these words."""
    ngrams = buckets_of(words, config)
    used, row = np.unique(ngrams.rows, return_inverse=True)
    indptr = ngrams.indptr + np.arange(len(words) + 1)
    rows = np.insert(row + len(words), ngrams.indptr[:-1], np.arange(len(words)))
    return Bags(indptr, rows.astype(np.int64)), used


def alias_table(weights: Array) -> AliasTable:
    """Return what draws in proportion to weights.

    >>> alias_table(np.array([1.0, 3.0]))
    AliasTable(share=array([0.5, 1. ]), alias=array([1, 1]))
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights))
    alias, low = np.arange(len(share)), [i for i, each in enumerate(share) if each < 1]
    high = [i for i, each in enumerate(share) if each >= 1]
    while low and high:
        small, large = low.pop(), high[-1]
        alias[small] = large
        share[large] -= 1 - share[small]
        if share[large] < 1:
            low.append(high.pop())
    share[low + high] = 1.0  # what is left differs by rounding
    return AliasTable(share, alias)


def kept_shares(counts: Array, threshold: float) -> Array:
    """Return the probability that an occurrence of a word is kept: sqrt(t / f) + t / f for frequency f, and at most 1.

    Args:
        counts: How often each word occurs.
        threshold: The frequency t from which on words are left out now and then; 0 keeps all.
    """
    frequency = counts / counts.sum()
    return np.minimum(np.sqrt(threshold / frequency) + threshold / frequency, 1) if threshold else np.ones(len(counts))


def begin_skip_gram(text: Text, words: Sequence[str], config: VectorConfig, seed: int) -> tuple[SkipGram, Array]:
    """Return a model before its first step, and the buckets that have rows.

    Args:
        text: What is learned from.
        words: The words with a vector.
        config: The settings.
        seed: Seed of the first vectors.

    Returns:
        The model, and the buckets, int64, rising.
    """
    bags, used = bags_of(words, config)
    generator, shape = np.random.default_rng(seed), (len(words) + len(used), config.dim)
    inputs = generator.random(shape, np.float32)
    inputs -= 0.5
    inputs *= 2 / config.dim
    noise = alias_table(text.counts**NOISE_EXPONENT)
    outputs = np.zeros((len(words), config.dim), np.float32)
    return SkipGram(kept_shares(text.counts, config.subsample), bags, noise, inputs, outputs), used


def learn_skip_gram(
    text: Text, words: Sequence[str], config: VectorConfig, *, seed: int, threads: int, progress: Progress
) -> WordRows:
    """Return vectors by skip-gram with negative sampling.

    With several threads, all change the same vectors without waiting for one another, and results vary.

    Args:
        text: What is learned from.
        words: The words with a vector.
        config: The settings.
        seed: Seed of the first vectors, of windows and of noise.
        threads: Number of threads.
        progress: Receives a report of each epoch.
    """
    model, used = begin_skip_gram(text, words, config, seed)
    total, done = config.epochs * len(text.tokens), 0
    states = [np.array([(seed * 1_000_003 + thread + 1) % 2**64], np.uint64) for thread in range(threads)]
    parts = np.unique(np.append(np.searchsorted(text.offsets, np.arange(0, len(text.tokens), AT_A_TIME * threads)),
                                len(text.offsets) - 1))  # fmt: skip
    for epoch in range(1, config.epochs + 1):
        began, seen = time.perf_counter(), np.zeros((threads, 2))
        for first, last in pairwise(parts.tolist()):
            bounds = np.linspace(first, last, threads + 1).astype(int).tolist()
            pace = Pace(config.window, config.negatives, config.lr, done, total)
            side_by_side([
                partial(skip_gram, model, text.tokens, text.offsets, low, high, pace, states[thread], seen[thread])
                for thread, (low, high) in enumerate(pairwise(bounds))
            ])  # fmt: skip
            done += int(text.offsets[last] - text.offsets[first])
        loss, n_losses = seen.sum(0).tolist()
        if not np.isfinite(loss):
            raise TrellisworkError(f"the vectors grew without bound in epoch {epoch}; try a lower rate, as --lr 0.05")
        _report(progress, epoch, config.epochs, loss / max(n_losses, 1), len(text.tokens), time.perf_counter() - began)
    return WordRows(model.inputs, used)


def _report(progress: Progress, epoch: int, epochs: int, loss: float, n_tokens: int, seconds: float) -> None:
    speed = n_tokens / max(seconds, 1e-9)
    line = f"epoch {epoch} of {epochs}: loss {loss:.4f}, {speed:,.0f} words/s"
    progress.iteration(epoch, line, most=epochs, stays=True, loss=loss, words_per_second=round(speed))


# Counting.


def count_pairs(text: Text, window: int) -> csr_array:
    """Return how often each word has each other in its window, as float64 [words, words].

    A pair at distance d counts (window - d + 1) / window, the share of random windows that reach it.
    """
    n = len(text.counts)
    known = np.where(text.tokens < n, text.tokens, -1)
    sentence = np.repeat(np.arange(len(text.offsets) - 1, dtype=np.int32), np.diff(text.offsets))[known >= 0]
    known = known[known >= 0]
    total = sparse.csr_array((n, n), dtype=np.float64)
    for first in range(0, len(known), COUNTED_AT_A_TIME):
        for distance in range(1, window + 1):
            end = max(min(first + COUNTED_AT_A_TIME, len(known) - distance), first)
            left, right = slice(first, end), slice(first + distance, end + distance)
            same = sentence[left] == sentence[right]
            pairs = known[left][same], known[right][same]
            share = np.full(len(pairs[0]), (window - distance + 1) / window)
            part = sparse.coo_array((share, pairs), shape=(n, n)).tocsr()
            total = total + part + part.T
    return total.tocsr()


def shifted_pmi(counts: csr_array, negatives: int) -> csr_array:
    """Return max(ln p(w, c) / (p(w) p'(c)) - ln k, 0) with p'(c) in proportion to #(c) to the power of 3/4."""
    pairs = counts.tocoo()
    of_word, of_context = np.asarray(pairs.sum(1)).ravel(), np.asarray(pairs.sum(0)).ravel() ** NOISE_EXPONENT
    row, column = pairs.coords
    ratio = pairs.data / (of_word[row] * (of_context / max(of_context.sum(), 1e-300))[column])
    values = np.log(ratio) - np.log(max(negatives, 1))
    kept = values > 0
    return sparse.coo_array((values[kept], (row[kept], column[kept])), shape=pairs.shape).tocsr()


def singular_values(matrix: csr_array, dim: int) -> tuple[Array, Array]:
    """Return U [words, k] and D [k], the largest singular value first; k is `dim`, or the number of words."""
    n = matrix.shape[0]
    if matrix.nnz == 0:
        return np.zeros((n, min(dim, n))), np.zeros(min(dim, n))
    if n <= max(dim + 1, DENSE):
        u, d, _ = np.linalg.svd(matrix.toarray())
        u, d = u[:, :dim], d[:dim]
    else:
        u, d, _ = sparse_linalg.svds(matrix, k=dim, v0=np.random.default_rng(0).random(n), solver="arpack")
        u, d = u[:, ::-1], d[::-1]
    signs = np.sign(u[np.abs(u).argmax(0), np.arange(u.shape[1])])
    return u * np.where(signs == 0, 1, signs), d


def pip_losses(measured: Array, noise: float, n: int, alpha: float) -> Array:
    """Return the expected PIP loss ‖E E' - Ê Ê'‖ of Ê = U_{1:k} D_{1:k}^α for each k from 1 on.

    Noise turns a true singular value d into λ = d + n σ² / d, and the square of the cosine between the true direction
    and the measured one is 1 - n σ² / d²; below 2 σ √n a measured value is noise alone. (Benaych-Georges and
    Nadakuditi, 2012, The singular values and vectors of low rank perturbations of large rectangular random matrices.)

    Args:
        measured: Singular values of the matrix with noise, λ, falling.
        noise: Standard deviation of its entries, σ.
        n: Number of words.
        alpha: The exponent of the singular values.
    """  # [S4.474-476]
    variance = n * noise**2
    true = (measured + np.sqrt(np.maximum(measured**2 - 4 * variance, 0))) / 2 * (measured**2 > 4 * variance)
    overlap = 1 - variance / np.where(true > 0, true, np.inf) ** 2
    powers, true_powers = measured ** (2 * alpha), np.where(true > 0, true, 0) ** (2 * alpha) * (true > 0)
    squares = (true_powers**2).sum() + np.cumsum(powers**2 - 2 * powers * true_powers * overlap)
    return np.sqrt(np.maximum(squares, 0))


def learn_sppmi(text: Text, config: VectorConfig, *, progress: Progress) -> WordRows:
    """Return vectors U D^α of the shifted positive PMI; with `fit_dim`, of the dimension with the least PIP loss.

    Args:
        text: What is learned from.
        config: The settings.
        progress: Receives a line about the dimension that was chosen.

    Returns:
        The vectors, float32 [words, dim], and no buckets.
    """
    matrix = shifted_pmi(count_pairs(text, config.window), config.negatives)
    u, d = singular_values(matrix, config.dim)
    if config.fit_dim:
        dim = _best_dim(text, config, d)
        progress.iteration(1, f"dimension {dim}, which has the least estimated PIP loss of 1 to {len(d)}", stays=True)
        u, d = u[:, :dim], d[:dim]
    vectors = np.zeros((len(u), config.dim if not config.fit_dim else len(d)), np.float32)
    vectors[:, : len(d)] = u * d**config.alpha  # [S4.474]
    return WordRows(vectors, np.empty(0, np.int64))


def _best_dim(text: Text, config: VectorConfig, d: Array) -> int:
    """Return the dimension with the least loss; the noise is what two halves of the text disagree about."""
    n_words, middle = len(text.counts), len(text.offsets) // 2
    if middle < 1 or len(text.offsets) < 3:
        return len(d)
    parts = (text.offsets[: middle + 1], text.offsets[middle:])
    halves = [shifted_pmi(count_pairs(text._replace(offsets=each - each[0], tokens=text.tokens[each[0] : each[-1]]),
                                      config.window), config.negatives) for each in parts]  # fmt: skip
    difference = halves[0] - halves[1]
    noise = 0.5 * float(np.sqrt((difference.data**2).sum())) / n_words
    return 1 + int(np.argmin(pip_losses(d, noise, n_words, config.alpha)))
