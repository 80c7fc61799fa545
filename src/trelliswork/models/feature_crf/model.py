"""A trained feature CRF: attributes in, labels and exact probabilities out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.distributions import LinearChain
from trelliswork.models.feature_crf.counting import MARK_KEYS, marked
from trelliswork.models.feature_crf.kinds import Normalised
from trelliswork.models.feature_crf.local_likelihood import local_chain
from trelliswork.models.feature_crf.online_kernels import score_tokens
from trelliswork.models.feature_crf.parameters import Parameters

Array = np.ndarray[Any, Any]
TOKENS_AT_A_TIME = 8192
LOCAL_SCORES = 1 << 22  # arcs of a batch that is normalised locally: 32 MB


@dataclass(frozen=True)
class FeatureCRF:
    """Labels, the numbers of the attributes, and one weight for each of `parameters`.

    `normalised` says what sums to one (see `ModelKind`): a model with weights of one kind means nothing as another.
    """

    labels: tuple[str, ...]
    index: KeyIndex
    parameters: Parameters
    weights: Array
    normalised: Normalised = "globally"

    def rows(self, lengths: Array, counts: Array, keys: Array, values: Array | None = None) -> AttributeRows:
        """Attributes by key, `counts` of them for each token; those that the model does not know are left out, or read
        as the unknown attribute if it has one."""
        offsets = np.concatenate([[0], np.cumsum(counts)])
        rows = AttributeRows(lengths, offsets, self.index.find(keys), values)
        return (marked(rows, self.index.find(MARK_KEYS)) if self.normalised == "jointly" else rows).known()

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
        index = KeyIndex.of(self.index.keys()[kept])
        return replace(self, index=index, parameters=smaller, weights=weights[keep]), kept

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
        return self._chain(rows, torch.from_numpy(self.emissions(rows)), np.arange(len(rows.lengths)))

    def distributions(self, rows: AttributeRows) -> Iterator[tuple[Array, LinearChain]]:
        """The sentences in batches of like length: their numbers, and the distribution over their labels."""
        scores = torch.from_numpy(self.emissions(rows))
        budget = TOKENS_AT_A_TIME if self.normalised != "locally" else LOCAL_SCORES // len(self.labels) ** 2
        for batch in _batches(rows.lengths, budget):
            yield batch, self._chain(rows, scores, batch)

    def _chain(self, rows: AttributeRows, scores: Tensor, batch: Array) -> LinearChain:
        if self.normalised == "locally":
            transitions = self.parameters.transitions(self.weights)
            return local_chain(scores.numpy(), transitions, rows.starts[batch], rows.lengths[batch])
        starts, lengths = rows.starts, torch.from_numpy(rows.lengths[batch])
        padded = pad_sequence([scores[starts[s] : starts[s + 1]] for s in batch], batch_first=True)
        arcs = torch.from_numpy(self.parameters.transitions(self.weights))
        return LinearChain(padded, arcs, lengths=lengths)

    def predict(self, rows: AttributeRows) -> list[list[str]]:
        """The best labels of each sentence."""
        out: list[list[str]] = [[] for _ in rows.lengths]
        for batch, chain in self.distributions(rows):
            for sentence, tags in zip(batch, chain.argmax.tolist(), strict=True):
                out[sentence] = [self.labels[tag] for tag in tags[: rows.lengths[sentence]]]
        return out

    def marginals(self, rows: AttributeRows) -> list[Array]:
        """p(label | x) [n, labels] of each sentence."""
        out: list[Array] = [np.empty((0, len(self.labels))) for _ in rows.lengths]
        for batch, chain in self.distributions(rows):
            for sentence, table in zip(batch, chain.marginals.numpy(), strict=True):
                out[sentence] = table[: rows.lengths[sentence]]
        return out


def _batches(lengths: Array, n_tokens: int) -> Iterator[Array]:
    """Sentences (empty ones left out) by length, so many together that they have about `n_tokens` tokens."""
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    while len(order):
        n = max(1, n_tokens // int(lengths[order[0]]))
        yield order[:n]
        order = order[n:]
