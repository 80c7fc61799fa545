"""The choices of each part of an answer, with their exact probabilities, and the entropy of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trelliswork.errors import ConstraintError
from trelliswork.models.base import PartProbability
from trelliswork.runtime.arrays import Array

NO_CONSTITUENT = ""  # the label of a span that is no constituent
LEAST_SPAN = 0.001  # probability that a span is a constituent at all, from which on its choices are listed


@dataclass(frozen=True)
class PartChoices:
    """A part, positions [start, end), with its choices, the most probable first, and their entropy in bits.

    The probabilities of all choices sum to 1, and `entropy` is that of all, however many are listed. A choice is a tag
    of a token, a head and label of a word, or a label of a span (empty if the span is no constituent). Two kinds of
    models differ: of a treebank grammar, a span can have several of the labels at once; of a transducer, a choice is
    what a piece of the source becomes, and what is missing to 1 is that the source is cut elsewhere.
    """

    start: int
    end: int
    choices: tuple[PartProbability, ...]
    entropy: float


def entropy_bits(shares: Array) -> Array:
    """Return the entropy of distributions along the last axis.

    >>> entropy_bits(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    logs = np.log2(shares, out=np.zeros(shares.shape), where=shares > 0)
    bits: Array = np.maximum(-(shares * logs).sum(-1), 0.0) + 0.0
    return bits


def token_choices(shares: Array, labels: Sequence[str], most: int | None = None) -> list[PartChoices]:
    """Return the choices of each token from their probabilities [n, labels].

    Args:
        shares: probabilities [n, labels].
        labels: their names.
        most: how many choices to list for each part; None for all.

    Returns:
        The choices of each token.
    """
    _require_some(shares.sum(-1))
    return [_choices(i, i + 1, row, labels, most, bits) for i, (row, bits) in enumerate(_with_entropy(shares))]


def span_choices(shares: Array, labels: Sequence[str], most: int | None = None) -> list[PartChoices]:
    """Return the choices of each span from the probabilities of its labels [n, n, labels]; the first label is none.

    Spans that are hardly ever constituents are left out.

    Args:
        shares: probabilities [n, n, labels] by first token, last token and label.
        labels: their names.
        most: how many choices to list for each part; None for all.

    Returns:
        The choices of each span.
    """
    _require_some(shares[0, -1].sum(keepdims=True) if shares.size else np.ones(1))
    shares = shares.copy()
    shares[..., 0] = np.maximum(1.0 - shares[..., 1:].sum(-1), 0.0)  # spans outside of a tree are none either
    choices = []
    for i, j in zip(*np.nonzero(np.triu(shares[..., 0] <= 1.0 - LEAST_SPAN)), strict=True):
        bits = float(entropy_bits(shares[i, j]))
        choices.append(_choices(int(i), int(j) + 1, shares[i, j], labels, most, bits))
    return choices


def stacked_choices(shares: Array, tops: Array, labels: Sequence[str], most: int | None = None) -> list[PartChoices]:
    """Return the same where constituents can be above each other on the same words.

    `shares` and `tops` [n, n, labels] have the probability of each label above a span, and of being the topmost there.

    Args:
        shares: probabilities [n, n, labels] of each label above a span.
        tops: probabilities [n, n, labels] of being the topmost label there.
        labels: their names.
        most: how many choices to list for each part; None for all.

    Returns:
        The choices of each span.
    """
    none = np.maximum(1.0 - tops.sum(-1), 0.0)
    choices = []
    for i, j in zip(*np.nonzero(np.triu(none <= 1.0 - LEAST_SPAN)), strict=True):
        bits = float(entropy_bits(np.append(tops[i, j], none[i, j])))
        row = np.append(none[i, j], shares[i, j])
        listed = _choices(int(i), int(j) + 1, row, [NO_CONSTITUENT, *labels], most, bits)
        choices.append(replace(listed, choices=tuple(each for each in listed.choices if each.probability > 0)))
    return choices


def arc_choices(table: Array, labels: Sequence[str], most: int | None = None) -> list[PartChoices]:
    """Return the heads and labels of each word from the probabilities of arcs [n + 1 heads, n + 1 words, labels].

    Args:
        table: probabilities [n + 1, n + 1, labels] by head, word and label; 0 is the root.
        labels: their names.
        most: how many choices to list for each part; None for all.

    Returns:
        The choices of each word.
    """
    _require_some(table[:, 1:].sum((0, 2)))
    choices = []
    for i in range(table.shape[1] - 1):
        shares = table[:, i + 1]  # (heads, labels)
        heads, flat = np.minimum(shares.sum(-1), 1.0), shares.ravel()
        order = np.argsort(-flat, kind="stable")[: min(most or flat.size, int((flat > 0).sum()))]
        parts = tuple(
            PartProbability(i, i + 1, labels[y], float(shares[h, y]), int(h), float(heads[h]))
            for h, y in zip(*np.divmod(order, shares.shape[1]), strict=True)
        )
        choices.append(PartChoices(i, i + 1, parts, float(entropy_bits(flat))))
    return choices


def _require_some(totals: Array) -> None:
    """Refuse pins that leave nothing: the probabilities of all choices then do not sum to 1."""
    if not (totals > 0.5).all():
        raise ConstraintError("no answer agrees with the pins; drop one of them, or pin others that go together")


def _with_entropy(shares: Array) -> zip[tuple[Array, float]]:
    return zip(shares, entropy_bits(shares).tolist(), strict=True)


def _choices(start: int, end: int, row: Array, labels: Sequence[str], most: int | None, bits: float) -> PartChoices:
    order = np.argsort(-row, kind="stable")[:most].tolist()
    return PartChoices(start, end, tuple(PartProbability(start, end, labels[j], float(row[j])) for j in order), bits)
