"""Votes of features for labels: every number that makes up the score of a sentence's labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from typing import ClassVar

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.wording import boundary_of
from trelliswork.models.taggers.features.crf.array_chain import ArrayChain
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import ANY
from trelliswork.models.votes import LEGEND, SHOWN, Vote, bars, isolated, ranked, vote_lines
from trelliswork.runtime.arrays import INF, Array
from trelliswork.tags.schemes import allowed_transitions

MOST_OF_RIVAL = 3  # votes of the rival that a page shows


@dataclass(frozen=True)
class TokenVotes:
    """A token with its best label, the probability of that, and the votes for (and against) it, strongest first.

    `rival` is the label that the token has in the best sequence of labels that is different there and that the tag
    scheme allows, with its votes; None if there is no such sequence.
    """

    token: str
    label: str
    probability: float
    votes: tuple[Vote, ...]
    rival: str | None
    rival_votes: tuple[Vote, ...]

    @property
    def score(self) -> float:
        """Score that the token adds to that of the sentence."""
        return sum(vote.score for vote in self.votes)

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest votes."""
        return {
            "token": self.token, "label": self.label, "probability": self.probability, "score": self.score,
            "votes": [vote.record() for vote in self.votes[:most]], "more": max(len(self.votes) - most, 0),
            "rival": self.rival, "rival_votes": [vote.record() for vote in self.rival_votes[:most]],
        }  # fmt: skip


