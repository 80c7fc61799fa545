"""p(labels | attributes) as numpy arrays: the best labels, marginals and spans, without torch.

`LinearChain` answers every query; this one answers what tagging and scoring ask of models whose states are labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes.rows import offsets_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels import confidences
from trelliswork.models.taggers.features.kernels.sparse import ListedArcs, sparse_probabilities
from trelliswork.models.taggers.features.kernels.sparse_paths import sparse_best_labels
from trelliswork.runtime.arrays import Array
from trelliswork.structures.chain.kernels import backward_log, forward_log
from trelliswork.structures.chain.path_kernels import best_paths
from trelliswork.tags.schemes import Span, SpanPattern, span_patterns

SETS = ("before", "single", "first", "inside", "last", "after")  # in the order of the kernel


class Sums(NamedTuple):
    """log α, its logadd before emissions, and P(label) of each token, all [batch, n, c]."""

    log_alphas: Array
    arrivals: Array
    marginals: Array


@dataclass(frozen=True)
class ArrayChain:
    """Scores of labels [batch, n, c] and of neighbours [1, 1, c, c] or [batch, n-1, c, c], as in `LinearChain`."""

    emissions: Array
    transitions: Array
    lengths: Array
    start: Array  # [c]
    end: Array  # [c]
    listed: tuple[ListedArcs, Array] | None = None  # the pairs that do not score 0, and their scores

    @cached_property
    def argmax(self) -> Array:
        """The best labels [batch, n]."""
        batch, n, _ = self.emissions.shape
        tags, possible = np.zeros((batch, n), np.int64), np.empty(batch, np.bool_)
        if self.listed is not None:
            for row, length in enumerate(self.lengths.tolist()):
                sparse_best_labels(np.array([0, length]), self.emissions[row], *self.listed, tags[row])
            return tags
        best_paths(0, batch, self.emissions, self.transitions, self.start, self.end, self.lengths, tags, possible)
        return tags

    @cached_property
    def marginals(self) -> Array:
        """P(label) [batch, n, c]."""
        if self.listed is None:
            return self._sums.marginals
        marginals = np.zeros(self.emissions.shape)
        sparse_probabilities(self.emissions, self.lengths, *self.listed, marginals)
        return marginals

    @cached_property
    def _sums(self) -> Sums:
        sums = Sums(*(np.zeros(self.emissions.shape) for _ in Sums._fields))
        batch, _, c = self.emissions.shape
        rows, log_z, kept = np.arange(batch), np.empty(batch), sums[:2]
        forward_log(rows, self.emissions, self.transitions, self.start, self.end, self.lengths, *kept, log_z)
        unused = np.zeros((1, 1, c, c))
        backward_log(
            rows, self.transitions, self.end, self.lengths, *kept, log_z, np.ones(batch), sums.marginals, unused
        )
        return sums

    def span_probabilities(self, spans: Sequence[Sequence[Span]], *, tags: Sequence[str], scheme: str) -> list[Array]:
        """Return P(these tokens are exactly one span) for the spans (first, last, label) of each row.

        Args:
            spans: (first token, token behind the last, label) of each span of each row.
            tags: the labels by number.
            scheme: how they spell spans.

        Returns:
            The probabilities of the spans of each row.
        """
        kinds = sorted({span[2] for row in spans for span in row})
        patterns, ends = _tables([span_patterns(list(tags), scheme, kind) for kind in kinds], len(tags))
        listed = [(b, first, last, kinds.index(kind)) for b, row in enumerate(spans) for first, last, kind in row]
        probabilities = np.empty(len(listed))
        places = np.array(listed, np.int64).reshape(-1, 4)
        confidences.span_probabilities(
            places, self.transitions, self.lengths, self._sums, patterns, ends, probabilities
        )
        return np.split(probabilities, np.cumsum([len(row) for row in spans])[:-1])


def _tables(by_kind: Sequence[Sequence[SpanPattern]], c: int) -> tuple[Array, Array]:
    """Return the sets of the patterns of each label [labels, patterns, sets, c], and where they may stand."""
    n_patterns = max(map(len, by_kind), default=0)
    sets, ends = (
        np.zeros((len(by_kind), n_patterns, len(SETS), c), np.bool_),
        np.zeros((len(by_kind), n_patterns, 2), np.bool_),
    )
    for kind, patterns in enumerate(by_kind):
        for p, pattern in enumerate(patterns):
            ends[kind, p] = pattern.at_start, pattern.at_end
            for row, name in enumerate(SETS):
                chosen = getattr(pattern, name)
                sets[kind, p, row, slice(None) if chosen is None else sorted(chosen)] = True
    return sets, ends


# Pairs of labels with a weight, listed: for the kernels of chains with many labels, most of whose pairs have none.


MANY_LABELS = 64
LEAST_SHARE = 8  # at most one pair in this many is listed: else a whole table is faster


def is_worth_listing(n_labels: int, n_pairs: int) -> bool:
    """Return whether going through the pairs that have a weight is faster than going through all."""
    return n_labels >= MANY_LABELS and n_pairs * LEAST_SHARE <= n_labels**2


class Listed(NamedTuple):
    """The pairs as the kernels read them; pair k has the arc weight owners[k]."""

    arcs: ListedArcs
    owners: Array

    def scores(self, arc_weights: Array) -> Array:
        """Return those of the pairs."""
        return np.ascontiguousarray(arc_weights[self.owners], np.float64)

    @classmethod
    def of(cls, parameters: Parameters) -> Listed | None:
        """Return those of a chain of labels, if they are many and few of their pairs have a weight; else None."""
        c, arcs = parameters.n_labels, parameters.arcs
        single = parameters.order == 1 and parameters.latent == 1 and parameters.legal is None
        if not single or parameters.n_pairs or not is_worth_listing(c, len(arcs)):
            return None
        owners = np.lexsort((arcs[:, 1], arcs[:, 0]))
        before, label = arcs[owners].T
        order = np.lexsort((before, label))
        counts = (np.bincount(each, minlength=c) for each in (before, label))
        offsets, in_offsets = map(offsets_of, counts)
        small = (each.astype(np.int32) for each in (label, before[order]))
        targets, sources = small
        return cls(ListedArcs(offsets, targets, in_offsets, sources, order), owners)
