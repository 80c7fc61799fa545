"""The decisions that build a tree, and what else could have been decided in each state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from trelliswork.models.base import Alternative
from trelliswork.models.parsers.dependency.arc_explanation import LEAST, MOST, node_text
from trelliswork.models.votes import LEGEND, SHOWN, Reason, best_html, best_lines, isolated, largest
from trelliswork.nn.transitions.parsing import Connected
from trelliswork.structures.beam.arc_hybrid import ArcHybrid
from trelliswork.structures.beam.likelihood import locally_normalised
from trelliswork.structures.beam.parse_state import SHIFT, DependencySystem, ParseState


@dataclass(frozen=True)
class Decision:
    """Decision about a word: its arc, or to shift or swap it; words are counted from 1, and 0 is the root."""

    kind: str  # "shift", "arc" or "swap"
    word: int
    probability: float
    head: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class DecisionStep:
    """A state, by the top of its stack and its next word (None: none is left); the decision; the strongest others."""

    top: int
    next: int | None
    taken: Decision
    others: tuple[Decision, ...]
    rival: int | None = None  # the number of the strongest other decision
    reason: Reason | None = None

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest others and votes."""
        why = {} if self.reason is None else {"reason": self.reason.record(most)}
        others = [asdict(other) for other in self.others[:most]]
        return {"top": self.top, "next": self.next, "taken": asdict(self.taken), "others": others, **why}


@dataclass(frozen=True)
class DecisionExplanation:
    """The decisions that build a tree, each with the strongest others; prints as text and shows as a table."""

    title: ClassVar[str] = "Decisions"
    lead: ClassVar[str] = (
        "The decisions that build the tree, one after the other, and the others that were possible in the same state, "
        "the most probable first. A probability is that of a decision given all before it, not that of an arc. Below "
        "them by how much the decision beats the strongest other one, and the words that this is due to."
    )
    legend: ClassVar[str] = '<p class="note">The decisions taken are in the rows with a number.</p>\n' + LEGEND.format(
        what="the decision", score="its score, compared with the strongest other one", shown=SHOWN
    )

    words: tuple[str, ...]
    steps: tuple[DecisionStep, ...]
    best: tuple[Alternative, ...] = ()

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest others and votes of each decision."""
        return {"decisions": [step.record(most) for step in self.steps], "best": [each.record() for each in self.best]}

    @classmethod
    def of(
        cls, words: Sequence[str], connected: Connected, system: DependencySystem, decisions: Sequence[int],
        labels: Sequence[str],
    ) -> DecisionExplanation:  # fmt: skip
        """Explain one sentence by a system and its scorer (`ParsingUnit.connect`) and the decisions that were taken.

        Args:
            words: Words of the sentence.
            connected: Scorer of the decisions.
            system: The transition system.
            decisions: The decisions that were taken.
            labels: Names of the labels.

        Returns:
            The explanation.
        """
        state, log_probs, steps = connected[0].initial(), locally_normalised(*connected), []
        for taken in decisions:
            shares = log_probs(state)[0, 0].exp()
            steps.append(_step(system, ParseState(*state[: len(ParseState._fields)]), taken, shares, labels))
            state = connected[0].step(state, torch.full_like(state[1], taken))
        return cls(tuple(words), tuple(steps))

    def _word(self, i: int | None) -> str:
        return "" if i is None else node_text(self.words, i)

    def text_of(self, each: Decision) -> str:
        """Return a decision in words."""
        if each.kind == "arc":
            return f"{self._word(each.word)}: {each.label} of {self._word(each.head)}"
        return f"{each.kind} {self._word(each.word)}"

    def _rows(self) -> Iterator[tuple[str, str, str, float, Reason | None]]:
        """Yield number, state, decision, probability and reason; alternatives have neither number nor state."""
        for i, step in enumerate(self.steps, 1):
            state = f"{self._word(step.top)} / {self._word(step.next)}".rstrip(" /")
            taken = str(i), state, self.text_of(step.taken), step.taken.probability
            others = [("", "", self.text_of(other), other.probability) for other in step.others]
            for j, row in enumerate([taken, *others]):
                yield *row, step.reason if j == len(others) else None

    def __str__(self) -> str:
        rows = list(self._rows())
        wide = max((len(state) for _, state, *_ in rows), default=0)
        wider = max((len(text) for _, _, text, *_ in rows), default=0)
        lines = []
        for number, state, text, p, reason in rows:
            lines.append(f"{number:>3} {state:{wide}} {' ' if number else '|'} {text:{wider}}  {100 * p:5.1f}%")
            lines += [f"{'':{wide + 7}}{line}" for line in (reason.lines() if reason else ())]
        return "\n".join([*lines, *best_lines(self.best)])

    def _repr_html_(self) -> str:
        """Return a table: number, state, decision, probability; what else is possible below each."""
        head = "".join(f"<th>{each}</th>" for each in ("", "top of the stack / next word", "decision", "probability"))
        rows, top = [], largest([step.reason for step in self.steps])
        for number, state, text, p, reason in self._rows():
            kind, name = ("", f"<b>{isolated(text)}</b>") if number else (' class="other"', isolated(text))
            cells = f"<td>{number}</td><td>{isolated(state)}</td><td>{name}</td><td>{100 * p:.1f}%</td>"
            rows.append(f"<tr{kind}>{cells}</tr>")
            if reason:
                rows.append(f'<tr class="why"><td></td><td colspan="3">{reason.html(top)}</td></tr>')
        return f'<table class="arcs"><tr>{head}</tr>{"".join(rows)}</table>{best_html(self.best)}'


def _step(
    system: DependencySystem, state: ParseState, taken: int, shares: Tensor, labels: Sequence[str]
) -> DecisionStep:
    order = [d for d in shares.argsort(descending=True, stable=True).tolist() if d != taken and shares[d] >= LEAST]
    decisions = [_decision(system, state, d, float(shares[d]), labels) for d in (taken, *order[:MOST])]
    ahead = int(state.next) if bool(system.has_more(state)) else None
    return DecisionStep(int(state.below_top(0)), ahead, decisions[0], tuple(decisions[1:]), order[0] if order else None)


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
