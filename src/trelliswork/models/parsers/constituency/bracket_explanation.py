"""Alternatives to the brackets of a tree: other labels of each bracket, and the brackets that cross it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import groupby
from typing import ClassVar, NamedTuple

import numpy as np

from trelliswork.models.base import Alternative
from trelliswork.models.parsers.constituency.derivations import Bracket
from trelliswork.models.votes import LEGEND, SHOWN, Reason, best_html, best_lines, isolated, largest
from trelliswork.runtime.arrays import Array

MOST = 3  # other labels of a span, and brackets across it, that are shown
LEAST = 0.001  # probability of one that is shown
LONGEST = 40  # characters of the words of a bracket that are shown


@dataclass(frozen=True)
class ExplainedSpan:
    """One span of a tree: its constituents from the top down, the other labels it may have, and what crosses it."""

    brackets: tuple[BracketShare, ...]
    labels: tuple[BracketShare, ...]
    crossing: tuple[BracketShare, ...]
    reason: Reason | None = None

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest others and votes."""
        lists = {"brackets": self.brackets, "labels": self.labels[:most], "crossing": self.crossing[:most]}
        why = {} if self.reason is None else {"reason": self.reason.record(most)}
        return {**{name: [asdict(each) for each in parts] for name, parts in lists.items()}, **why}


