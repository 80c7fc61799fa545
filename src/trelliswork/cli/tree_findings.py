"""What `check` finds out about the trees of a CoNLL-U file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from trelliswork.cli.findings import Finding
from trelliswork.data.arcs import is_projective
from trelliswork.data.sentence import Sentence
from trelliswork.data.treebank import NOTHING, surveyed
from trelliswork.errors import DataError


@dataclass
class TreeSurvey:
    """Counts of trees and labels, and what is wrong, with its lines."""

    n_trees: int = 0
    n_crossing: int = 0
    deepest: int = 0
    deepest_line: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    broken: list[Finding] = field(default_factory=list)
    unlabelled: list[Finding] = field(default_factory=list)

    @classmethod
    def of(cls, file: str) -> TreeSurvey | None:
        """A treebank, read whole; None if no word has a head."""
        found, any_head = cls(), False
        for each in surveyed(file):
            if isinstance(each, DataError):
                any_head |= "is not annotated" not in each.problem
                found.broken.append(Finding(each.line or 0, each.problem))
            else:
                any_head = True
                found._add(each)
        return found if any_head else None

    def _add(self, sentence: Sentence) -> None:
        heads = sentence.heads or ()
        self.n_trees += 1
        self.n_crossing += not is_projective(heads)
        self.labels.update(sentence.tags or ())
        depth = deepest(heads)
        if depth > self.deepest:
            self.deepest, self.deepest_line = depth, sentence.line
        for i, label in enumerate(sentence.tags or ()):
            if label == NOTHING:
                self.unlabelled.append(Finding(sentence.line_of(i), f"{sentence.words[i]!r} has no label"))

    @property
    def rare(self) -> list[str]:
        """Labels seen once: often misspelt."""
        return sorted(label for label, n in self.labels.items() if n == 1)


def deepest(heads: Sequence[int]) -> int:
    """How many arcs lead to the word that is farthest from the root.

    >>> deepest((2, 0, 2))
    2
    """
    depths = [0] + [-1] * len(heads)
    for start in range(1, len(heads) + 1):
        way = [start]
        while depths[heads[way[-1] - 1]] < 0:
            way.append(heads[way[-1] - 1])
        first = depths[heads[way[-1] - 1]]
        for n, word in enumerate(reversed(way), 1):
            depths[word] = first + n
    return max(depths)
