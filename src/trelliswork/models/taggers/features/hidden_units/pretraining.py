"""Pre-training: clusters of words in context are labels of unlabelled text; their W and b begin the real training.

Kim, Stratos and Sarikaya (2015), Pre-training of hidden-unit CRFs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.lazy import lazy_module
from trelliswork.models.taggers.features.hidden_units.learning import HiddenUnitLearner
from trelliswork.models.taggers.features.hidden_units.model import HiddenParameters
from trelliswork.models.taggers.features.learners.base import Corpus
from trelliswork.runtime.arrays import Array

OFFSETS = (-2, -1, 1, 2)


@dataclass(frozen=True)
class Pretraining:
    """Settings of the clusters of words, and of how long they are learned."""

    n_dimensions: int = 50
    clusters_a_label: int = 2  # coarse clusters make words of one kind alike; fine ones tell every word apart
    occurrences_of_a_sense: int = 50  # a word gets one more sense per this many occurrences
    max_epochs: int = 15
    seed: int = 0

    def first_weights(
        self, rows: AttributeRows, words: Array, parameters: HiddenParameters, learner: HiddenUnitLearner
    ) -> Array:
        """Return weights to begin with: θ = (W, b) of a model of the clusters, the others from scratch.

        Args:
            rows: attributes of the tokens.
            words: the number of each word, [tokens].
            parameters: the shape of the weights.
            learner: learns the clusters, with fewer epochs.

        Returns:
            All weights, flat.
        """
        # [S4.204-206]
        clusters = self.clusters(words, rows.lengths, parameters.n_labels)
        n_clusters = int(clusters.max()) + 1 if len(clusters) else 1
        of_clusters = HiddenParameters.dense(parameters.n_attributes, n_clusters, parameters.n_units)
        *_, last = replace(learner, max_epochs=self.max_epochs).learn(Corpus(rows, clusters), of_clusters)
        theta = of_clusters.units(last.weights)
        first = learner.first_units(parameters, np.random.default_rng(learner.seed))
        return first._replace(w=theta.w, b=theta.b).flat()

    def clusters(self, words: Array, lengths: Array, n_labels: int) -> Array:
        """Return a cluster for each token: that of its word's sense. Words are numbers.

        Each occurrence of a word is where its neighbours' projections point; the occurrences of one word are split
        into at most as many senses as there are labels, and the senses of all words into clusters.

        Args:
            words: the number of each word, [tokens].
            lengths: tokens of each sentence, [sentences].
            n_labels: most senses of a word.

        Returns:
            The clusters, [tokens].
        """
        # [S4, Multi-sense clustering]
        random = np.random.default_rng(self.seed)
        n_words = int(words.max()) + 1 if len(words) else 0
        contexts = _contexts(words, lengths, n_words)
        points = self._embedded(words, contexts, n_words)
        sense = np.zeros(len(words), np.int64)
        order = np.argsort(words, kind="stable")
        n_found = 0
        for tokens in np.split(order, np.cumsum(np.bincount(words, minlength=n_words))[:-1]):
            k = min(n_labels, len(tokens) // self.occurrences_of_a_sense + 1)
            within = k_means(points[tokens], k, random)[0] if k > 1 else np.zeros(len(tokens), np.int64)
            sense[tokens] = n_found + np.unique(within, return_inverse=True)[1]
            n_found = int(sense[tokens].max()) + 1 if len(tokens) else n_found
        centres = np.zeros((n_found, points.shape[1]))
        np.add.at(centres, sense, points)
        cluster_of = k_means(_unit_length(centres), self.clusters_a_label * n_labels, random, n_rounds=30)[0]
        return np.unique(cluster_of, return_inverse=True)[1][sense]

    def _embedded(self, words: Array, contexts: Array, n_words: int) -> Array:
        """Return word and neighbours of each token, projected: [tokens, 2 dimensions]."""
        x = np.repeat(words, contexts.shape[1])
        sizes = (n_words, len(OFFSETS) * (n_words + 1))
        a, b = cca(x, contexts.reshape(-1), sizes, self.n_dimensions, self.seed)
        return np.concatenate([_unit_length(a)[words], _unit_length(b[contexts].sum(1))], 1)


def _contexts(words: Array, lengths: Array, n_words: int) -> Array:
    """Return the word at each offset from each token, numbered by offset; the last number is beyond the sentence."""
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    contexts = np.empty((len(words), len(OFFSETS)), np.int64)
    for place, offset in enumerate(OFFSETS):
        at = np.arange(len(words)) + offset
        inside = (at >= 0) & (at < len(words))
        at = np.clip(at, 0, max(len(words) - 1, 0))
        inside &= sentence[at] == sentence
        contexts[:, place] = np.where(inside, words[at], n_words) + place * (n_words + 1)
    return contexts


def _unit_length(rows: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.where(norms > 0, norms, 1.0)
    return scaled


# Canonical correlation analysis of words and their neighbours [S4.207-211].


sparse, linalg = lazy_module("scipy.sparse"), lazy_module("scipy.sparse.linalg")


def cca(x: Array, y: Array, sizes: tuple[int, int], k: int, seed: int = 0) -> tuple[Array, Array]:
    """Return projections A [sizes[0], k] and B [sizes[1], k] of one-hot samples (x_l, y_l), given by number.

    D counts pairs, u and v what occurs; A = diag(u)^-½ U and B = diag(v)^-½ V project,
    with the singular vectors of diag(u)^-½ D diag(v)^-½. The first of these is constant (correlation 1,
    whatever the data) and says nothing: the k after it are taken (erratum 28). Fewer samples have fewer; the rest is 0.

    Args:
        x: number of the first of each pair of samples, [samples].
        y: number of the second, [samples].
        sizes: how many numbers there are of each.
        k: dimensions of the projections.
        seed: what the search for singular vectors begins with.

    Returns:
        Projections [numbers, k] of both.
    """
    # [S4, CCA], [S4.207-211]
    pairs = sparse.coo_matrix((np.ones(len(x)), (x, y)), shape=sizes).tocsr()
    u, v = np.bincount(x, minlength=sizes[0]), np.bincount(y, minlength=sizes[1])
    scale_x, scale_y = (1 / np.sqrt(np.maximum(count, 1)) for count in (u, v))
    omega = sparse.diags(scale_x) @ pairs @ sparse.diags(scale_y)
    left, right = _leading(omega, min(k + 1, *sizes), seed)
    a, b = np.zeros((sizes[0], k), np.float32), np.zeros((sizes[1], k), np.float32)
    n_found = left.shape[1] - 1
    a[:, :n_found], b[:, :n_found] = scale_x[:, None] * left[:, 1:], scale_y[:, None] * right[:, 1:]
    return a, b


def _leading(matrix: Any, k: int, seed: int) -> tuple[Array, Array]:
    """Return the singular vectors of the k largest singular values, largest first."""
    if k >= min(matrix.shape):  # `svds` cannot give all of them
        u, s, vt = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        u, s, vt = linalg.svds(matrix, k, random_state=np.random.default_rng(seed))
    order = np.argsort(-s)[:k]
    return u[:, order], vt[order].T


def k_means(points: Array, k: int, random: np.random.Generator, n_rounds: int = 10) -> tuple[Array, Array]:
    """Return the cluster of each point and the centres; begins at k of the points and ends when none moves.

    Args:
        points: [points, d].
        k: number of clusters.
        random: chooses the first centres.
        n_rounds: the most rounds.

    Returns:
        Clusters [points], and centres [k, d].
    """
    centres = points[random.choice(len(points), min(k, len(points)), replace=False)]
    nearest = np.full(len(points), -1)
    for _ in range(n_rounds):
        before, nearest = nearest, _nearest(points, centres)
        if np.array_equal(before, nearest):
            break
        counts = np.bincount(nearest, minlength=len(centres))
        sums = sparse.csr_matrix((np.ones(len(points)), (nearest, np.arange(len(points)))), (len(centres), len(points)))
        filled = counts > 0
        centres = np.where(filled[:, None], (sums @ points) / np.maximum(counts, 1)[:, None], centres)
    return nearest, centres


def _nearest(points: Array, centres: Array) -> Array:
    nearest: Array = (points @ centres.T - (centres**2).sum(1) / 2).argmax(1)
    return nearest
