"""Attachment scores of dependency trees: the share of words with the right head, and with the right label too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trelliswork.draw.notebook import Rich
from trelliswork.errors import TrellisworkError

Arc = tuple[int, str]  # head, counted from 1 with 0 for the root, and label


@dataclass(frozen=True)
class Attachment(Rich):
    """Counts of words, all of them and those whose head, label, or both are right, and of whole trees."""

    n_words: int
    n_heads: int
    n_labels: int
    n_both: int
    n_trees: int
    n_exact: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score."""
        return self.n_heads / max(self.n_words, 1)

    @property
    def las(self) -> float:
        """Labelled attachment score."""
        return self.n_both / max(self.n_words, 1)

    @property
    def label_accuracy(self) -> float:
        """The share of words whose label is right, whatever their head."""
        return self.n_labels / max(self.n_words, 1)

    @property
    def exact(self) -> float:
        """The share of trees without a mistake."""
        return self.n_exact / max(self.n_trees, 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return {
            "trees": self.n_trees, "words": self.n_words, "uas": self.uas, "las": self.las,
            "label_accuracy": self.label_accuracy, "exact": self.exact,
        }  # fmt: skip


def attachment(gold: Sequence[Sequence[Arc]], found: Sequence[Sequence[Arc]]) -> Attachment:
    """Compare trees word by word; every word counts, punctuation included.

    >>> attachment([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]]).uas
    1.0
    """
    if len(gold) != len(found):
        raise TrellisworkError(f"expected {len(gold)} trees, as many as gold has; got {len(found)}")
    heads = labels = both = words = exact = 0
    for i, (right, given) in enumerate(zip(gold, found, strict=True)):
        if len(right) != len(given):
            raise TrellisworkError(f"expected arcs for the {len(right)} words of tree {i}; got {len(given)}")
        n_both = sum(a == b for a, b in zip(right, given, strict=True))
        heads += sum(a[0] == b[0] for a, b in zip(right, given, strict=True))
        labels += sum(a[1] == b[1] for a, b in zip(right, given, strict=True))
        both, words, exact = both + n_both, words + len(right), exact + (n_both == len(right))
    return Attachment(words, heads, labels, both, len(gold), exact)
