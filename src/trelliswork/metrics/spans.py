"""Precision, recall and F1 of spans: exact boundaries and type, per type and overall.

>>> report = span_scores([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]], "IOB2")
>>> report.overall.f1, report.overall.support
(0.0, 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq

from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.errors import TrellisworkError
from trelliswork.tags.schemes import Span, canonical, spans_of


@dataclass(frozen=True)
class Score(Rich):
    """Counts of right, predicted and gold spans, and the ratios made of them; 0/0 is 0.

    >>> Score(correct=1, predicted=2, gold=4).precision
    0.5
    """

    correct: int
    predicted: int
    gold: int

    @property
    def support(self) -> int:
        """Number of gold spans."""
        return self.gold

    @property
    def precision(self) -> float:
        """The share of predicted spans that are right."""
        return _ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """The share of gold spans that were found."""
        return _ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self.correct, self.predicted + self.gold)


@dataclass(frozen=True)
class Average(Rich):
    """Ratios averaged over the types."""

    precision: float
    recall: float
    f1: float
    support: int


def score_lines(rows: Sequence[tuple[str, Score | Average]]) -> list[str]:
    """Aligned lines, in per cent, under a line of names."""
    width = max(len(name) for name, _ in rows)
    lines = [f"{'':{width}}  precision  recall      F1  support"]
    for name, row in rows:
        ratios = f"{100 * row.precision:9.2f}  {100 * row.recall:6.2f}  {100 * row.f1:6.2f}"
        lines.append(f"{name:{width}}  {ratios}  {row.support:7d}")
    return lines


class OverallScores(Rich):
    """Numbers of reports with an `overall` score."""

    overall: Score

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: a row for each type, in per cent, and one for all."""
        by_type: dict[str, Score] = getattr(self, "by_type", {})
        rows = [
            (name, *(f"{100 * ratio:.2f}" for ratio in (each.precision, each.recall, each.f1)), each.support)
            for name, each in [*by_type.items(), ("all", self.overall)]
        ]
        return [Table(rows, ("", "precision", "recall", "F1", "support"))]

    @property
    def precision(self) -> float:
        """Overall precision."""
        return self.overall.precision

    @property
    def recall(self) -> float:
        """Overall recall."""
        return self.overall.recall

    @property
    def f1(self) -> float:
        """Overall F1."""
        return self.overall.f1


@dataclass(frozen=True)
class SpanReport(OverallScores):
    """Scores per type and their averages. `overall` counts all spans alike (micro average)."""

    by_type: dict[str, Score]
    overall: Score
    scheme: str
    policy: str

    @property
    def macro(self) -> Average:
        """Every type counts the same."""
        return self._average([1.0] * len(self.by_type))

    @property
    def weighted(self) -> Average:
        """Every type counts by its number of gold spans."""
        return self._average([float(score.gold) for score in self.by_type.values()])

    def _average(self, weights: Sequence[float]) -> Average:
        total = sum(weights)
        scores = list(zip(weights, self.by_type.values(), strict=True))
        return Average(
            _ratio(sum(weight * score.precision for weight, score in scores), total),
            _ratio(sum(weight * score.recall for weight, score in scores), total),
            _ratio(sum(weight * score.f1 for weight, score in scores), total),
            self.overall.gold,
        )

    def table(self) -> str:
        """Aligned text, in per cent: one row per type, then the averages."""
        rows: list[tuple[str, Score | Average]] = [(kind or "(untyped)", s) for kind, s in self.by_type.items()]
        rows += [("macro", self.macro), ("weighted", self.weighted), ("overall", self.overall)]
        return "\n".join(score_lines(rows))

    def to_dict(self) -> dict[str, object]:
        """Return the same numbers, fit for JSON."""
        named: dict[str, Score | Average] = {"overall": self.overall, "macro": self.macro, "weighted": self.weighted}
        by_type = {kind: score_numbers(score) for kind, score in self.by_type.items()}
        averages = {name: score_numbers(row) for name, row in named.items()}
        return {"scheme": self.scheme, "policy": self.policy, **averages, "by_type": by_type}