@dataclass(frozen=True)
class Explanation:
    """The votes of one sentence; prints as text and shows as a table in a notebook."""

    title: ClassVar[str] = "Votes"
    lead: ClassVar[str] = (
        "For each token its tag, the probability of that, and the features that decided it, strongest first; below "
        "them the strongest other tag that the token can have."
    )
    note: ClassVar[str] = (
        "Each vote is the weight of a feature that is present. The votes of a sentence add up to the score of its "
        "tags; + speaks for the tag, − against it. Votes are those without pins."
    )
    legend: ClassVar[str] = LEGEND.format(what="the tag", score="the score of the tag", shown=SHOWN)

    tokens: tuple[TokenVotes, ...]

    @property
    def words(self) -> list[str]:
        """The tokens."""
        return [each.token for each in self.tokens]

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` strongest votes of each token."""
        return {"note": self.note, "votes": [each.record(most) for each in self.tokens]}

    def __str__(self) -> str:
        width = max((len(each.token) for each in self.tokens), default=0)
        lines = []
        for each in self.tokens:
            lines.append(f"{each.token:{width}}  {each.label}  {100 * each.probability:.1f}%")
            lines += [f"{'':{width}}    {line}" for line in vote_lines(each.votes)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a table: token, label, probability, votes with bars."""
        top = max((abs(vote.score) for each in self.tokens for vote in each.votes), default=1.0) or 1.0
        rows = []
        for each in self.tokens:
            cells = f"<td><b>{isolated(each.token)}</b></td><td>{escape(each.label)}</td>"
            other = "" if each.rival is None else f'<div class="rival">instead of {escape(each.rival)}:</div>'
            votes = bars(each.votes, top) + other + bars(each.rival_votes[:MOST_OF_RIVAL], top)
            rows.append(f"<tr>{cells}<td>{100 * each.probability:.1f}%</td><td>{votes}</td></tr>")
        head = "<tr><th>token</th><th>label</th><th>probability</th><th>strongest votes</th></tr>"
        return f'<table class="votes">{head}{"".join(rows)}</table>'


def explain(
    crf: FeatureCRF,
    rows: AttributeRows,
    tokens: Sequence[Sequence[str]],
    names: Sequence[str],
    wording: Callable[[str], str] = str,
    scheme: str = "plain",
) -> list[Explanation]:
    """Return the votes behind the best labels of each sentence; `wording` puts the names of attributes into words.

    `scheme` is how the labels spell spans: rivals are allowed by it. With latent states, these are the labels: B-NP#1,
    B-NP#2, ...

    Args:
        crf: the model.
        rows: the attributes of the sentences.
        tokens: the words of each sentence.
        names: the names of the attributes by number.
        wording: puts a name into words.
        scheme: how the labels spell spans.

    Returns:
        An explanation for each sentence.
    """
    scheme_labels = [label for label in crf.labels for _ in range(crf.parameters.latent)]
    if crf.parameters.latent > 1:
        crf = replace(crf, labels=crf.column_names, parameters=replace(crf.parameters, latent=1))
    best, marginals, starts = crf.predict(rows), crf.marginals(rows), rows.starts
    legal = [np.array(each, bool) for each in allowed_transitions(scheme_labels, scheme)]
    arcs, named = _Arcs.of(crf), cache(lambda attribute: (names[attribute], wording(names[attribute])))
    number, scores = {label: i for i, label in enumerate(crf.labels)}, crf.emissions(rows)

    def votes(t: int, before: Sequence[int], label: int) -> tuple[Vote, ...]:
        of_attributes = _votes(crf, rows, t, named, before[-1] if before else None, label)
        return ranked(_merged([*of_attributes, *arcs.votes(before, label)]))

    out = []
    for s, words in enumerate(tokens):
        path, first = [number[label] for label in best[s]], int(starts[s])
        rivals = _rivals(crf, crf.array_chain(rows, scores, np.array([s])), path, legal) if path else []
        tokens_votes = []
        for i, (word, rival) in enumerate(zip(words, rivals, strict=True)):
            of_rival = () if rival is None else votes(first + i, rival[:-1], rival[-1])
            tokens_votes.append(
                TokenVotes(
                    word, crf.labels[path[i]], float(marginals[s][i, path[i]]),
                    votes(first + i, path[max(i - 2, 0) : i], path[i]),
                    None if rival is None else crf.labels[rival[-1]], of_rival,
                )
            )  # fmt: skip
        out.append(Explanation(tuple(tokens_votes)))
    return out


def _rivals(crf: FeatureCRF, chain: ArrayChain, path: Sequence[int], legal: Sequence[Array]) -> list[list[int] | None]:
    """Return, at each token, the labels (two before, its own) of the best legal sequence that differs there.

    All of them by one pass from each end: the best way to each state, and the best way on from it.
    """
    label_of, n = crf.space.label_of, len(path)
    pairs, starts, ends = legal
    emissions = chain.emissions[0]
    transitions = np.where(pairs[np.ix_(label_of, label_of)], chain.transitions[0], -INF)  # [n-1 or 1, c, c]
    after = [transitions[min(t, len(transitions) - 1)] for t in range(n - 1)]
    arrived, came_from = np.empty(emissions.shape), np.zeros(emissions.shape, np.int64)
    arrived[0] = np.where(starts[label_of], chain.start, -INF) + emissions[0]
    for t in range(1, n):
        ways = arrived[t - 1][:, None] + after[t - 1]
        came_from[t] = ways.argmax(0)
        arrived[t] = ways.max(0) + emissions[t]
    onward = np.empty(emissions.shape)
    onward[n - 1] = np.where(ends[label_of], chain.end, -INF)
    for t in range(n - 2, -1, -1):
        onward[t] = (after[t] + (emissions[t + 1] + onward[t + 1])).max(1)
    rivals: list[list[int] | None] = []
    for t, label in enumerate(path):
        whole = np.where(label_of == label, -INF, arrived[t] + onward[t])
        states = [int(whole.argmax())]
        for back in range(t, max(t - 2, 0), -1):
            states.insert(0, int(came_from[back][states[0]]))
        rivals.append(label_of[states].tolist() if whole.max() > -INF else None)
    return rivals


def _merged(votes: Sequence[Vote]) -> list[Vote]:
    """Merge votes that say the same into one vote.

    All that say that the sentence begins, or ends, here say the same: that the nearest word is not there.
    """
    same: dict[str, list[tuple[int, Vote]]] = {}
    for vote in votes:
        side, distance = boundary_of(vote.words) or (vote.words, 0)
        same.setdefault(side, []).append((distance, vote))
    merged = []
    for group in same.values():
        words = min(group, key=lambda each: each[0])[1].words
        names = dict.fromkeys(vote.name for _, vote in group)
        merged.append(Vote(" + ".join(names), sum(vote.score for _, vote in group), words))
    return merged


@dataclass(frozen=True)
class _Arcs:
    """The weight of each arc, by its labels."""

    labels: tuple[str, ...]
    weights: dict[tuple[int, ...], float]
    order: int

    @classmethod
    def of(cls, crf: FeatureCRF) -> _Arcs:
        arcs, weights = crf.parameters.arcs.tolist(), crf.weights[crf.parameters.arc_weights].tolist()
        weight_of = {tuple(arc): weight for arc, weight in zip(arcs, weights, strict=True)}
        return cls(crf.labels, weight_of, crf.parameters.order)

    def votes(self, before: Sequence[int], label: int) -> list[Vote]:
        """Return what the labels before (two at most) add to the score of a label."""
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
    crf: FeatureCRF,
    rows: AttributeRows,
    t: int,
    named: Callable[[int], tuple[str, str]],
    before: int | None,
    label: int,
) -> list[Vote]:
    """Return the votes of a token's attributes for a label; some look at the label before too."""
    votes: list[Vote] = []
    pairs, n_labels = crf.parameters.pairs, len(crf.labels)
    for e in range(rows.offsets[t], rows.offsets[t + 1]):
        attribute = int(rows.ids[e])
        value = 1.0 if rows.values is None else float(rows.values[e])
        name, words = named(attribute)
        for p in range(crf.parameters.offsets[attribute], crf.parameters.offsets[attribute + 1]):
            if crf.parameters.labels[p] == label:
                votes.append(Vote(name, value * float(crf.weights[p]), words))
        if pairs is None or before is None:
            continue
        for p in range(pairs.offsets[attribute], pairs.offsets[attribute + 1]):
            if pairs.arcs[p] == before * n_labels + label:
                weight = float(crf.weights[crf.parameters.pair_weights.start + p])
                after = f" after {crf.labels[before]}"
                votes.append(Vote(name + after, value * weight, f"{words} after tag {crf.labels[before]}"))
    return votes
