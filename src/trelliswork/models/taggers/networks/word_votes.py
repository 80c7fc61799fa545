"""Explanations of taggers that are networks: the words that made a tag, and the tags in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from html import escape
from typing import ClassVar, Protocol, TypeVar

from trelliswork.errors import ConstraintError
from trelliswork.models.base import Alternative, Answer, PartProbability
from trelliswork.models.networks.attribution import AT_A_TIME, Attribution, affordable
from trelliswork.models.part_choices import PartChoices
from trelliswork.models.taggers.labels import Pins
from trelliswork.models.votes import LEGEND, SHOWN, Reason, best_html, best_lines, isolated, largest

Item = TypeVar("Item", bound=Sized, contravariant=True)
Value = TypeVar("Value")
BEST, OTHERS = 3, 3  # answers of a sentence, and other tags of a token, that are shown
LEAST = 0.001  # probability of one that is shown


@dataclass(frozen=True)
class TokenWords:
    """A token with its tag, the probability of that, other tags that it may have, and why it has none of them.

    `reason` is None where a sentence is too long to attribute every tag: the least certain ones have one.
    """

    token: str
    label: str
    probability: float
    others: tuple[PartProbability, ...]
    reason: Reason | None

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest votes; `score` is that by which the tag beats the rival."""
        reason = Reason("", 0.0, ()).record(most) | {"rival": None} if self.reason is None else self.reason.record(most)
        others = [{"label": each.label, "probability": each.probability} for each in self.others[:most]]
        return {
            "token": self.token, "label": self.label, "probability": self.probability, "others": others,
            "score": reason["difference"], **reason, "rival_votes": [],
        }  # fmt: skip


@dataclass(frozen=True)
class WordExplanation:
    """The tags of one sentence, and the words that they are due to; prints as text and shows as a table."""

    title: ClassVar[str] = "Words"
    lead: ClassVar[str] = (
        "For each token its tag and the other tags that it may have, with their probabilities; by how much its tag "
        "beats the strongest other one, and the words that this is due to, strongest first."
    )
    note: ClassVar[str] = (
        "The votes add up to the score of the best tags minus that of the best tags in which this token has another "
        "tag; + speaks for the tag, \N{MINUS SIGN} for the other. Votes are integrated gradients, without pins."
    )
    legend: ClassVar[str] = LEGEND.format(
        what="the tag", score="the score of the tag, compared with the strongest other one", shown=SHOWN
    )

    tokens: tuple[TokenWords, ...]
    best: tuple[Alternative, ...] = ()

    @property
    def words(self) -> list[str]:
        """The tokens."""
        return [each.token for each in self.tokens]

    @property
    def error(self) -> float:
        """The largest error of completeness: by how much the votes of a token miss the difference of scores."""
        return max((each.reason.error for each in self.tokens if each.reason), default=0.0)

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest votes of each token."""
        best = [each.record() for each in self.best]
        return {"note": self.note, "votes": [each.record(most) for each in self.tokens], "best": best}

    def __str__(self) -> str:
        width = max((len(each.token) for each in self.tokens), default=0)
        lines = []
        for each in self.tokens:
            others = "".join(f"   {other.label} {100 * other.probability:.1f}%" for other in each.others)
            lines.append(f"{each.token:{width}}  {each.label}  {100 * each.probability:.1f}%{others}")
            lines += [f"{'':{width}}    {line}" for line in (each.reason.lines() if each.reason else ())]
        return "\n".join([*lines, *self._left_out(), *best_lines(self.best)])

    def _left_out(self) -> list[str]:
        """Return a note that not all tokens have votes, if the sentence was too long for that."""
        n_known = sum(each.reason is not None for each in self.tokens)
        note = f"votes: only those of the {n_known} least certain of {len(self.tokens)} tokens, as the sentence is long"
        return [note] if n_known < len(self.tokens) > affordable(len(self.tokens)) else []

    def _repr_html_(self) -> str:
        """Return a table: token, label, probability, other labels, votes with bars."""
        top, rows = largest([each.reason for each in self.tokens]), []
        for each in self.tokens:
            others = "".join(f"<span>{escape(o.label)} {100 * o.probability:.1f}% </span>" for o in each.others)
            votes = f"<td>{each.reason.html(top) if each.reason else ''}</td>"
            name = f"<td><b>{isolated(each.token)}</b></td><td>{escape(each.label)}</td>"
            rows.append(f'<tr>{name}<td>{100 * each.probability:.1f}%</td><td class="others">{others}</td>{votes}</tr>')
        names = ("token", "label", "probability", "other labels", "due to")
        head = "".join(f"<th>{each}</th>" for each in names)
        notes = "".join(f'<p class="note">{each}</p>' for each in self._left_out())
        return f'{notes}<table class="votes"><tr>{head}</tr>{"".join(rows)}</table>{best_html(self.best)}'


@dataclass(frozen=True)
class TaskExplanation:
    """The explanations of several tasks on the same words."""

    title: ClassVar[str] = WordExplanation.title
    lead: ClassVar[str] = WordExplanation.lead
    legend: ClassVar[str] = WordExplanation.legend

    tasks: Mapping[str, WordExplanation]

    @property
    def words(self) -> list[str]:
        """The tokens, which are the same for all tasks."""
        return next(iter(self.tasks.values())).words

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, by task."""
        return {"tasks": {task: each.record(most) for task, each in self.tasks.items()}}

    def __str__(self) -> str:
        return "\n\n".join(f"{task}:\n{each}" for task, each in self.tasks.items())

    def _repr_html_(self) -> str:
        return "".join(f"<h3>{escape(task)}</h3>{each._repr_html_()}" for task, each in self.tasks.items())