def span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: str, policy: str = "conlleval"
) -> SpanReport:
    """Compare predicted with gold tag sequences, span by span.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags of the same sentences.
        scheme: Scheme of the tags, such as IOB2.
        policy: How illegal sequences are read: "conlleval" generously, "strict" only well-formed spans.

    Returns:
        Precision, recall and F1 by label and overall.
    """
    scheme = canonical(scheme)
    if scheme == "plain":
        raise TrellisworkError("plain tags have no spans to score; use token_accuracy, or name the scheme")
    check_alignment(gold, predicted)
    in_gold, in_predicted, in_both = list[Span](), list[Span](), list[Span]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans = predicted_spans = both = spans_of(gold_tags, scheme, policy)
        if list(gold_tags) != list(predicted_tags):
            predicted_spans = spans_of(predicted_tags, scheme, policy)
            both = [*{*gold_spans} & {*predicted_spans}]
        in_gold += gold_spans
        in_predicted += predicted_spans
        in_both += both
    n_gold, n_predicted, n_correct = (Counter([kind for *_, kind in each]) for each in (in_gold, in_predicted, in_both))
    kinds = sorted(set(n_gold) | set(n_predicted))
    by_type = {kind: Score(n_correct[kind], n_predicted[kind], n_gold[kind]) for kind in kinds}
    overall = Score(n_correct.total(), n_predicted.total(), n_gold.total())
    return SpanReport(by_type, overall, scheme, policy)


def check_alignment(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
    """Both sides must have the same sentences of the same lengths."""
    if len(gold) != len(predicted):
        raise TrellisworkError(f"expected as many predicted as gold sentences ({len(gold)}); got {len(predicted)}")
    for i, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            sizes = f"{len(gold_tags)} gold tags and {len(predicted_tags)} predicted ones"
            raise TrellisworkError(f"expected one predicted tag per token; sentence {i} has {sizes}")


def score_numbers(row: Score | Average) -> dict[str, float]:
    """Return the ratios of a row, fit for JSON."""
    return {"precision": row.precision, "recall": row.recall, "f1": row.f1, "support": row.support}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


# Token accuracy, and which tag was taken for which.


def token_accuracy(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the share of tokens with the right tag; 0 when there are none.

    >>> token_accuracy([["DT", "NN"]], [["DT", "VB"]])
    0.5
    """
    check_alignment(gold, predicted)
    n_tokens = sum(len(tags) for tags in gold)
    pairs = zip(gold, predicted, strict=True)
    n_right = sum(sum(map(eq, row, other)) for row, other in pairs)
    return n_right / n_tokens if n_tokens else 0.0


@dataclass(frozen=True)
class Confusion(Rich):
    """`counts[i][j]`: how many tokens of gold label `labels[i]` were given `labels[j]`."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: gold labels down, predicted labels across."""
        rows = [(gold, *counts) for gold, counts in zip(self.labels, self.counts, strict=True)]
        return [Table(rows, ("gold \\ predicted", *self.labels))]

    def worst(self, k: int = 10) -> list[tuple[str, str, int]]:
        """Return the `k` most frequent mistakes: gold, predicted, count."""
        wrong = [
            (gold, predicted, n)
            for gold, row in zip(self.labels, self.counts, strict=True)
            for predicted, n in zip(self.labels, row, strict=True)
            if n and gold != predicted
        ]
        return sorted(wrong, key=lambda mistake: (-mistake[2], mistake[0], mistake[1]))[:k]


def confusion(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Confusion:
    """Count gold against predicted labels, token by token.

    >>> confusion([["A", "B"]], [["A", "A"]])
    Confusion(labels=('A', 'B'), counts=((1, 0), (1, 0)))
    """
    check_alignment(gold, predicted)
    pairs: Counter[tuple[str, str]] = Counter()
    for row, other in zip(gold, predicted, strict=True):
        pairs.update(zip(row, other, strict=True))
    labels = tuple(sorted({label for pair in pairs for label in pair}))
    return Confusion(labels, tuple(tuple(pairs[a, b] for b in labels) for a in labels))
