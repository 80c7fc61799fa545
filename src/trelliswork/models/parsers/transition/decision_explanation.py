"""The decisions that build a tree, and what else could have been decided in each state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import torch
from torch import Tensor

from trelliswork.models.parsers.dependency.arc_explanation import LEAST, MOST, ROOT
from trelliswork.structures.beam.arc_hybrid import ArcHybrid
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.parse_state import SHIFT, DependencySystem, ParseState


@dataclass(frozen=True)
class Decision:
    """What is decided about a word: its arc, or to shift or swap it; words are counted from 1, and 0 is the root."""

    kind: str  # "shift", "arc" or "swap"
    word: int
    probability: float
    head: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class Step:
    """A state, by the top of its stack and its next word (None: none is left); the decision; the strongest others."""

    top: int
    next: int | None
    taken: Decision
    others: tuple[Decision, ...]


@dataclass(frozen=True)
class DecisionExplanation:
    """The decisions that build a tree, each with the strongest others; prints as text and shows as a table."""

    title: ClassVar[str] = "Decisions"
    lead: ClassVar[str] = (
        "The decisions that build the tree, one after the other, and the others that were possible in the same state, "
        "the most probable first. A probability is that of a decision given all before it, not that of an arc."
    )
    legend: ClassVar[str] = '<p class="note">The decisions taken are in the rows with a number.</p>\n'

    words: tuple[str, ...]
    steps: tuple[Step, ...]

    @classmethod
    def of(
        cls, words: Sequence[str], connected: tuple[Any, Any], system: DependencySystem, decisions: Sequence[int],
        labels: Sequence[str],
    ) -> DecisionExplanation:  # fmt: skip
        """Of one sentence, by a system and its scorer (`ParsingUnit.connected`) and the decisions that were taken."""
        state, log_probs, steps = connected[0].initial(), locally_normalised(*connected), []
        for taken in decisions:
            shares = log_probs(state)[0, 0].exp()
            steps.append(_step(system, ParseState(*state[: len(ParseState._fields)]), taken, shares, labels))
            state = connected[0].step(state, torch.full_like(state[1], taken))
        return cls(tuple(words), tuple(steps))

    def _word(self, i: int | None) -> str:
        return "" if i is None else f"{i} {self.words[i - 1]}" if i else ROOT

    def _told(self, each: Decision) -> str:
        if each.kind == "arc":
            return f"{self._word(each.word)}: {each.label} of {self._word(each.head)}"
        return f"{each.kind} {self._word(each.word)}"

    def _rows(self) -> Iterator[tuple[str, str, str, float]]:
        """Number, state, decision, probability; no number and no state of what was not decided."""
        for i, step in enumerate(self.steps, 1):
            state = f"{self._word(step.top)} / {self._word(step.next)}".rstrip(" /")
            yield str(i), state, self._told(step.taken), step.taken.probability
            yield from (("", "", self._told(other), other.probability) for other in step.others)

    def __str__(self) -> str:
        rows = list(self._rows())
        wide = max((len(state) for _, state, _, _ in rows), default=0)
        wider = max((len(told) for _, _, told, _ in rows), default=0)
        return "\n".join(
            f"{number:>3} {state:{wide}} {' ' if number else '|'} {told:{wider}}  {100 * p:5.1f}%"
            for number, state, told, p in rows
        )

    def _repr_html_(self) -> str:
        """A table: number, state, decision, probability; what else is possible below each."""
        head = "".join(f"<th>{each}</th>" for each in ("", "top of the stack / next word", "decision", "probability"))
        rows = []
        for number, state, told, p in self._rows():
            kind, name = ("", f"<b>{escape(told)}</b>") if number else (' class="other"', escape(told))
            cells = f"<td>{number}</td><td>{escape(state)}</td><td>{name}</td><td>{100 * p:.1f}%</td>"
            rows.append(f"<tr{kind}>{cells}</tr>")
        return f'<table class="arcs"><tr>{head}</tr>{"".join(rows)}</table>'


def _step(system: DependencySystem, state: ParseState, taken: int, shares: Tensor, labels: Sequence[str]) -> Step:
    order = [d for d in shares.argsort(descending=True, stable=True).tolist() if d != taken and shares[d] >= LEAST]
    found = [_decision(system, state, d, float(shares[d]), labels) for d in (taken, *order[:MOST])]
    ahead = int(state.next) if bool(system.has_more(state)) else None
    return Step(int(state.below_top(0)), ahead, found[0], tuple(found[1:]))


def _decision(system: DependencySystem, state: ParseState, d: int, share: float, labels: Sequence[str]) -> Decision:
    top, second, ahead = int(state.below_top(0)), int(state.below_top(1)), int(state.next)
    if d == SHIFT:
        return Decision("shift", ahead, share)
    if d > 2 * len(labels):
        return Decision("swap", second, share)
    is_left, label = d <= len(labels), labels[(d - 1) % len(labels)]
    if isinstance(system, ArcHybrid):
        word, head = top, ahead if is_left else second
    else:
        word, head = (second, top) if is_left else (top, second)
    return Decision("arc", word, share, head, label)
