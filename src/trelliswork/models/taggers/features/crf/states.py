"""The states of the chain behind a feature CRF: labels, (label, z), or pairs of labels.

In a chain of **first order** a state is a label, or with latent variables one of `latent` copies of it, with weights
of their own (Morency et al. 2007, Latent-dynamic discriminative models for continuous gesture recognition).
In a chain of **second order** a state is (label before, label): one for each pair of neighbours that has a weight, and
one for each label that begins a sentence. Its arcs have the weight of (label, label after) and, where there is one,
that of (label before, label, label after); what the attributes add depends on the label alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trelliswork.models.taggers.features.crf.observed import all_labels
from trelliswork.models.taggers.features.crf.parameters import ANY, Parameters
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True)
class StateSpace:
    """State j has the label label_of[j] and the emission scores of column columns[j]; `start`, `end` and `base` are
    0 or -inf.

    Arc weight owners[k] is added to the transition score at the flat place cells[k].
    """

    label_of: Array  # [c] int64
    columns: Array  # [c] int64
    start: Array  # [c]
    end: Array  # [c]
    base: Array  # [c, c]
    cells: Array  # int64
    owners: Array  # int64
    n_arcs: int
    order: int

    @classmethod
    def of(cls, parameters: Parameters) -> StateSpace:
        return _pairs(parameters) if parameters.order == 2 else _singles(parameters)

    @property
    def c(self) -> int:
        return len(self.label_of)

    @property
    def n_labels(self) -> int:
        return int(self.label_of.max(initial=-1)) + 1

    @property
    def is_plain(self) -> bool:
        """True if each state is a label."""
        return self.order == 1 and self.c == self.n_labels

    def transitions(self, arc_weights: Array) -> Array:
        """Return scores [c, c]."""
        added = np.bincount(self.cells, arc_weights[self.owners], minlength=self.c * self.c)
        return self.base + added.reshape(self.c, self.c)

    def collect(self, d_transitions: Array) -> Array:
        """Return the transpose of `transitions`."""
        return np.bincount(self.owners, d_transitions.ravel()[self.cells], minlength=self.n_arcs)

    def gold(self, gold: Array, sets: Array | None, follows: Array) -> tuple[Array, Array]:
        """Return codes and sets over labels as codes and sets over states; `follows` is True but for first tokens.

        Args:
            gold: a label for each token, or a code of `sets`, [tokens].
            sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.
            follows: True for each token that has one before it.

        Returns:
            A code for each token, and the sets of states.
        """
        sets = all_labels(self.n_labels) if sets is None else sets
        if self.is_plain:
            return gold, sets
        one_label = np.arange(self.n_labels)[:, None] == self.label_of
        rows = np.concatenate([sets[:, self.label_of], one_label])
        codes = np.where(gold >= 0, -1 - len(sets) - gold, gold)
        if self.order == 2:
            before = np.where(follows, np.concatenate([[0], gold[:-1]]), self.n_labels)
            known = (gold >= 0) & (before >= 0)
            codes[known] = self._number[before[known], gold[known]]
        return codes, rows

    @cached_property
    def _number(self) -> Array:
        """The state of (label before, label); the row after the last label is the beginning of a sentence."""
        number = np.full((self.n_labels + 1, self.n_labels), -1, np.int64)
        number[self.n_labels] = np.arange(self.n_labels)
        rest = np.arange(self.n_labels, self.c)
        before = self.label_of[(self.base[:, rest] == 0).argmax(0)]
        number[before, self.label_of[rest]] = rest
        return number


def _singles(parameters: Parameters) -> StateSpace:
    c, arcs, legal = parameters.n_labels, parameters.arcs, parameters.bounds
    states = np.arange(c)
    return StateSpace(
        states // parameters.latent, states, legal.start, legal.end, legal.arcs, arcs[:, 0] * c + arcs[:, 1],
        np.arange(len(arcs)), len(arcs), 1,
    )  # fmt: skip


def _pairs(parameters: Parameters) -> StateSpace:
    n, arcs, legal = parameters.n_labels, parameters.arcs, parameters.bounds
    pairs = np.unique(arcs[arcs[:, 0] == ANY][:, 1:], axis=0)
    pairs = pairs[legal.arcs[pairs[:, 0], pairs[:, 1]] == 0]
    before = np.concatenate([np.full(n, n), pairs[:, 0]])  # n: the beginning of a sentence
    label = np.concatenate([np.arange(n), pairs[:, 1]])
    c = len(label)
    start = np.where(np.arange(c) < n, legal.start[label], -np.inf)
    meets = (label[:, None] == before) & (before < n)
    sources, targets = np.nonzero(meets)
    weight_of = {tuple(arc): k for k, arc in enumerate(arcs.tolist())}
    cells, owners = [], []
    for i, j in zip(sources.tolist(), targets.tolist(), strict=True):
        for key in ((ANY, int(label[i]), int(label[j])), (int(before[i]), int(label[i]), int(label[j]))):
            if key in weight_of:
                cells.append(i * c + j)
                owners.append(weight_of[key])
    base = np.where(meets, legal.arcs[label[:, None], label], -np.inf)
    return StateSpace(label, label, start, legal.end[label], base, _whole(cells), _whole(owners), len(arcs), 2)


def _whole(numbers: list[int]) -> Array:
    return np.array(numbers, np.int64)
