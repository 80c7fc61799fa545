"""Labelled brackets of predicted trees against gold ones, counted as evalb counts them with COLLINS.prm.

>>> gold = [Parsed(("NN", "VB", "."), ((0, 3, "S"), (0, 1, "NP"), (1, 2, "VP")))]
>>> found = [Parsed(("NN", "NN", "."), ((0, 3, "S"), (0, 2, "NP")))]
>>> report = bracket_scores(gold, found)
>>> report.precision, report.recall, report.tagging_accuracy
(0.5, 0.3333333333333333, 0.5)

Black et al. (1991), A procedure for quantitatively comparing the syntactic coverage of English grammars; Sekine and
Collins (1997), evalb. Roots (TOP) do not count, nor do brackets above punctuation alone; punctuation is taken out
before brackets are compared; ADVP and PRT are one label; a sentence whose number of words differs is skipped. Which
words are punctuation is read from the gold tags on both sides: evalb reads each side's own, and skips the sentences in
which they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trelliswork.errors import TrellisworkError
from trelliswork.metrics.spans import OverallScores, Score, score_lines, score_numbers

NOT_COUNTED = frozenset({"TOP", "ROOT", "S1", "VROOT", ""})
PUNCTUATION = frozenset({",", ":", "``", "''", "."})
EQUAL = {"PRT": "ADVP"}
Bracket = tuple[int, int, str]


class Parsed(NamedTuple):
    """The tags of a sentence and its brackets (start, end, label), end exclusive, without those of the tags."""

    tags: Sequence[str]
    brackets: Sequence[Bracket]


@dataclass(frozen=True)
class BracketReport(OverallScores):
    """Counts over all sentences that could be compared; `sentences` has the counts of each, None where skipped."""

    by_label: dict[str, Score]
    overall: Score
    sentences: Sequence[Score | None]
    n_exact: int  # sentences whose brackets are all right, and none too many
    n_crossing: int  # predicted brackets that cross a gold one
    n_uncrossed: int  # sentences without any
    n_right_tags: int
    n_tags: int

    @property
    def n_compared(self) -> int:
        """Sentences that could be compared."""
        return sum(each is not None for each in self.sentences)

    @property
    def n_skipped(self) -> int:
        """Sentences with another number of words than gold."""
        return len(self.sentences) - self.n_compared

    @property
    def exact_match(self) -> float:
        """The share of sentences whose brackets are those of gold."""
        return self.n_exact / max(self.n_compared, 1)

    @property
    def crossing(self) -> float:
        """Crossing brackets in a sentence, on average."""
        return self.n_crossing / max(self.n_compared, 1)

    @property
    def without_crossing(self) -> float:
        """The share of sentences without crossing brackets."""
        return self.n_uncrossed / max(self.n_compared, 1)

    @property
    def tagging_accuracy(self) -> float:
        """The share of right tags, punctuation aside."""
        return self.n_right_tags / max(self.n_tags, 1)

    def table(self) -> str:
        """Aligned text, in per cent: one row per label, the most frequent first, then what is made of all."""
        ordered = sorted(self.by_label.items(), key=lambda item: (-item[1].gold, item[0]))
        lines = score_lines([*ordered, ("overall", self.overall)])
        rows = {
            "bracket F1": 100 * self.f1, "exact match": 100 * self.exact_match, "crossing brackets": self.crossing,
            "without crossing": 100 * self.without_crossing, "tagging accuracy": 100 * self.tagging_accuracy,
        }  # fmt: skip
        lines += ["", *(f"{name:<24}{value:6.2f}" for name, value in rows.items())]
        if self.n_skipped:
            lines.append(f"{'skipped sentences':<24}{self.n_skipped:6d}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the same numbers, fit for JSON."""
        return {
            "precision": self.precision, "recall": self.recall, "f1": self.f1, "exact_match": self.exact_match,
            "crossing": self.crossing, "without_crossing": self.without_crossing,
            "tagging_accuracy": self.tagging_accuracy, "sentences": self.n_compared, "skipped": self.n_skipped,
            "by_label": {name: score_numbers(row) for name, row in self.by_label.items()},
        }  # fmt: skip


def bracket_scores(gold: Sequence[Parsed], predicted: Sequence[Parsed]) -> BracketReport:
    """Compare predicted with gold trees, bracket by bracket."""
    if len(gold) != len(predicted):
        raise TrellisworkError(f"expected as many predicted as gold sentences ({len(gold)}); got {len(predicted)}")
    pairs = list(zip(gold, predicted, strict=True))
    compared = [_compare(*pair) if len(pair[0].tags) == len(pair[1].tags) else None for pair in pairs]
    known = [each for each in compared if each is not None]
    right, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    for each in known:
        right.update(each.right)
        found.update(each.found)
        wanted.update(each.wanted)
    by_label = {name: Score(right[name], found[name], wanted[name]) for name in sorted({*found, *wanted})}
    sentences = [None if each is None else _score(each.right, each.found, each.wanted) for each in compared]
    return BracketReport(
        by_label, _score(right, found, wanted), sentences,
        sum(each.right == each.found == each.wanted for each in known), sum(each.n_crossing for each in known),
        sum(each.n_crossing == 0 for each in known), sum(each.n_right_tags for each in known),
        sum(each.n_tags for each in known),
    )  # fmt: skip


class _Counts(NamedTuple):
    right: Counter[str]
    found: Counter[str]
    wanted: Counter[str]
    n_crossing: int
    n_right_tags: int
    n_tags: int


def _compare(gold: Parsed, predicted: Parsed) -> _Counts:
    places = _places(gold.tags)
    wanted, found = counted(gold, places), counted(predicted, places)
    tags = [(a, b) for a, b in zip(gold.tags, predicted.tags, strict=True) if a not in PUNCTUATION]
    return _Counts(
        _by_label(wanted & found), _by_label(found), _by_label(wanted), _n_crossing(found, wanted),
        sum(a == b for a, b in tags), len(tags),
    )  # fmt: skip


def _places(tags: Sequence[str]) -> list[int]:
    """Count the words that count before each word, and before the end."""
    places = [0]
    for tag in tags:
        places.append(places[-1] + (tag not in PUNCTUATION))
    return places


def counted(parsed: Parsed, places: Sequence[int]) -> Counter[Bracket]:
    """Return the brackets that count, how often each occurs, between words that count (see `_places`)."""
    return Counter(
        (places[start], places[end], EQUAL.get(label, label))
        for start, end, label in parsed.brackets
        if label not in NOT_COUNTED and places[start] < places[end]
    )


def _n_crossing(found: Counter[Bracket], wanted: Counter[Bracket]) -> int:
    others = {(start, end) for start, end, _ in wanted}
    return sum(
        n for (i, j, _), n in found.items() if any(i < start < j < end or start < i < end < j for start, end in others)
    )


def _by_label(brackets: Counter[Bracket]) -> Counter[str]:
    total: Counter[str] = Counter()
    for (_, _, label), n in brackets.items():
        total[label] += n
    return total


def _score(right: Counter[str], found: Counter[str], wanted: Counter[str]) -> Score:
    return Score(right.total(), found.total(), wanted.total())