@dataclass(frozen=True)
class BracketExplanation:
    """The brackets of a tree, each with the strongest alternatives; prints as text and shows as a table."""

    title: ClassVar[str] = "Brackets"
    lead: ClassVar[str] = (
        "For each bracket of the tree its words, the probability that they are a constituent and that they are one "
        "with this label; below it (|) other labels of the same words, and (x) brackets that cross it and could stand "
        "in its place, the most probable first; then by how much the tree beats the best one without the bracket, and "
        "what this is due to, strongest first: words, or rules of a grammar."
    )
    legend: ClassVar[str] = (
        '<p class="note">The brackets of the tree are in bold; | other labels, x crossing.</p>\n'
        + LEGEND.format(what="the bracket", score="the score of the tree, compared with its rival", shown=SHOWN)
    )

    words: tuple[str, ...]
    spans: tuple[ExplainedSpan, ...]
    is_sure: bool = True  # whether there are probabilities
    best: tuple[Alternative, ...] = ()

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        brackets: Sequence[Bracket],
        shares: BracketShares | None,
        reasons: Mapping[tuple[int, int], Reason] | None = None,
        best: Sequence[Alternative] = (),
    ) -> BracketExplanation:
        """Make it from the brackets of a tree, outermost first, and the probabilities of all, or None.

        Args:
            words: Words of the sentence.
            brackets: Brackets of its best tree, outermost first.
            shares: Probabilities of all brackets; None if there are none.
            reasons: What each bracket is due to, by its (start, end); None for no reasons.
            best: The best trees.

        Returns:
            The explanation.
        """
        groups = [list(group) for _, group in groupby(brackets, lambda each: each[:2])]
        if shares is None:
            alone = [ExplainedSpan(tuple(BracketShare(*each, 0.0, 0.0) for each in group), (), ()) for group in groups]
            return cls(tuple(words), tuple(alone), False)
        spans = [replace(_explained(group, shares), reason=(reasons or {}).get(group[0][:2])) for group in groups]
        return cls(tuple(words), tuple(spans), best=tuple(best))

    def record(self, most: int) -> dict[str, object]:
        """Return plain values: the brackets of each span, the `most` strongest others and votes, and the best trees."""
        return {"spans": [each.record(most) for each in self.spans], "best": [each.record() for each in self.best]}

    def _rows(self) -> Iterator[tuple[str, BracketShare, Reason | None]]:
        """Yield every line: a mark, "" of the tree itself, and what it says; the last of a span with its reason."""
        for each in self.spans:
            by_mark = (("", each.brackets), ("|", each.labels), ("x", each.crossing))
            rows = [(mark, part) for mark, parts in by_mark for part in parts]
            for i, row in enumerate(rows, 1):
                yield *row, each.reason if i == len(rows) else None

    def __str__(self) -> str:
        rows, number = list(self._rows()), len(str(len(self.words)))
        wide = max((len(part.label) for _, part, _ in rows), default=0)
        lines = []
        for mark, part, reason in rows:
            place = f"{part.start + 1:{number}d}-{part.end:<{number}d}"
            shown = f"{mark or ' ':>3} {place} {part.label:{wide}}{self._percent(part, '  ')}"
            lines.append(shown if mark == "|" else f"{shown}  {self._text(part)}")
            lines += [f"{'':{2 * number + 6}}{line}" for line in (reason.lines() if reason else ())]
        return "\n".join(line.rstrip() for line in [*lines, *best_lines(self.best)])

    def _percent(self, part: BracketShare, between: str) -> str:
        if not self.is_sure:
            return ""
        return "".join(f"{between}{100 * p:5.1f}%" for p in (part.span_probability, part.probability))

    def _text(self, part: BracketShare) -> str:
        text = " ".join(self.words[part.start : part.end])
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2].rstrip()} ... {text[-LONGEST // 2 :].lstrip()}"

    def _repr_html_(self) -> str:
        """Return a table: words, label, probabilities; what else is possible below each."""
        head = "".join(f"<th>{each}</th>" for each in ("", "words", "label", "of the span", "with the label"))
        rows, top = [], largest([each.reason for each in self.spans])
        for mark, part, reason in self._rows():
            name = escape(part.label) if mark else f"<b>{escape(part.label)}</b>"
            place = f"<td>{part.start + 1}-{part.end} {isolated(self._text(part))}</td>"
            shares = (f"{100 * p:.1f}%" if self.is_sure else "" for p in (part.span_probability, part.probability))
            cells = f"<td>{mark}</td>{place}<td>{name}</td>" + "".join(f"<td>{each}</td>" for each in shares)
            kind = ' class="other"' if mark else ""
            rows.append(f"<tr{kind}>{cells}</tr>")
            if reason:
                rows.append(f'<tr class="why"><td></td><td colspan="4">{reason.html(top)}</td></tr>')
        return f'<table class="arcs"><tr>{head}</tr>{"".join(rows)}</table>{best_html(self.best)}'


def _explained(group: Sequence[Bracket], shares: BracketShares) -> ExplainedSpan:
    """Return one span with its alternatives."""
    start, end, _ = group[0]
    own = {label for *_, label in group}
    of_labels = shares.of_labels[start, end - 1]
    order = [shares.labels[y] for y in np.argsort(-of_labels, kind="stable").tolist() if of_labels[y] >= LEAST]
    others = [shares.part(start, end, label) for label in order if label not in own][:MOST]
    crossing = [shares.best(i, j) for i, j in crossing_spans(shares.of_spans, start, end)]
    return ExplainedSpan(tuple(shares.part(*each) for each in group), tuple(others), tuple(crossing))


def rival_text(span: tuple[int, int], rival: Sequence[Bracket], words: Sequence[str]) -> str:
    """Describe what another tree has in the place of a span: other labels, what crosses it, or nothing.

    Args:
        span: The span.
        rival: Constituents of the other tree.
        words: Words of the sentence.

    >>> rival_text((0, 2), [(0, 3, "S"), (0, 2, "VP")], ["a", "b", "c"])
    'VP'
    """
    start, end = span
    same = [label for i, j, label in rival if (i, j) == span]
    if same:
        return "+".join(same)
    crosses = [each for each in rival if start < each[0] < end < each[1] or each[0] < start < each[1] < end]
    if not crosses:
        return f"no bracket over {' '.join(words[start:end])}"
    i, j, label = min(crosses, key=lambda each: each[1] - each[0])
    return f"{label} over {' '.join(words[i:j])}"


def crossing_spans(of_spans: Array, start: int, end: int) -> list[tuple[int, int]]:
    """Return the most probable spans that share words with [start, end) and have others, neither inside the other.

    Args:
        of_spans: Probability of each span as a constituent, [n, n], at its first and last token.
        start: First token of the span.
        end: End of the span, exclusive.

    Returns:
        Spans as (start, end), the most probable first.

    >>> crossing_spans(np.full((3, 3), 0.5), 0, 2)
    [(1, 3)]
    """
    crossing: list[tuple[float, int, int]] = []
    for first, last in ((slice(0, start), slice(start, end - 1)), (slice(start + 1, end), slice(end, None))):
        part = of_spans[first, last]
        i, j = np.nonzero(part >= LEAST)
        crossing += zip(
            part[i, j].tolist(), (i + (first.start or 0)).tolist(), (j + last.start + 1).tolist(), strict=True
        )
    crossing.sort(key=lambda each: -each[0])
    return [(i, j) for _, i, j in crossing[:MOST]]


# The probability of every bracket of a sentence, and how it is summed from that of symbols.


class BracketShares(NamedTuple):
    """Of each span of a sentence, at [first, last token]: how probable it is, and each of `labels` above it."""

    labels: Sequence[str]
    of_labels: Array  # [n, n, label]
    of_spans: Array  # [n, n]
    of_tops: Array = np.zeros((0, 0, 0))  # [n, n, label], of being the topmost; of a grammar alone

    def part(self, start: int, end: int, label: str) -> BracketShare:
        """Return the probability of a bracket.

        Args:
            start: Its first word.
            end: The word behind its last.
            label: Its label.

        Returns:
            Span and label with their probability.
        """
        share = self.of_labels[start, end - 1, list(self.labels).index(label)] if label in self.labels else 0.0
        return BracketShare(start, end, label, _sure(self.of_spans[start, end - 1]), _sure(share))

    def best(self, start: int, end: int) -> BracketShare:
        """Return a span with its most probable label."""
        return self.part(start, end, self.labels[int(self.of_labels[start, end - 1].argmax())])


@dataclass(frozen=True)
class BracketShare:
    """A constituent, the probability of one with any label over its words, and that of its own label."""

    start: int
    end: int
    label: str
    span_probability: float
    probability: float


def _sure(share: float) -> float:
    return min(float(share), 1.0)


def diagonal(chart: Array) -> Array:
    """Return the rows of a chart for single tokens, [n, ...]."""
    return np.ascontiguousarray(chart[np.arange(len(chart)), np.arange(len(chart))])


def summed(shares: Array, columns: Array) -> Array:
    """Return [..., column]: the shares of the symbols of each column, at most 1; symbols of column -1 are left out."""
    order = np.argsort(columns, kind="stable")
    order = order[np.searchsorted(columns[order], 0) :]
    starts = np.searchsorted(columns[order], np.arange(int(columns.max()) + 1))
    return np.minimum(np.add.reduceat(shares[..., order], starts, axis=-1), 1.0)
