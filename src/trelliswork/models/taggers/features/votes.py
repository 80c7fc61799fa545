"""Which features voted for which label: every number that makes up the score of a sentence's labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from typing import Any, ClassVar

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import ANY

Array = np.ndarray[Any, Any]
SHOWN = 6  # votes a token


@dataclass(frozen=True)
class Vote:
    """What one attribute, or the label before, adds to the score of a label; `words` say what it is to people."""

    name: str
    score: float
    words: str


@dataclass(frozen=True)
class TokenVotes:
    """A token with its best label, the probability of that, and the votes for (and against) it, strongest first.

    `rival` is the label that would have been next best at this token alone, with its votes.
    """

    token: str
    label: str
    probability: float
    votes: tuple[Vote, ...]
    rival: str | None
    rival_votes: tuple[Vote, ...]

    @property
    def score(self) -> float:
        """What the token adds to the score of the sentence."""
        return sum(vote.score for vote in self.votes)


@dataclass(frozen=True)
class Explanation:
    """The votes of one sentence; prints as text and shows as a table in a notebook."""

    title: ClassVar[str] = "Votes"
    lead: ClassVar[str] = (
        "For each token its tag, the probability of that, and the features that decided it, strongest first."
    )
    legend: ClassVar[str] = (
        '<p class="note">Legend: <span class="for"></span> speaks for the tag, <span class="against"></span> against '
        f"it; the number is what it adds to the score of the tag. The {SHOWN} strongest of each token are shown.</p>\n"
    )

    tokens: tuple[TokenVotes, ...]

    @property
    def words(self) -> list[str]:
        """The tokens."""
        return [each.token for each in self.tokens]

    def __str__(self) -> str:
        width = max((len(each.token) for each in self.tokens), default=0)
        lines = []
        for each in self.tokens:
            lines.append(f"{each.token:{width}}  {each.label}  {100 * each.probability:.1f}%")
            lines += [f"{'':{width}}    {vote.score:+8.3f}  {vote.words}" for vote in each.votes[:SHOWN]]
            rest = each.votes[SHOWN:]
            if rest:
                total = sum(vote.score for vote in rest)
                lines.append(f"{'':{width}}    {total:+8.3f}  {len(rest)} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table: token, label, probability, votes with bars."""
        top = max((abs(vote.score) for each in self.tokens for vote in each.votes), default=1.0) or 1.0
        rows = []
        for each in self.tokens:
            votes = "".join(_bar(vote, top) for vote in each.votes[:SHOWN])
            cells = f"<td><b>{escape(each.token)}</b></td><td>{escape(each.label)}</td>"
            rows.append(f"<tr>{cells}<td>{100 * each.probability:.1f}%</td><td>{votes}</td></tr>")
        head = "<tr><th>token</th><th>label</th><th>probability</th><th>strongest votes</th></tr>"
        return f'<table class="votes">{head}{"".join(rows)}</table>'


def _bar(vote: Vote, top: float) -> str:
    colour = "#0072b2" if vote.score >= 0 else "#d55e00"
    width = max(1, round(120 * abs(vote.score) / top))
    bar = f'<span style="display:inline-block;height:0.6em;width:{width}px;background:{colour}"></span>'
    return f"<div>{bar} {vote.score:+.2f} {escape(vote.words)}</div>"


