"""A trained feature CRF: attributes in, labels and exact probabilities out.

Lafferty, McCallum and Pereira (2001), Conditional random fields: probabilistic models for segmenting and labeling
sequence data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trelliswork.data.attributes import AttributeRows, Conjunctions, HashedIndex, KeyIndex
from trelliswork.data.attributes.dicts import Joined
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.rows import offsets_of, owners_of
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features import crf as parts
from trelliswork.models.taggers.features.crf.array_chain import ArrayChain, Listed
from trelliswork.models.taggers.features.crf.kinds import Normalised
from trelliswork.models.taggers.features.crf.parameters import ANY, PairWeights, Parameters
from trelliswork.models.taggers.features.crf.plan import edge_rows
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.models.taggers.features.kernels.decoding import best_labels, score_text, score_tokens
from trelliswork.models.taggers.features.kernels.local import local_arrays
from trelliswork.models.taggers.features.kernels.records import EdgeRows
from trelliswork.models.taggers.features.kernels.sets import add_pairs
from trelliswork.models.taggers.features.kernels.sparse import ListedArcs
from trelliswork.models.taggers.features.kernels.sparse_paths import sparse_best_labels
from trelliswork.runtime.arrays import Array

if TYPE_CHECKING:
    from trelliswork.distributions.grouped_chain import TagDistribution

TOKENS_AT_A_TIME = 8192
SCORES_AT_A_TIME = 1 << 22  # of a batch whose transitions differ from token to token: 32 MB


@dataclass(frozen=True)
class FeatureCRF:
    """Labels, the numbers of the attributes and of their conjunctions, and one weight for each of `parameters`.

    `normalised` says what sums to one (see `ModelKind`): a model with weights of one kind means nothing as another.
    """

    labels: tuple[str, ...]
    index: KeyIndex | HashedIndex
    parameters: Parameters
    weights: Array
    normalised: Normalised = "globally"
    conjunctions: Conjunctions = field(default_factory=lambda: Conjunctions.none(0))

    def rows(self, lengths: Array, counts: Array, keys: Array, values: Array | None = None) -> AttributeRows:
        """Return attributes by key, `counts` of them for each token; those that nobody knows are left out, or read
        as the unknown attribute if it has one.

        Args:
            lengths: tokens of each sentence, [sentences].
            counts: attributes of each token, [tokens].
            keys: of the attributes, token after token.
            values: of the attributes; None if all are 1.

        Returns:
            The attributes by number.
        """
        rows = AttributeRows(lengths, offsets_of(counts), self.index.find(keys), values)
        if self.normalised == "jointly":
            rows = with_marks(rows, self.index.find(mark_keys()))
        return self.conjunctions.extended(rows.known())

    def compact(self) -> tuple[FeatureCRF, Array]:
        """Return the same model without weights of 0 (as float32 has them) and attributes that have no other; and the
        numbers that the attributes left had before."""
        weights = self.weights.astype(np.float32).astype(np.float64)
        parameters, keep = self.parameters, weights != 0
        if parameters.order == 2:  # its states are the pairs that have a weight, be it 0
            keep[parameters.arc_weights] |= parameters.arcs[:, 0] == ANY
        return self._keeping(weights, keep)

    def without_zeros(self) -> tuple[FeatureCRF, Array]:
        """Return a smaller CRF as `compact` does, but answers are the same bit for bit.

        Weights are not rounded, and every arc stays, since arcs decide which kernel sums.
        """
        keep = self.weights != 0
        keep[self.parameters.arc_weights] = True
        return self._keeping(self.weights, keep)

    def _keeping(self, weights: Array, keep: Array) -> tuple[FeatureCRF, Array]:
        parameters = self.parameters
        n_attributes = len(parameters.offsets) - 1
        on_states, on_pairs = keep[: parameters.n_states], keep[parameters.pair_weights]
        counts = np.bincount(owners_of(parameters.offsets)[on_states], minlength=n_attributes)
        pairs, pair_counts = parameters.pairs, np.zeros(n_attributes, np.int64)
        if pairs is not None:
            pair_counts = np.bincount(owners_of(pairs.offsets)[on_pairs], minlength=n_attributes)
        index, conjunctions, kept = self._with_attributes(counts + pair_counts > 0)
        if pairs is not None:
            pairs = PairWeights(offsets_of(pair_counts[kept]), pairs.arcs[on_pairs]) if on_pairs.any() else None
        smaller = replace(
            parameters, offsets=offsets_of(counts[kept]), labels=parameters.labels[on_states],
            arcs=parameters.arcs[keep[parameters.arc_weights]], pairs=pairs,
        )  # fmt: skip
        small = replace(self, index=index, parameters=smaller, weights=weights[keep], conjunctions=conjunctions)
        return small, kept

    def _with_attributes(self, used: Array) -> tuple[KeyIndex | HashedIndex, Conjunctions, Array]:
        """Return the index and conjunctions of the attributes in use, and their numbers; hashed ones all stay."""
        keep = self.conjunctions.needed(used) if len(self.conjunctions) else used
        index = self.index
        if isinstance(index, HashedIndex):
            keep[: len(index)] = True
        else:
            index = KeyIndex.of(index.keys()[keep[: len(index)]])
        conjunctions = self.conjunctions.kept(keep) if len(self.conjunctions) else Conjunctions.none(len(index))
        return index, conjunctions, np.flatnonzero(keep)

    def emissions(self, rows: AttributeRows) -> Array:
        """Return scores [tokens, labels], or those of all copies of the labels if there are latent ones."""
        scores = np.empty((rows.n_tokens, self.parameters.n_labels))
        score_tokens(0, rows.n_tokens, rows.arrays, self.parameters.weight_index, self.weights, scores)
        return scores

    def chain(self, rows: AttributeRows) -> TagDistribution:
        """Return p(labels | attributes) of all sentences as one batch."""
        return parts.distribution(self.space, self.array_chain(rows))

    def distributions(self, rows: AttributeRows) -> Iterator[tuple[Array, TagDistribution]]:
        """Yield the sentences in batches of like length: their numbers, and the distribution over their labels."""
        for batch, chain in self._array_chains(rows):
            yield batch, parts.distribution(self.space, chain)

    def _array_chains(self, rows: AttributeRows) -> Iterator[tuple[Array, ArrayChain]]:
        scores, at_a_time, edges = self.emissions(rows), TOKENS_AT_A_TIME, None
        if self.parameters.n_pairs:
            edges = edge_rows(rows, self.parameters)
        if edges is not None or self.normalised == "locally":
            at_a_time = min(at_a_time, SCORES_AT_A_TIME // self.space.c**2 + 1)
        for batch in _batches(rows.lengths, at_a_time):
            yield batch, self.array_chain(rows, scores, batch, edges)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The labels, or the names of their latent copies: B-NP#1, B-NP#2, ..."""
        latent = self.parameters.latent
        return self.labels if latent == 1 else tuple(f"{y}#{z}" for y in self.labels for z in range(1, latent + 1))

    def arc_names(self) -> list[tuple[float, str, str]]:
        """Return (weight, label before, label) of each arc; of second order, the two labels before."""
        names = [*self.column_names, "(begin)"]
        weights = self.weights[self.parameters.arc_weights].tolist()
        return [
            (weight, " ".join(names[i] for i in before if i != ANY), names[label])
            for weight, (*before, label) in zip(weights, self.parameters.arcs.tolist(), strict=True)
        ]

    @cached_property
    def space(self) -> StateSpace:
        """The states of the chain."""
        return StateSpace.of(self.parameters)

    def array_chain(
        self,
        rows: AttributeRows,
        scores: Array | None = None,
        batch: Array | None = None,
        edges: EdgeRows | None = None,
    ) -> ArrayChain:
        """Return scores of the states of some sentences, side by side; of all sentences, without `batch`.

        Args:
            rows: attributes of the tokens.
            scores: what the attributes add up to, [tokens, states]; computed if None.
            batch: numbers of the sentences; None for all.
            edges: attributes that look at two neighbours, as kernels read them; computed if None.

        Returns:
            The chain of these sentences.
        """
        scores = self.emissions(rows) if scores is None else scores
        batch = np.arange(len(rows.lengths)) if batch is None else batch
        starts, lengths, space = rows.starts[batch], rows.lengths[batch], self.space
        if self.normalised == "locally":
            arrays = local_arrays(scores, self.parameters.transitions(self.weights), starts, lengths)
            return ArrayChain(*arrays, lengths, space.start, space.end)
        padded = np.zeros((len(batch), int(lengths.max(initial=0)), scores.shape[1]))
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            padded[row, :length] = scores[start : start + length]
        transitions = space.transitions(self.weights[self.parameters.arc_weights])[None, None]
        if self.parameters.n_pairs:
            edges = edges or edge_rows(rows, self.parameters)
            transitions = self._transitions_by_position(rows, batch, transitions, edges)
        emissions = padded if space.is_plain else np.ascontiguousarray(padded[..., space.columns])
        return ArrayChain(emissions, transitions, lengths, space.start, space.end, self._listed)

    def _transitions_by_position(self, rows: AttributeRows, batch: Array, shared: Array, edges: EdgeRows) -> Array:
        """Return scores [sentences, n-1, labels, labels], with what the attributes of each token add to its arcs."""
        # [S4.81]
        n, c = int(rows.lengths[batch].max(initial=0)), shared.shape[-1]
        scores, starts = np.zeros((len(batch), max(n - 1, 1), c, c)), rows.starts
        weights = np.ascontiguousarray(self.weights[self.parameters.pair_weights])
        for row, sentence in enumerate(batch.tolist()):
            length = int(rows.lengths[sentence])
            if length > 1:
                add_pairs(int(starts[sentence]), length, 1.0, edges, weights, shared, scores[row : row + 1])
        return scores[:, : max(n - 1, 0)]

    @cached_property
    def _listed(self) -> tuple[ListedArcs, Array] | None:
        """The pairs that have a score, and their scores, if these are few and the same everywhere."""
        listed = None if self.normalised == "locally" else Listed.of(self.parameters)
        return None if listed is None else (listed.arcs, listed.scores(self.weights[self.parameters.arc_weights]))

    @property
    def has_array_chain(self) -> bool:
        """True if `array_chain` is the distribution over labels: its states are labels."""
        return self.space.is_plain

    @cached_property
    def _shared_transitions(self) -> Array | None:
        """Transition scores, if they are the same everywhere and states are labels; else None."""
        if self.normalised == "locally" or self.parameters.n_pairs or not self.space.is_plain:
            return None
        return self.parameters.transitions(self.weights)

    def predict(self, rows: AttributeRows) -> list[list[str]]:
        """Return the best labels of each sentence."""
        transitions = self._shared_transitions
        if transitions is not None:
            tags = np.empty(rows.n_tokens, np.int64)
            if self._listed is None:
                best_labels(rows.starts, self.emissions(rows), transitions, self.space.start, self.space.end, tags)
            else:
                sparse_best_labels(rows.starts, self.emissions(rows), *self._listed, tags)
            names = list(map(self.labels.__getitem__, tags.tolist()))
            return [names[first:last] for first, last in pairwise(rows.starts.tolist())]
        out: list[list[str]] = [[] for _ in rows.lengths]
        for batch, chain in self._array_chains(rows) if self.has_array_chain else self.distributions(rows):
            for sentence, best in zip(batch, chain.argmax.tolist(), strict=True):
                out[sentence] = [self.labels[tag] for tag in best[: rows.lengths[sentence]]]
        return out

    def predict_joined(self, joined: Joined) -> list[str] | None:
        """Return the best labels of one sentence whose attributes are in a text; None where only `predict` can tell."""
        index, transitions = self.index, self._shared_transitions
        has_marks = self.normalised == "jointly" or len(self.conjunctions) > 0
        if transitions is None or self._listed is not None or has_marks or not isinstance(index, KeyIndex):
            return None
        n, parameters = len(joined.counts), self.parameters
        scores, tags = np.empty((n, parameters.n_labels)), np.empty(n, np.int64)
        weights = parameters.offsets, parameters.labels, self.weights
        if not score_text(joined, index.table, index.numbers, *weights, scores):
            return None
        best_labels(np.array([0, n]), scores, transitions, self.space.start, self.space.end, tags)
        return [self.labels[tag] for tag in tags.tolist()]

    def marginals(self, rows: AttributeRows) -> list[Array]:
        """Return p(label | x) [n, labels] of each sentence."""
        out: list[Array] = [np.empty((0, len(self.labels))) for _ in rows.lengths]
        sparse = self._listed is not None and self.has_array_chain
        for batch, chain in self._array_chains(rows) if sparse else self.distributions(rows):
            for sentence, table in zip(batch, np.asarray(chain.marginals), strict=True):
                out[sentence] = table[: rows.lengths[sentence]]
        return out


