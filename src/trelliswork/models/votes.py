"""Votes for the parts of an answer, with scores, as text, as HTML and as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import ClassVar, Protocol

from trelliswork.data.attributes.wording import describe_place
from trelliswork.models.base import Alternative

WITHOUT_WORDS = "without words"  # the vote of biases and transitions
SHOWN = 6  # votes of a part
TOLERANCE = 0.02  # of the sum of votes, in nats, or times the sum where that is above 1
LEGEND = (
    '<p class="note">Legend: <span class="for"></span> speaks for {what}, <span class="against"></span> against it; '
    "the number is what it adds to {score}. The {shown} strongest of each are shown.</p>\n"
)


class Explanation(Protocol):
    """The reasons of an answer: prints as text, and shows as HTML under `title`, `lead` and `legend`."""

    title: ClassVar[str]
    lead: ClassVar[str]
    legend: ClassVar[str]

    @property
    def words(self) -> Sequence[str]:
        """The parts of the input that votes are about."""

    def record(self, most: int) -> Mapping[str, object]:
        """Return plain values, with the `most` strongest votes."""


@dataclass(frozen=True)
class Vote:
    """The addition of a feature, a word or the label before to a score; `words` say what it is to people.

    The vote of a word has its `position`, and in `parts` what each part of its vector adds: the word itself, its
    suffixes, its characters and so on.
    """

    name: str
    score: float
    words: str
    position: int | None = None
    parts: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """Return plain values."""
        of_word = {} if self.position is None else {"position": self.position, "parts": self.parts}
        return {"words": self.words, "score": self.score, "name": self.name, **of_word}


@dataclass(frozen=True)
class Reason:
    """Why a part of an answer is as it is, and not as in its `rival`.

    `difference` is the score of the best answer that has the part minus that of the best answer in which it is
    different, in nats: log p of the one minus log p of the other, where the model has probabilities of whole answers.
    It is below 0 where parts are chosen one by one, by their probabilities, and the best answer has another one. The
    votes sum to it, up to `error`; what biases and transitions alone make of it is the vote "without words". `steps`
    are those of the integral (see `networks.attribution`).
    """

    rival: str
    difference: float
    votes: tuple[Vote, ...]
    error: float = 0.0
    steps: int = 0

    def lines(self) -> list[str]:
        """Return lines for people: the difference, and below it the strongest votes."""
        return [f"{self.difference:+8.3f}  compared with {self.rival}{self._missing}:", *vote_lines(self.votes)]

    @property
    def _missing(self) -> str:
        """Note that votes do not sum to the difference, if the largest number of steps was not enough."""
        return "" if is_complete(self.error, self.difference) else f" (its votes sum to that within {self.error:.2f})"

    def html(self, top: float) -> str:
        """Return the same with bars; the longest bar is that of a vote of `top`."""
        head = f'<div class="rival">{self.difference:+.2f} compared with {isolated(self.rival)}{self._missing}</div>'
        return head + bars(self.votes, top)

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest votes."""
        return {
            "rival": self.rival, "difference": self.difference, "error": self.error, "steps": self.steps,
            "votes": [vote.record() for vote in self.votes[:most]], "more": max(len(self.votes) - most, 0),
        }  # fmt: skip


def is_complete(error: float, total: float) -> bool:
    """Return whether votes sum to what they should, up to the tolerance."""
    return error <= TOLERANCE * max(1.0, abs(total))


def word_vote(title: str, value: str, i: int, score: float, parts: dict[str, float], at: int | None = None) -> Vote:
    """Return the vote of word i, or of another column of it, seen from token `at`; by its number if that is None.

    Args:
        title: what the source is called: word, or the name of a column.
        value: the word, or the value of the column.
        i: its token, counted from 0.
        score: what it adds.
        parts: the score by what the word brings.
        at: the token from which places are counted; None for the beginning of the sentence.

    Returns:
        The vote.

    >>> word_vote("word", "the", 0, 0.5, {}, at=1).words, word_vote("POS", "DT", 0, 0.5, {}).words
    ("previous word = 'the'", "POS of 1 = 'DT'")
    """
    if at is not None:
        return Vote(f"{title}[{i - at:+d}]", score, f"{describe_place(title, i - at)} = {value!r}", i, parts)
    words = f"{i + 1} {value}" if title == "word" else f"{title} of {i + 1} = {value!r}"
    return Vote(f"{title}[{i + 1}]", score, words, i, parts)


def best_lines(best: Sequence[Alternative]) -> list[str]:
    """Return the best answers for people, below a heading."""
    return ["best answers:", *map(str, best)] if best else []


def best_html(best: Sequence[Alternative]) -> str:
    """Return the best answers as HTML."""
    rows = "".join(f"<li>{isolated(str(each))}</li>" for each in best)
    return f'<p class="note">Best answers:</p><ol class="best">{rows}</ol>' if rows else ""


def ranked(votes: Sequence[Vote]) -> tuple[Vote, ...]:
    """Return the strongest first."""
    return tuple(sorted(votes, key=lambda vote: -abs(vote.score)))


def largest(reasons: Sequence[Reason | None]) -> float:
    """Return the size of the strongest of all votes, which has the longest bar."""
    return max((abs(vote.score) for each in reasons if each for vote in each.votes), default=1.0) or 1.0


def vote_lines(votes: Sequence[Vote]) -> list[str]:
    """Return the strongest votes for people, one in a line, and the sum of the others."""
    lines = [f"{vote.score:+8.3f}  {vote.words}" for vote in votes[:SHOWN]]
    rest = votes[SHOWN:]
    return [*lines, f"{sum(vote.score for vote in rest):+8.3f}  {len(rest)} more"] if rest else lines


def bars(votes: Sequence[Vote], top: float) -> str:
    """Return the strongest votes as HTML, with bars."""
    return "".join(_bar(vote, top) for vote in votes[:SHOWN])


def _bar(vote: Vote, top: float) -> str:
    colour = "#0072b2" if vote.score >= 0 else "#d55e00"
    width = max(1, round(120 * abs(vote.score) / top))
    bar = f'<span style="display:inline-block;height:0.6em;width:{width}px;background:{colour}"></span>'
    return f"<div>{bar} {vote.score:+.2f} {isolated(vote.words)}</div>"


def isolated(text: str) -> str:
    """Return text for HTML whose direction does not change what stands around it."""
    return f"<bdi>{escape(text)}</bdi>"
