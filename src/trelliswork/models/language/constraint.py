"""Sentences that match a regular expression or an acceptor, exactly: samples, the most probable one, their share.

An expression is over units: words have white space between them, characters have none. `.` is any unit, `|`, `*`, `+`,
`?` and brackets are as usual, `\\` takes a sign literally, and characters may be given as a set, [a-z].
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix

from trelliswork.errors import ScoreError, TrellisworkError
from trelliswork.fst import Acceptor, Symbols, read_acceptor
from trelliswork.models.language.corpus import SPACE
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.runtime.arrays import Array
from trelliswork.semirings import Max

MOST_ARCS = 2_000_000  # of a model under a constraint
MOST_STEPS = 10_000  # of the sum over strings of ever greater length
_WORDS = re.compile(r"[|*+?()]|(?:\\.|[^\s|*+?()\\])+")
_CHARACTERS = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|.", re.DOTALL)


class Match(NamedTuple):
    """A sentence that matches, its log probability, and that among all that match."""

    units: tuple[str, ...]
    log_prob: float
    given_constraint: float


class Constrained:
    """An n-gram model over the sentences that match, each once, whatever the weights of an acceptor.

    The composition of both is deterministic, so that sentences are paths. With A the probabilities of its arcs and f
    those of ending, b = f + A b is the probability b of matching from each state on, over strings of any length.
    """

    def __init__(self, model: NgramLanguageModel, constraint: str) -> None:
        language = read_constraint(constraint, model.symbols, characters=model.format.units == "characters")
        self._machine = model.machine.intersect(_unambiguous(language), limit=MOST_ARCS).machine
        self._name = model.symbols.name
        self._weights, initial, self._final = self._machine.arrays
        if not self._machine.n_states:
            raise TrellisworkError(f"no sentence of the model matches {constraint!r}; widen the constraint")
        self._start = int(np.argmax(initial))
        self.log_prob = math.log(self._matching(1.0)[self._start])

    def _matching(self, temperature: float) -> Array:
        """Return the sum over all ways from each state to an end."""
        n, machine = self._machine.n_states, self._machine
        arcs = csr_matrix((np.exp(self._weights / temperature), (machine.source, machine.target)), (n, n))
        ends = np.exp(self._final / temperature)
        sums, before = ends, np.zeros(n)
        for _ in range(MOST_STEPS):
            if np.allclose(sums, before, rtol=1e-12, atol=0.0) or not np.isfinite(sums).all():
                break
            sums, before = ends + arcs @ sums, sums
        else:
            raise TrellisworkError(f"the probability of sentences that match was not found in {MOST_STEPS:,} steps; "
                                   "narrow the constraint to shorter sentences")  # fmt: skip
        if not (np.isfinite(sums) & (sums > 0)).all():
            raise TrellisworkError("the scores of sentences that match have no finite sum; lower the temperature, or "
                                   "choose a model whose probabilities sum to 1")  # fmt: skip
        return sums

    def best(self) -> Match:
        """Return the most probable sentence, by the algorithm of Dijkstra."""
        came: dict[int, tuple[int, int]] = {}  # the arc by which each state is reached, and the state before
        queue = [(0.0, self._start, -1, -1)]
        while queue:
            cost, state, arc, before = heappop(queue)
            if state == -1:  # an end
                labels = []
                while before != self._start or came[before][0] >= 0:
                    arc, previous = came[before]
                    labels.append(int(self._machine.input[arc]))
                    before = previous
                return self._match(labels[::-1], -cost)
            if state in came:
                continue
            came[state] = arc, before
            heappush(queue, (cost - self._final[state], -1, -1, state))
            for each in self._arcs(state).tolist():
                heappush(queue, (cost - self._weights[each], int(self._machine.target[each]), each, state))
        raise TrellisworkError("no sentence of the model matches; widen the constraint")

    def samples(self, n: int, seed: int = 0, temperature: float = 1.0) -> list[Match]:
        """Return independent samples of the sentences that match.

        Args:
            n: How many samples to draw.
            seed: Seed of the draws.
            temperature: Below 1 for more probable sentences, above for more variety.

        Returns:
            The sentences with their log probabilities.
        """
        generator, matching = np.random.default_rng(seed), self._matching(temperature)
        return [self._sample(generator, matching, temperature) for _ in range(n)]

    def _sample(self, generator: np.random.Generator, matching: Array, temperature: float) -> Match:
        state, labels, total = self._start, list[int](), 0.0
        while True:
            arcs = self._arcs(state)
            shares = np.exp(np.append(self._weights[arcs], self._final[state]) / temperature)
            shares[:-1] *= matching[self._machine.target[arcs]]
            chosen = int(generator.choice(len(shares), p=shares / shares.sum()))
            if chosen == len(arcs):
                return self._match(labels, total + self._final[state])
            total += self._weights[arcs[chosen]]
            labels.append(int(self._machine.input[arcs[chosen]]))
            state = int(self._machine.target[arcs[chosen]])

    def _arcs(self, state: int) -> Array:
        offsets, order = self._machine.out
        return order[offsets[state] : offsets[state + 1]]

    def _match(self, labels: Sequence[int], log_prob: float) -> Match:
        return Match(tuple(map(self._name, labels)), float(log_prob), float(log_prob) - self.log_prob)


def read_constraint(constraint: str, symbols: Symbols, *, characters: bool = False) -> Acceptor:
    """Return the acceptor in a file (.fst), or that of a regular expression.

    Args:
        constraint: Name of a file, or a regular expression.
        symbols: Vocabulary of the model.
        characters: Whether the symbols are characters instead of words.

    Returns:
        The acceptor.
    """
    if constraint.endswith(".fst") or Path(constraint).is_file():
        return read_acceptor(constraint, symbols)
    return _Expression(constraint, symbols, characters).acceptor()


def _unambiguous(language: Acceptor) -> Acceptor:
    """Return an acceptor of each string once, with weight 0."""
    machine = language.machine.double()
    flat = machine.with_scores(*(torch.where(each > -torch.inf, 0.0, -torch.inf) for each in machine.scores))
    return Acceptor.from_machine(flat, language.symbols).determinise(Max())


class _Expression:
    """A parser of expressions; each part becomes arcs from its first state to its last."""

    def __init__(self, text: str, symbols: Symbols, characters: bool) -> None:
        self.text, self.symbols, self.characters = text, symbols, characters
        self.tokens = (_CHARACTERS if characters else _WORDS).findall(text)
        self.at, self.n_states = 0, 0
        self.arcs: list[tuple[int, int, int | None]] = []

    def acceptor(self) -> Acceptor:
        first, last = self._alternatives()
        if self.at < len(self.tokens):
            raise self._error(f"got {self.tokens[self.at]!r} too many")
        return Acceptor(self.arcs, [0.0] * len(self.arcs), initial=first, final=last, symbols=self.symbols,
                        n_states=self.n_states)  # fmt: skip

    def _alternatives(self) -> tuple[int, int]:
        first, last = self._state(), self._state()
        while True:
            start, end = self._sequence()
            self.arcs += [(first, start, None), (end, last, None)]
            if not self._take("|"):
                return first, last

    def _sequence(self) -> tuple[int, int]:
        first = last = self._state()
        while self.at < len(self.tokens) and self.tokens[self.at] not in ("|", ")"):
            start, end = self._repeated()
            self.arcs.append((last, start, None))
            last = end
        return first, last

    def _repeated(self) -> tuple[int, int]:
        start, end = self._item()
        while self.at < len(self.tokens) and self.tokens[self.at] in ("*", "+", "?"):
            sign = self.tokens[self.at]
            self.at += 1
            first, last = self._state(), self._state()
            self.arcs += [(first, start, None), (end, last, None)]
            self.arcs += [(first, last, None)] if sign in "*?" else []
            self.arcs += [(end, start, None)] if sign in "*+" else []
            start, end = first, last
        return start, end

    def _item(self) -> tuple[int, int]:
        if self._take("("):
            inside = self._alternatives()
            if not self._take(")"):
                raise self._error("a bracket is not closed")
            return inside
        token = self.tokens[self.at]
        if token in ("*", "+", "?"):
            raise self._error(f"{token!r} has nothing to repeat")
        self.at += 1
        first, last = self._state(), self._state()
        self.arcs += [(first, last, number) for number in self._numbers(token)]
        return first, last

    def _numbers(self, token: str) -> list[int]:
        """Return the units that a token stands for."""
        if token == ".":
            return list(range(1, len(self.symbols)))
        if self.characters and len(token) > 2 and token[0] == "[":
            allowed = re.compile(token)
            names = [(number, name) for number, name in enumerate(self.symbols) if number]
            return [number for number, name in names if allowed.fullmatch(name.replace(SPACE, " "))]
        unit = re.sub(r"\\(.)", r"\1", token).replace(" ", SPACE)
        try:
            return [self.symbols.number(unit)]
        except ScoreError as error:
            raise self._error(f"{unit!r} is not among the units of the model") from error

    def _take(self, token: str) -> bool:
        taken = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += taken
        return taken

    def _state(self) -> int:
        self.n_states += 1
        return self.n_states - 1

    def _error(self, problem: str) -> TrellisworkError:
        return TrellisworkError(f"the constraint {self.text!r} cannot be read: {problem}; put \\ before signs of words")