class ExplainableTagger(Protocol[Item, Value]):
    """A tagger whose scores can be attributed to what it reads; `Value` is an answer as its distribution has it."""

    @property
    def known_labels(self) -> list[str]:
        """The tags that a token can have."""

    def predict(self, inputs: Sequence[Item], /, *, top_k: int) -> list[Answer]:
        """Return the answer for each input."""

    def choices(self, inputs: Sequence[Item], /, *, most: int) -> list[list[PartChoices]]:
        """Return the most probable tags of each token."""

    def best_values(self, batch: Sequence[Item], pins: Sequence[Pins] | None, /) -> Sequence[Value]:
        """Return the best value of each input under its pins."""

    def tags_of_value(self, value: Value, n: int, /) -> list[str]:
        """Return the tags that a value of n tokens stands for."""

    def attributed(self, sentence: Item, value: Value, rivals: Sequence[Value], /) -> list[Attribution]:
        """Return the shares of the words in the difference between the scores of a value and of each rival.

        Args:
            sentence: What the tagger reads.
            value: Its best answer.
            rivals: Answers in which a token has another tag.

        Returns:
            The shares for each rival.
        """

    def reason(self, sentence: Item, shares: Attribution, rival: str, at: int, /) -> Reason:
        """Return attributed shares as votes, seen from token `at`.

        Args:
            sentence: What the tagger reads.
            shares: Shares of its words.
            rival: The tag in place of the best one.
            at: Token whose tag it is, counted from 0.

        Returns:
            The votes.
        """


def explained_tags(model: ExplainableTagger[Item, Value], sentence: Item) -> WordExplanation:
    """Return tags, alternatives and the words that decided."""
    if not len(sentence):
        return WordExplanation(())
    (answer,) = model.predict([sentence], top_k=BEST)
    (choices,) = model.choices([sentence], most=OTHERS + 1)
    reasons = _reasons(model, sentence, [part.probability for part in answer.parts])
    tokens = []
    for i, (part, having) in enumerate(zip(answer.parts, choices, strict=True)):
        others = [each for each in having.choices if each.label != part.label and each.probability >= LEAST]
        tokens.append(
            TokenWords(answer.inputs[i], part.label, part.probability, tuple(others[:OTHERS]), reasons.get(i))
        )
    return WordExplanation(tuple(tokens), tuple(answer.alternatives))


def _reasons(
    model: ExplainableTagger[Item, Value], sentence: Item, probabilities: Sequence[float]
) -> dict[int, Reason]:
    """Return why tokens have their tags: all, or the least certain ones of a sentence that is too long for that."""
    n = len(sentence)
    order = sorted(range(n), key=probabilities.__getitem__)
    (value,) = model.best_values([sentence], None)
    rivals = _rivals(model, sentence, model.tags_of_value(value, n), sorted(order[: affordable(n)]))
    place = {repr(rival): rival for rival in rivals.values()}  # tokens of one span often have the same rival
    distinct, number = list(place.values()), {name: d for d, name in enumerate(place)}
    shares = model.attributed(sentence, value, distinct) if distinct else []
    return {
        i: model.reason(sentence, shares[number[repr(rival)]], model.tags_of_value(rival, n)[i], i)
        for i, rival in rivals.items()
    }


def _rivals(
    model: ExplainableTagger[Item, Value], sentence: Item, tags: Sequence[str], asked: Sequence[int]
) -> dict[int, Value]:
    """Return the best value in which each of some tokens has another tag, but for those that can have no other."""
    others = {i: tuple(tag for tag in model.known_labels if tag != tags[i]) for i in asked}
    known: list[Pins] = [{i: others[i]} for i in asked if others[i]]
    at_a_time = max(1, AT_A_TIME // len(sentence))
    rivals: dict[int, Value] = {}
    for first in range(0, len(known), at_a_time):
        for pin, value in zip(*_best(model, sentence, known[first : first + at_a_time]), strict=True):
            rivals[next(iter(pin))] = value
    return rivals


def _best(
    model: ExplainableTagger[Item, Value], sentence: Item, pins: Sequence[Pins]
) -> tuple[Sequence[Pins], Sequence[Value]]:
    """Return the best value under each pin, without the pins that no value agrees with."""
    try:
        return pins, model.best_values([sentence] * len(pins), pins)
    except ConstraintError:
        if len(pins) == 1:
            return (), ()
    alone = [_best(model, sentence, [pin]) for pin in pins]
    return [pin for each, _ in alone for pin in each], [value for _, each in alone for value in each]
