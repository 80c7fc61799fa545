"""The spans to predict when a missed one costs as much as a wrong one: all that are likely enough, without overlaps.

The most probable tags leave out every span that is less likely than its absence. F1 asks for more: a span with
probability p adds 2p to twice the expected number of right ones and 1 to the number predicted, so that it raises an
F1 of F wherever p > F / 2. With `threshold` t the spans chosen make Σ (p - t) greatest, exactly.

>>> found = [PartProbability(0, 2, "PER", 0.4), PartProbability(1, 2, "LOC", 0.3), PartProbability(3, 4, "LOC", 0.1)]
>>> [(span.start, span.end) for span in choose_spans(found, 4, threshold=0.2)]
[(0, 2)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trelliswork.errors import TrellisworkError
from trelliswork.models.base import PartProbability
from trelliswork.models.taggers.labels import Labels
from trelliswork.runtime.arrays import Array, Float
from trelliswork.tags.schemes import split_tag

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.distributions.grouped_chain import TagDistribution
    from trelliswork.distributions.spans import Span

SMALLEST = 1e-3  # below, there can be more spans than memory
MOST_PAIRS = 20_000_000  # probabilities of pairs of labels that are kept at a time
BEGINS = "BSU"  # prefixes of labels that begin a span


def check_threshold(threshold: float, labels: Labels) -> None:
    """Refuse a threshold that is not a probability, and tags that have no spans."""
    if not SMALLEST <= threshold <= 1:
        raise TrellisworkError(f"threshold must lie in {SMALLEST}..1; got {threshold}; half the F1 on dev data is best")
    if not labels.has_spans:
        raise TrellisworkError("expected tags of spans for a threshold, got plain tags; tag without one")


def likely_spans(
    members: Sequence[TagDistribution], labels: Labels, lengths: Sequence[int], threshold: float
) -> list[list[PartProbability]]:
    """Return all spans of each sentence with a probability of `threshold` or more, under the mean of the members.

    A span is no likelier than that each of its tokens has its type, which leaves few to look at. Of one chain, it is no
    likelier than that its tokens go on as one span, which leaves few even if the model is unsure of everything.

    Args:
        members: chains over the labels of the same sentences; their mean counts.
        labels: the labels by their number in the chains.
        lengths: tokens of each sentence.
        threshold: the least probability of a span.

    Returns:
        For each sentence its spans with their probabilities.
    """
    names = labels.vocabulary.to_list()
    marginals = sum(member.marginals for member in members[1:]) + members[0].marginals
    marginals = (marginals / len(members)).cpu()
    first = members[0]
    if len(members) == 1 and hasattr(first, "pairwise_marginals") and marginals.numel() * len(names) <= MOST_PAIRS:
        pairs = first.pairwise_marginals.cpu().double().numpy()
        shares = marginals.double().numpy()
        spans = [_going_on(shares[row, :n], pairs[row, : n - 1], names, threshold) for row, n in enumerate(lengths)]
    else:
        spans = [_candidates(marginals[row, :n], names, threshold) for row, n in enumerate(lengths)]
    shares_of = [member.span_probabilities(spans, tags=names, scheme=labels.scheme) for member in members]
    means = [(sum(of_row[1:]) + of_row[0]).div(len(members)).tolist() for of_row in zip(*shares_of, strict=True)]
    return [
        [PartProbability(*span, min(p, 1.0)) for span, p in zip(row, shares, strict=True) if p >= threshold]
        for row, shares in zip(spans, means, strict=True)
    ]


def _kinds(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the labels of each type of span."""
    kinds: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        if name != "O":
            kinds.setdefault(split_tag(name)[1], []).append(i)
    return kinds


def _going_on(shares: Array, pairs: Array, names: Sequence[str], threshold: float) -> list[Span]:
    """Return spans [first, last) whose tokens go on as one span with a probability of `threshold` or more.

    p(first..t + 1 in one span) = Σ_a p(first..t in one span, label a at t) p(label b at t + 1 | a), over the labels b
    that go on: the posterior of a chain is a Markov chain itself.
    """
    spans: list[Span] = []
    for kind, columns in _kinds(names).items():
        goes_on = np.array([names[i][:1] not in BEGINS for i in columns])
        block = pairs[:, columns][:, :, columns] * goes_on
        of_first = shares[:-1, columns]
        steps = np.divide(block, of_first[:, :, None], out=np.zeros_like(block), where=of_first[:, :, None] > 0)
        starts, inside, length = np.arange(len(shares)), shares[:, columns], 1
        while len(starts):
            likely = inside.sum(-1) >= threshold * (1 - 1e-6)
            starts, inside = starts[likely], inside[likely]
            spans += [(int(start), int(start) + length, kind) for start in starts]
            has_next = starts + length < len(shares)
            starts, inside = starts[has_next], inside[has_next]
            inside = np.einsum("sa,sab->sb", inside, steps[starts + length - 1])
            length += 1
    return sorted(spans)


def _candidates(marginals: Float[Tensor, "n c"], names: Sequence[str], threshold: float) -> list[Span]:
    """Return spans whose tokens all have the type with a probability of `threshold` or more."""
    spans: list[Span] = []
    for kind, columns in _kinds(names).items():
        likely = (marginals[:, columns].sum(-1) >= threshold).tolist()
        spans += [(first, last, kind) for first, last in _inside(likely)]
    return sorted(spans)


def _inside(likely: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield all spans [first, last) without a False."""
    for first in range(len(likely)):
        last = first
        while last < len(likely) and likely[last]:
            last += 1
            yield first, last


def choose_spans(spans: Sequence[PartProbability], n: int, threshold: float) -> list[PartProbability]:
    """Return those of the spans, none overlapping, that make Σ (probability - threshold) greatest, in order.

    best[j] = max(best[j - 1], max over spans [i, j) of best[i] + p - threshold)

    Args:
        spans: spans of one sentence, which may overlap.
        n: tokens of the sentence.
        threshold: what a span costs.

    Returns:
        The chosen ones, in order.
    """
    ending: list[list[PartProbability]] = [[] for _ in range(n + 1)]
    for span in spans:
        ending[span.end].append(span)
    best, last = [0.0] * (n + 1), [None] * (n + 1)  # type: tuple[list[float], list[PartProbability | None]]
    for j in range(1, n + 1):
        best[j] = best[j - 1]
        for span in ending[j]:
            gain = best[span.start] + span.probability - threshold
            if gain > best[j]:
                best[j], last[j] = gain, span
    chosen, j = [], n
    while j > 0:
        span_here = last[j]
        if span_here is not None:
            chosen.append(span_here)
        j = j - 1 if span_here is None else span_here.start
    return chosen[::-1]
