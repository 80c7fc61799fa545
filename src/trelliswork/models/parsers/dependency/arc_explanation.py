"""Alternatives to the arcs of a tree: the heads of each word by their probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trelliswork.models.base import Alternative, Arc, PartProbability
from trelliswork.models.votes import LEGEND, SHOWN, Reason, best_html, best_lines, isolated, largest
from trelliswork.runtime.arrays import Array

MOST = 4  # heads of a word that are shown
LEAST = 0.001  # probability of one that is shown
ROOT = "(root)"


@dataclass(frozen=True)
class ArcExplanation:
    """The arcs of a tree, each with the strongest other heads of its word; prints as text and shows as a table."""

    title: ClassVar[str] = "Heads"
    lead: ClassVar[str] = (
        "For each word its arc in the best tree, and the other heads that it may have, the most probable first: the "
        "probability of the head, and the best label of that arc with the probability of both; then by how much the "
        "tree beats the best one in which the word has another arc, and the words that this is due to, strongest first."
    )

    legend: ClassVar[str] = (
        '<p class="note">The arcs of the best tree are in the rows with a word.</p>\n'
        + LEGEND.format(what="the arc", score="the score of the tree, compared with its rival", shown=SHOWN)
    )

    words: tuple[str, ...]
    arcs: tuple[PartProbability, ...]
    others: tuple[tuple[PartProbability, ...], ...]
    reasons: Mapping[int, Reason] = field(default_factory=dict)  # by word, from 0
    best: tuple[Alternative, ...] = ()

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        arcs: Sequence[Arc],
        marginals: ArrayLike,
        labels: Sequence[str],
        reasons: Mapping[int, Reason] | None = None,
        best: Sequence[Alternative] = (),
    ) -> ArcExplanation:
        """Make it from the arcs of the best tree and the probabilities [n+1, n+1, l] of head, word and label.

        Args:
            words: Words of the sentence.
            arcs: (head, label) of each word in the best tree.
            marginals: Probabilities [n+1, n+1, l] of head, word and label.
            labels: Names of the labels.
            reasons: What each arc is due to, by its word; None for no reasons.
            best: The best trees.

        Returns:
            The explanation.
        """
        table = np.asarray(marginals, float)
        number = {label: y for y, label in enumerate(labels)}
        chosen = [_arc(table, head, i, number[label], label) for i, (head, label) in enumerate(arcs)]
        others = [_others(table, arc.head or 0, i, labels) for i, arc in enumerate(chosen)]
        return cls(tuple(words), tuple(chosen), tuple(others), reasons or {}, tuple(best))

    def record(self, most: int) -> dict[str, object]:
        """Return plain values: each arc with the `most` strongest others and votes."""
        rows = [
            {**arc.record(), "others": [other.record() for other in others[:most]]}
            for arc, others in zip(self.arcs, self.others, strict=True)
        ]
        for i, reason in self.reasons.items():
            rows[i]["reason"] = reason.record(most)
        return {"arcs": rows, "best": [each.record() for each in self.best]}

    def __str__(self) -> str:
        width, shown = max(map(len, self.words), default=0), [self._shown(each) for each in self._every()]
        wide = max(map(len, shown), default=0)
        lines, place = [], iter(shown)
        for i, word in enumerate(self.words):
            for j, arc in enumerate((self.arcs[i], *self.others[i])):
                start = f"{i + 1:3d} {word:{width}}" if j == 0 else " " * (width + 4)
                mark = "  " if j == 0 else " |"
                sure = f"{100 * (arc.head_probability or 0):5.1f}%  {100 * arc.probability:5.1f}%"
                lines.append(f"{start}{mark} {next(place):{wide}}  {sure}")
            if i in self.reasons:
                lines += [f"{'':{width + 7}}{line}" for line in self.reasons[i].lines()]
        return "\n".join([*lines, *best_lines(self.best)])

    def _every(self) -> list[PartProbability]:
        return [arc for i in range(len(self.words)) for arc in (self.arcs[i], *self.others[i])]

    def _shown(self, arc: PartProbability) -> str:
        return arc_text(self.words, arc.head, arc.label)

    def _repr_html_(self) -> str:
        """Return a table: word, head, label, probabilities; what else is possible below each."""
        head = "".join(f"<th>{each}</th>" for each in ("word", "head", "label", "of the head", "with the label"))
        rows, top = [], largest(list(self.reasons.values()))
        for i, word in enumerate(self.words):
            for j, arc in enumerate((self.arcs[i], *self.others[i])):
                name, kind = (f"<b>{isolated(word)}</b>", "") if j == 0 else ("", ' class="other"')
                sure = "".join(f"<td>{100 * p:.1f}%</td>" for p in (arc.head_probability or 0, arc.probability))
                cells = (
                    f"<td>{name}</td><td>{isolated(node_text(self.words, arc.head))}</td><td>{escape(arc.label)}</td>"
                )
                rows.append(f"<tr{kind}>{cells}{sure}</tr>")
            if i in self.reasons:
                rows.append(f'<tr class="why"><td></td><td colspan="4">{self.reasons[i].html(top)}</td></tr>')
        return f'<table class="arcs"><tr>{head}</tr>{"".join(rows)}</table>{best_html(self.best)}'


def node_text(words: Sequence[str], node: int | None) -> str:
    """Return a word, from 1, with its number; 0 is the root."""
    return f"{node} {words[node - 1]}" if node else ROOT


def arc_text(words: Sequence[str], head: int | None, label: str) -> str:
    """Write an arc as text, its label first.

    >>> arc_text(["Ann", "sings"], 2, "nsubj")
    'nsubj of 2 sings'

    Args:
        words: Words of the sentence.
        head: Head, words counted from 1 and 0 being the root; None for none.
        label: Label of the arc.

    Returns:
        The text.
    """
    return f"{label} of {node_text(words, head)}"


def _arc(table: Array, head: int, i: int, y: int, label: str) -> PartProbability:
    """Return the arc from a head to word i, from 0."""
    of_head = table[head, i + 1]
    return PartProbability(i, i + 1, label, float(of_head[y]), head, float(min(of_head.sum(), 1.0)))


def _others(table: Array, chosen: int, i: int, labels: Sequence[str]) -> tuple[PartProbability, ...]:
    """Return the most probable other heads of word i, each with its best label."""
    heads = table[:, i + 1].sum(-1)
    heads[chosen] = 0.0
    best = [h for h in np.argsort(-heads, kind="stable")[:MOST].tolist() if heads[h] >= LEAST]
    return tuple(_arc(table, h, i, y, labels[y]) for h in best for y in [int(table[h, i + 1].argmax())])
