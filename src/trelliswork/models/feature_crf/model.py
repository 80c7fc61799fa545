"""A trained feature CRF: attributes in, labels and exact probabilities out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.models.feature_crf.online_kernels import best_labels, score_tokens
from trelliswork.models.feature_crf.parameters import Parameters

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain

Array = np.ndarray[Any, Any]
TOKENS_AT_A_TIME = 8192


@dataclass(frozen=True)
class FeatureCRF:
    """Labels, the numbers of the attributes, and one weight for each of `parameters`."""

    labels: tuple[str, ...]
    index: KeyIndex
    parameters: Parameters
    weights: Array

    def rows(self, lengths: Array, counts: Array, keys: Array, values: Array | None = None) -> AttributeRows:
        """Attributes by key, `counts` of them for each token; those that the model does not know are left out."""
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return AttributeRows(lengths, offsets, self.index.find(keys), values).known()

    def compact(self) -> tuple[FeatureCRF, Array]:
        """The same model without weights of 0 (as float32 has them) and attributes that have no other; and the
        numbers that the attributes left had before."""
        weights = self.weights.astype(np.float32).astype(np.float64)
        parameters, n_states = self.parameters, self.parameters.n_states
        owner = np.repeat(np.arange(len(parameters.offsets) - 1), np.diff(parameters.offsets))
        keep = weights != 0
        kept = np.unique(owner[keep[:n_states]])
        counts = np.bincount(owner[keep[:n_states]], minlength=len(parameters.offsets) - 1)[kept]
        offsets, arcs = np.concatenate([[0], np.cumsum(counts)]), parameters.arcs[keep[n_states:]]
        smaller = Parameters(parameters.n_labels, offsets, parameters.labels[keep[:n_states]], arcs)
        return FeatureCRF(self.labels, KeyIndex.of(self.index.keys()[kept]), smaller, weights[keep]), kept

    def emissions(self, rows: AttributeRows) -> Array:
        """Scores [tokens, labels]."""
        scores = np.empty((rows.n_tokens, len(self.labels)))
        values = np.empty(0) if rows.values is None else rows.values
        score_tokens(
            0, rows.n_tokens, rows.offsets, rows.ids, values, self.parameters.offsets, self.parameters.labels,
            self.weights, scores,
        )  # fmt: skip
        return scores

    def chain(self, rows: AttributeRows) -> LinearChain:
        """p(labels | attributes) of all sentences as one batch."""
        return self._chain(rows, self.emissions(rows), np.arange(len(rows.lengths)))

    def distributions(self, rows: AttributeRows) -> Iterator[tuple[Array, LinearChain]]:
        """The sentences in batches of like length: their numbers, and the distribution over their labels."""
        scores = self.emissions(rows)
        for batch in _batches(rows.lengths):
            yield batch, self._chain(rows, scores, batch)

    def _chain(self, rows: AttributeRows, scores: Array, batch: Array) -> LinearChain:
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from trelliswork.distributions import LinearChain

        starts, lengths = rows.starts, torch.from_numpy(rows.lengths[batch])
        table = torch.from_numpy(scores)
        padded = pad_sequence([table[starts[s] : starts[s + 1]] for s in batch], batch_first=True)
        transitions = torch.from_numpy(self.parameters.transitions(self.weights))
        return LinearChain(padded, transitions, lengths=lengths)

    def predict(self, rows: AttributeRows) -> list[list[str]]:
        """The best labels of each sentence."""
        tags = np.empty(rows.n_tokens, np.int64)
        best_labels(rows.starts, self.emissions(rows), self.parameters.transitions(self.weights), tags)
        names = list(map(self.labels.__getitem__, tags.tolist()))
        return [names[first:last] for first, last in pairwise(rows.starts.tolist())]

    def marginals(self, rows: AttributeRows) -> list[Array]:
        """p(label | x) [n, labels] of each sentence."""
        out: list[Array] = [np.empty((0, len(self.labels))) for _ in rows.lengths]
        for batch, chain in self.distributions(rows):
            for sentence, table in zip(batch, chain.marginals.numpy(), strict=True):
                out[sentence] = table[: rows.lengths[sentence]]
        return out


def _batches(lengths: Array) -> Iterator[Array]:
    """Sentences (empty ones left out) by length, so many together that they have about `TOKENS_AT_A_TIME` tokens."""
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    while len(order):
        n = max(1, TOKENS_AT_A_TIME // int(lengths[order[0]]))
        yield order[:n]
        order = order[n:]