def explain(
    crf: FeatureCRF,
    rows: AttributeRows,
    tokens: Sequence[Sequence[str]],
    names: Sequence[str],
    wording: Callable[[str], str] = str,
) -> list[Explanation]:
    """The votes behind the best labels of each sentence; `wording` puts the names of attributes into words.

    With latent states, these are the labels: B-NP#1, B-NP#2, ...
    """
    if crf.parameters.latent > 1:
        crf = replace(crf, labels=crf.column_names, parameters=replace(crf.parameters, latent=1))
    best, marginals, starts = crf.predict(rows), crf.marginals(rows), rows.starts
    arcs, named = _Arcs.of(crf), cache(lambda attribute: (names[attribute], wording(names[attribute])))
    number = {label: i for i, label in enumerate(crf.labels)}
    out = []
    for s, words in enumerate(tokens):
        path = [number[label] for label in best[s]]
        found = []
        for i, word in enumerate(words):
            before = path[i - 1] if i else None
            votes = _votes(crf, rows, int(starts[s]) + i, named, before)
            for j in range(len(number)):
                votes.setdefault(j, []).extend(arcs.votes(path[max(i - 2, 0) : i], j))
            totals = [sum(vote.score for vote in votes[j]) for j in range(len(number))]
            order = sorted((j for j in range(len(number)) if j != path[i]), key=lambda j: -totals[j])
            rival = order[0] if order else None
            found.append(
                TokenVotes(
                    word, crf.labels[path[i]], float(marginals[s][i, path[i]]), _ranked(votes[path[i]]),
                    None if rival is None else crf.labels[rival], () if rival is None else _ranked(votes[rival]),
                )
            )  # fmt: skip
        out.append(Explanation(tuple(found)))
    return out


@dataclass(frozen=True)
class _Arcs:
    """The weight of each arc, by its labels."""

    labels: tuple[str, ...]
    weights: dict[tuple[int, ...], float]
    order: int

    @classmethod
    def of(cls, crf: FeatureCRF) -> _Arcs:
        arcs, weights = crf.parameters.arcs.tolist(), crf.weights[crf.parameters.arc_weights].tolist()
        found = {tuple(arc): weight for arc, weight in zip(arcs, weights, strict=True)}
        return cls(crf.labels, found, crf.parameters.order)

    def votes(self, before: Sequence[int], label: int) -> list[Vote]:
        """What the labels before (two at most) add to the score of a label."""
        if not before:
            return []
        last, name = self.labels[before[-1]], f"after {self.labels[before[-1]]}"
        near = Vote(name, self.weights.get(self._key(ANY, before[-1], label), 0.0), f"previous tag = {last}")
        if self.order == 1:
            return [near]
        far = len(self.labels) if len(before) == 1 else before[0]
        first = "the beginning" if len(before) == 1 else self.labels[far]
        weight = self.weights.get((far, before[-1], label), 0.0)
        return [near, Vote(f"after {first} and {last}", weight, f"previous tags = {first}, {last}")]

    def _key(self, *arc: int) -> tuple[int, ...]:
        return arc[-self.order - 1 :]


def _votes(
    crf: FeatureCRF, rows: AttributeRows, t: int, named: Callable[[int], tuple[str, str]], before: int | None
) -> dict[int, list[Vote]]:
    """The votes of a token's attributes, by label; some look at the label before too."""
    votes: dict[int, list[Vote]] = {}
    pairs, n_labels = crf.parameters.pairs, len(crf.labels)
    for e in range(rows.offsets[t], rows.offsets[t + 1]):
        attribute = int(rows.ids[e])
        value = 1.0 if rows.values is None else float(rows.values[e])
        name, words = named(attribute)
        for p in range(crf.parameters.offsets[attribute], crf.parameters.offsets[attribute + 1]):
            vote = Vote(name, value * float(crf.weights[p]), words)
            votes.setdefault(int(crf.parameters.labels[p]), []).append(vote)
        if pairs is None or before is None:
            continue
        for p in range(pairs.offsets[attribute], pairs.offsets[attribute + 1]):
            if pairs.arcs[p] // n_labels == before:
                weight = float(crf.weights[crf.parameters.pair_weights.start + p])
                after = f" after {crf.labels[before]}"
                vote = Vote(name + after, value * weight, f"{words} after tag {crf.labels[before]}")
                votes.setdefault(int(pairs.arcs[p] % n_labels), []).append(vote)
    return votes


def _ranked(votes: Sequence[Vote]) -> tuple[Vote, ...]:
    return tuple(sorted(votes, key=lambda vote: -abs(vote.score)))
