"""What else a word may depend on: the heads of each word by their probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import numpy as np

from trelliswork.models.base import Arc, PartProbability

MOST = 4  # heads of a word that are shown
LEAST = 0.001  # probability of one that is shown
ROOT = "(root)"


@dataclass(frozen=True)
class ArcExplanation:
    """The arcs of a tree, each with the strongest other heads of its word; prints as text and shows as a table."""

    title: ClassVar[str] = "Heads"
    lead: ClassVar[str] = (
        "For each word its arc in the best tree, and the other heads that it may have, the most probable first: the "
        "probability of the head, and the best label of that arc with the probability of both."
    )

    legend: ClassVar[str] = '<p class="note">The arcs of the best tree are in the rows with a word.</p>\n'

    words: tuple[str, ...]
    arcs: tuple[PartProbability, ...]
    others: tuple[tuple[PartProbability, ...], ...]

    @classmethod
    def of(cls, words: Sequence[str], arcs: Sequence[Arc], marginals: Any, labels: Sequence[str]) -> ArcExplanation:
        """From the arcs of the best tree and the probabilities [n+1, n+1, l] of head, word and label."""
        table = np.asarray(marginals, float)
        number = {label: y for y, label in enumerate(labels)}
        chosen = [_arc(table, head, i, number[label], label) for i, (head, label) in enumerate(arcs)]
        others = [_others(table, arc.head or 0, i, labels) for i, arc in enumerate(chosen)]
        return cls(tuple(words), tuple(chosen), tuple(others))

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
        return "\n".join(lines)

    def _every(self) -> list[PartProbability]:
        return [arc for i in range(len(self.words)) for arc in (self.arcs[i], *self.others[i])]

    def _shown(self, arc: PartProbability) -> str:
        return f"{arc.label} of {self._head(arc)}"

    def _head(self, arc: PartProbability) -> str:
        return f"{arc.head} {self.words[arc.head - 1]}" if arc.head else ROOT

    def _repr_html_(self) -> str:
        """A table: word, head, label, probabilities; what else is possible below each."""
        head = "".join(f"<th>{each}</th>" for each in ("word", "head", "label", "of the head", "with the label"))
        rows = []
        for i, word in enumerate(self.words):
            for j, arc in enumerate((self.arcs[i], *self.others[i])):
                name, kind = (f"<b>{escape(word)}</b>", "") if j == 0 else ("", ' class="other"')
                sure = "".join(f"<td>{100 * p:.1f}%</td>" for p in (arc.head_probability or 0, arc.probability))
                told = f"<td>{name}</td><td>{escape(self._head(arc))}</td><td>{escape(arc.label)}</td>"
                rows.append(f"<tr{kind}>{told}{sure}</tr>")
        return f'<table class="arcs"><tr>{head}</tr>{"".join(rows)}</table>'


def _arc(table: Any, head: int, i: int, y: int, label: str) -> PartProbability:
    """The arc from a head to word i, from 0."""
    of_head = table[head, i + 1]
    return PartProbability(i, i + 1, label, float(of_head[y]), head, float(min(of_head.sum(), 1.0)))


def _others(table: Any, chosen: int, i: int, labels: Sequence[str]) -> tuple[PartProbability, ...]:
    """The most probable other heads of word i, each with its best label."""
    heads = table[:, i + 1].sum(-1)
    heads[chosen] = 0.0
    best = [h for h in np.argsort(-heads, kind="stable")[:MOST].tolist() if heads[h] >= LEAST]
    return tuple(_arc(table, h, i, y, labels[y]) for h in best for y in [int(table[h, i + 1].argmax())])