def _batches(lengths: Array, tokens_at_a_time: int) -> Iterator[Array]:
    """Yield sentences (empty ones left out) by length, grouped into batches of about `tokens_at_a_time` tokens."""
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    while len(order):
        n = max(1, tokens_at_a_time // int(lengths[order[0]]))
        yield order[:n]
        order = order[n:]


# Marks: attributes that no text has, which carry the constants of a model learned by counting.


MARKS = ("(unknown attribute)", "(each attribute)", "(first token)", "(each token)")
UNKNOWN, EACH_ATTRIBUTE, FIRST_TOKEN, EACH_TOKEN = range(len(MARKS))


@cache
def mark_keys() -> Array:
    """Return the keys of `MARKS`."""
    return keys_of(MARKS)


def with_marks(rows: AttributeRows, marks: Array) -> AttributeRows:
    """Return rows with marks[UNKNOWN] for every id of -1, and for each token the marks of its attributes and its place.

    `marks` are the ids of `MARKS`. The value of (each attribute) is how many attributes the token has.
    """
    n, values = rows.n_tokens, values_of(rows)
    sizes = np.bincount(rows.tokens(), values, minlength=n)
    firsts = first_tokens(rows)
    tokens = np.concatenate([rows.tokens(), np.arange(n), np.arange(n), firsts])
    added = np.repeat(marks[[EACH_ATTRIBUTE, EACH_TOKEN, FIRST_TOKEN]], [n, n, len(firsts)])
    ids = np.concatenate([np.where(rows.ids < 0, marks[UNKNOWN], rows.ids), added])
    values = np.concatenate([values, sizes, np.ones(n + len(firsts))])
    order = np.argsort(tokens, kind="stable")
    offsets = offsets_of(np.bincount(tokens, minlength=n))
    return AttributeRows(rows.lengths, offsets, ids[order].astype(np.int32), values[order])


def values_of(rows: AttributeRows) -> Array:
    if rows.values is None:
        return np.ones(len(rows.ids))
    if len(rows.values) and rows.values.min() < 0:
        raise ScoreError(f"attributes that are counted need values of at least 0; got {rows.values.min():g}")
    return rows.values


def first_tokens(rows: AttributeRows) -> Array:
    """Return the first token of every sentence that has one."""
    return rows.starts[:-1][rows.lengths > 0]
