"""Which weights a feature CRF has: (attribute, label), (label, label) and (attribute, label before, label).

Lafferty, McCallum and Pereira (2001), Conditional random fields: probabilistic models for segmenting and labeling
sequence data; Morency, Quattoni and Darrell (2007), Latent-dynamic discriminative models for continuous gesture
recognition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import offsets_of, owners_of
from trelliswork.models.taggers.features.crf.legality import copied, everything
from trelliswork.models.taggers.features.crf.observed import (
    all_labels,
    arc_counts,
    arc_pairs,
    arcs_of,
    follows,
    members,
    observed_states,
    pair_entries,
    state_pairs,
    summed_up,
    triples,
)
from trelliswork.models.taggers.features.kernels.records import Legal, WeightIndex
from trelliswork.runtime.arrays import Array

Sum = Callable[[Array], Array]
ANY = -1  # in arcs of second order: whatever the label two tokens before


def _same(numbers: Array) -> Array:
    return numbers


@dataclass(frozen=True)
class PairWeights:
    """Edge observations: attribute a has a weight for each of arcs[offsets[a]:offsets[a+1]].

    An arc is label before · labels + label.
    """

    # [S4.81]

    offsets: Array  # [attributes + 1] int64
    arcs: Array  # [pair weights] int32

    @classmethod
    def of(cls, pairs: Array, n_attributes: int, n_arcs: int) -> PairWeights:
        """Return the weights of attribute · arcs + arc, sorted.

        Args:
            pairs: attribute · arcs + arc, sorted.
            n_attributes: number of attributes.
            n_arcs: number of pairs of labels.

        Returns:
            The weights.
        """
        counts = np.bincount(pairs // n_arcs, minlength=n_attributes)
        return cls(offsets_of(counts), (pairs % n_arcs).astype(np.int32))

    def listed(self, n_arcs: int) -> Array:
        """Return the inverse of `of`."""
        return owners_of(self.offsets) * n_arcs + self.arcs


@dataclass(frozen=True)
class Parameters:
    """Attribute a has a weight for labels[offsets[a]:offsets[a+1]]; `arcs` [pairs, 2] lists the transitions with one.

    Weights are one vector: first those of the attributes, in this order, then those of the arcs, then those of `pairs`.
    With `latent` > 1, n_labels counts the copies of all labels, those of a label side by side. Arcs of second order
    are [triples, 3]: label two tokens before (n_labels if there is none, -1 if it does not matter), before, label.
    With `legal`, what a tag scheme forbids is impossible.
    """

    n_labels: int
    offsets: Array  # [attributes + 1] int64
    labels: Array  # [state weights] int32
    arcs: Array  # [arc weights, 2 or 3] int64
    pairs: PairWeights | None = None
    latent: int = 1
    legal: Legal | None = None

    @classmethod
    def of(
        cls,
        rows: AttributeRows,
        gold: Array,
        n_attributes: int,
        n_labels: int,
        *,
        all_states: bool = False,
        all_transitions: bool = False,
        sets: Array | None = None,
    ) -> Parameters:
        """Return the pairs that occur in the data, or all: also those that never occur can then be made unlikely.

        `gold` and `sets` are as in `observed`.

        Args:
            rows: attributes of the tokens.
            gold: a label for each token, or a code of `sets`, [tokens].
            n_attributes: number of attributes.
            n_labels: number of labels.
            all_states: whether every attribute has a weight with every label.
            all_transitions: whether every pair of labels has a weight.
            sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.

        Returns:
            The weights.
        """
        # [S4.80]
        some = all_labels(n_labels) if sets is None else sets
        arcs = np.arange(n_labels**2) if all_transitions else arcs_of(rows, gold, some)
        if all_states:
            states = np.arange(n_attributes * n_labels)
        elif not len(gold) or gold.min() >= 0:
            states = observed_states(rows, gold, n_attributes, n_labels)
        else:
            states = state_pairs(rows.ids, gold[rows.tokens()], some)
        offsets = offsets_of(np.bincount(states // n_labels, minlength=n_attributes))
        return cls(n_labels, offsets, (states % n_labels).astype(np.int32), np.stack(np.divmod(arcs, n_labels), 1))

    def with_pairs(
        self,
        rows: AttributeRows,
        gold: Array,
        on_pairs: Array | None,
        *,
        every: bool = False,
        sets: Array | None = None,
    ) -> Parameters:
        """Move attributes that are True in `on_pairs` [attributes], and look at neighbouring labels, to `pairs`
        alone, for the arcs that occur with them, or for each of the arcs.

        Args:
            rows: attributes of the tokens.
            gold: a label for each token, or a code of `sets`, [tokens].
            on_pairs: [attributes] bool: which look at two neighbours; None for none.
            every: whether every such attribute has a weight with every pair of labels.
            sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.

        Returns:
            The weights, with those of pairs.
        """
        if on_pairs is None:
            return self
        n_attributes, n_arcs = len(on_pairs), self.n_labels**2
        if every:
            arcs = self.arcs[:, 0] * self.n_labels + self.arcs[:, 1]
            listed = np.add.outer(np.flatnonzero(on_pairs) * n_arcs, arcs).ravel()
        else:
            ids, before, here, _ = pair_entries(rows, gold, on_pairs)
            listed = triples(ids, before, here, all_labels(self.n_labels) if sets is None else sets)
        single, counts = ~on_pairs, np.diff(self.offsets)
        return replace(
            self,
            offsets=offsets_of(np.where(single, counts, 0)),
            labels=self.labels[np.repeat(single, counts)],
            pairs=PairWeights.of(listed, n_attributes, n_arcs),
        )

    def check(self, n_attributes: int) -> None:
        """Raise `ValueError` unless the weights of each attribute, their labels and arcs lie where they should."""
        offsets, labels, arcs, pairs = self.offsets, self.labels, self.arcs, self.pairs
        if (labels.dtype, arcs.dtype) != (np.int32, np.int64) or arcs.shape[1:] not in ((2,), (3,)):
            raise ValueError(f"labels of int32 and arcs of int64 expected, {labels.dtype}, {arcs.dtype} found")
        _check_listed("labels", offsets, labels, n_attributes, self.n_labels)
        if arcs.size and not 0 <= arcs[:, -2:].min() <= arcs[:, -2:].max() < self.n_labels:
            raise ValueError(f"arcs must lie in 0..{self.n_labels - 1}")
        if self.order == 2 and arcs.size and not -1 <= arcs[:, 0].min() <= arcs[:, 0].max() <= self.n_labels:
            raise ValueError(f"the first label of an arc must lie in -1..{self.n_labels}")
        if pairs is not None:
            if pairs.arcs.dtype != np.int32:
                raise ValueError(f"arcs of pairs must be whole numbers of 32 bits, got {pairs.arcs.dtype}")
            _check_listed("arcs of pairs", pairs.offsets, pairs.arcs, n_attributes, self.n_labels**2)

    def united(self, union: Callable[[Array], Array]) -> Parameters:
        """Return the weights that any of several processes has: `union` gives all of sorted numbers that they have."""
        n, pairs = self.n_labels, self.pairs
        states = union(self.owners() * n + self.labels)
        offsets = offsets_of(np.bincount(states // n, minlength=len(self.offsets) - 1))
        if pairs is not None:
            pairs = PairWeights.of(union(pairs.listed(n * n)), len(self.offsets) - 1, n * n)
        first, rest = self.arcs[:, :-2], self.arcs[:, -2] * n + self.arcs[:, -1]
        codes = union(rest if self.order == 1 else (first[:, 0] - ANY) * n * n + rest)
        arcs = np.stack([codes // n % n, codes % n], 1)
        if self.order == 2:
            arcs = np.concatenate([codes[:, None] // (n * n) + ANY, arcs], 1)
        return replace(self, offsets=offsets, labels=(states % n).astype(np.int32), arcs=arcs, pairs=pairs)

    def frequent(
        self, rows: AttributeRows, gold: Array, min_frequency: float, sets: Array | None = None, total: Sum = _same
    ) -> Parameters:
        """Leave out the (attribute, label) pairs whose values sum up to less than `min_frequency` in the data, and the
        (label, label) pairs that occur less often: CRFsuite's feature.minfreq.

        A token whose label is not known counts for each label that it may have. `total` sums numbers up over all
        processes that have a share of the data.

        Args:
            rows: attributes of the tokens.
            gold: a label for each token, or a code of `sets`, [tokens].
            min_frequency: the least sum of values.
            sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.
            total: adds up over all processes.

        Returns:
            The weights that are left.
        """
        if min_frequency <= 0:
            return self
        sets = all_labels(self.n_labels) if sets is None else sets
        owner = owners_of(self.offsets)
        places = owner * self.n_labels + self.labels
        counts = np.zeros(len(places))
        for entries, tokens in rows.pieces():
            values = np.ones(len(tokens)) if rows.values is None else rows.values[entries]
            nothing = np.zeros(len(tokens), np.int64)
            counts += summed_up(places, rows.ids[entries], nothing, gold[tokens], values, sets, self.n_labels)
        keep = total(counts) >= min_frequency
        offsets = offsets_of(np.bincount(owner[keep], minlength=len(self.offsets) - 1))
        pairs = self.pairs
        if pairs is not None:
            n_arcs, on_pairs = self.n_labels**2, np.diff(pairs.offsets) > 0
            on_neighbours = pair_entries(rows, gold, on_pairs)
            listed = pairs.listed(n_arcs)
            often = total(summed_up(listed, *on_neighbours, sets, n_arcs)) >= min_frequency
            pairs = PairWeights.of(listed[often], len(self.offsets) - 1, n_arcs)
        seen = arc_counts(self.arcs[:, 0] * self.n_labels + self.arcs[:, 1], rows, gold, sets)
        often = total(seen) >= min_frequency
        return replace(self, offsets=offsets, labels=self.labels[keep], arcs=self.arcs[often], pairs=pairs)

    def common(self, rows: AttributeRows, cutoff: int, total: Sum = _same) -> Parameters:
        """Leave out the weights of attributes that occur less than `cutoff` times, with whatever label: CRF++'s -f.

        Args:
            rows: attributes of the tokens.
            cutoff: the least number of occurrences.
            total: adds up over all processes.

        Returns:
            The weights that are left.
        """
        if cutoff <= 1:
            return self
        n_attributes, pairs = len(self.offsets) - 1, self.pairs
        often = total(rows.counts(n_attributes)) >= cutoff
        counts = np.where(often, np.diff(self.offsets), 0)
        if pairs is not None:
            listed = pairs.listed(self.n_labels**2)
            pairs = PairWeights.of(listed[often[listed // self.n_labels**2]], n_attributes, self.n_labels**2)
        labels = self.labels[np.repeat(often, np.diff(self.offsets))]
        return replace(self, offsets=offsets_of(counts), labels=labels, pairs=pairs)

    def owners(self) -> Array:
        """Return the attribute of each state weight."""
        return owners_of(self.offsets)

    def with_latent(self, latent: int) -> Parameters:
        """Return this many copies of each label, each with weights for all that the label has weights for."""
        # [S4.128]
        if latent == 1:
            return self
        copies, c, wide = np.arange(latent), self.n_labels, self.n_labels * latent
        labels = np.add.outer(self.labels * latent, copies).ravel().astype(np.int32)
        arcs = np.stack(np.divmod(_copied(self.arcs[:, 0] * c + self.arcs[:, 1], c, latent), wide), 1)
        pairs = self.pairs
        if pairs is not None:
            pairs = PairWeights(pairs.offsets * latent**2, _copied(pairs.arcs, c, latent).astype(np.int32))
        legal = None if self.legal is None else copied(self.legal, latent)
        return Parameters(wide, self.offsets * latent, labels, arcs, pairs, latent, legal)

    def with_second_order(self, rows: AttributeRows, gold: Array, sets: Array | None = None) -> Parameters:
        """Return the arcs also for triples of labels that occur, and for pairs that begin a sentence.

        Only pairs with an arc can be neighbours then; a label may follow itself, so that no sentence is too long.

        Args:
            rows: attributes of the tokens.
            gold: a label for each token, or a code of `sets`, [tokens].
            sets: [sets, labels] bool: what the codes below 0 allow; None if all labels are known.

        Returns:
            The weights, with arcs of second order.
        """
        sets, n = all_labels(self.n_labels) if sets is None else sets, self.n_labels
        inside = np.flatnonzero(follows(rows))
        third = inside[np.isin(inside - 1, inside)]
        second = np.setdiff1d(inside, third)
        keys = np.zeros(0, np.int64)
        for code in np.unique(gold[third - 2]).tolist():
            at = third[gold[third - 2] == code]
            pairs = arc_pairs(gold[at - 1], gold[at], sets)
            keys = np.union1d(keys, np.add.outer(members(code, sets) * n * n, pairs).ravel())
        keys = np.concatenate([keys, n**3 + arc_pairs(gold[second - 1], gold[second], sets)])
        triples = np.stack([keys // (n * n), keys // n % n, keys % n], 1)
        pairs = np.union1d(self.arcs[:, 0] * n + self.arcs[:, 1], np.arange(n) * (n + 1))
        singles = np.stack([np.full(len(pairs), ANY), pairs // n, pairs % n], 1)
        return replace(self, arcs=np.concatenate([singles, triples]))

    @cached_property
    def weight_index(self) -> WeightIndex:
        """Places of the weights, for kernels; of second order without those of the arcs."""
        size, arcs = (self.n_labels, self.arcs) if self.order == 1 else (0, np.empty((0, 2), np.int64))
        places = np.full((size, size), -1, np.int64)
        places[arcs[:, 0], arcs[:, 1]] = len(self.labels) + np.arange(len(arcs))
        return WeightIndex(self.offsets, self.labels, arcs, places, self.bounds)

    @property
    def bounds(self) -> Legal:
        """Legal labels and arcs: all of them, if there is no scheme."""
        return everything(self.n_labels) if self.legal is None else self.legal

    def within(self, legal: Legal | None) -> Parameters:
        """Leave out the arcs that a tag scheme forbids."""
        if legal is None:
            return self
        return replace(self, arcs=self.arcs[legal.arcs[self.arcs[:, 0], self.arcs[:, 1]] == 0], legal=legal)

    @property
    def order(self) -> int:
        """Number of labels before a label that its score looks at."""
        return self.arcs.shape[1] - 1

    @property
    def n_states(self) -> int:
        return len(self.labels)

    @property
    def n_pairs(self) -> int:
        return 0 if self.pairs is None else len(self.pairs.arcs)

    @property
    def arc_weights(self) -> slice:
        """Places of the weights of the arcs."""
        return slice(self.n_states, self.n_states + len(self.arcs))

    @property
    def pair_weights(self) -> slice:
        """Places of the weights of the pairs."""
        return slice(self.n_states + len(self.arcs), len(self))

    def __len__(self) -> int:
        return len(self.labels) + len(self.arcs) + self.n_pairs

    def transitions(self, weights: Array) -> Array:
        """Return transition scores [labels, labels] without those of `pairs`; 0 where there is no weight."""
        scores = self.bounds.arcs.copy()
        scores[self.arcs[:, 0], self.arcs[:, 1]] += weights[self.arc_weights]
        return scores


def _check_listed(name: str, offsets: Array, listed: Array, n_attributes: int, n_kinds: int) -> None:
    """Raise `ValueError` unless each attribute has its part of what is `listed`, and that lies in 0..n_kinds - 1."""
    rising = offsets.dtype == np.int64 and offsets.shape == (n_attributes + 1,)
    if not rising or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets of {name} must rise from 0, one for each of {n_attributes} attributes")
    if listed.shape != (offsets[-1],):
        raise ValueError(f"{offsets[-1]} {name} expected, {listed.shape} found")
    if listed.size and not 0 <= listed.min() <= listed.max() < n_kinds:
        raise ValueError(f"{name} must lie in 0..{n_kinds - 1}")


def _copied(arcs: Array, n_labels: int, latent: int) -> Array:
    """Return arcs between all copies of their labels, flat: those of the first arc, then those of the second, ..."""
    before, label = np.divmod(arcs.astype(np.int64), n_labels)
    copies, wide = np.arange(latent), n_labels * latent
    from_copy = np.add.outer(before * latent, copies)[:, :, None] * wide
    return (from_copy + np.add.outer(label * latent, copies)[:, None, :]).ravel()
