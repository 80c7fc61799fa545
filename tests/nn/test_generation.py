"""Generating symbol by symbol: beams against enumeration, samples against their distributions, constraints."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.fst import Acceptor
from trelliswork.nn.decoders import BahdanauDecoder, Decoder, LuongDecoder, TransformerDecoder
from trelliswork.nn.decoders.constraints import AcceptorConstraint, Constraint, PrefixConstraint
from trelliswork.nn.decoders.generation import COVERED, WEIGHTS, Generation, keep_best, nucleus, tempered
from trelliswork.structures.beam import beam_search, sample
from trelliswork.structures.beam.ranking import (
    coverage_penalty,
    diverse_beam_search,
    length_penalty,
    ranked_beam_search,
)

V, BEGIN, END = 5, 1, 2
WORDS = (3, 4)
LIMITS = torch.tensor([4, 5])
DECODERS = {
    "transformer": lambda: TransformerDecoder(8, 6, hidden=8, layers=2, heads=2),
    "luong": lambda: LuongDecoder(8, 6, hidden=8),
    "bahdanau": lambda: BahdanauDecoder(8, 6, hidden=8),
}
String = tuple[int, ...]


class Writer(nn.Module):
    """A decoder with an output layer over five symbols, two of which are never written."""

    n_outputs = V

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder, self.table, self.output = decoder, nn.Embedding(V, 8), nn.Linear(decoder.dim, V)

    def embed(self, symbols: Tensor) -> Tensor:
        return self.table(symbols)

    def next_log_probs(self, hidden: Tensor, weights: Tensor) -> Tensor:
        scores = 3 * self.output(hidden)
        scores[..., :END] = -math.inf
        return scores.log_softmax(-1)


class Case:
    """A network and two inputs; the log probability of every string that it may write."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(1)
        self.writer = Writer(DECODERS[name]()).double().eval()
        self.values = torch.randn(2, 4, 6, dtype=torch.float64)
        self.mask = torch.arange(4) < torch.tensor([4, 2])[:, None]
        self.strings = [self._enumerated(row) for row in range(2)]

    def generation(self, constraint: Constraint | None = None, limits: Tensor = LIMITS) -> Generation:
        memory = self.writer.decoder.remember(self.values, self.mask)
        return Generation(self.writer, memory, begin=BEGIN, end=END, limits=limits, constraint=constraint)

    def _enumerated(self, row: int) -> dict[String, float]:
        """All strings within the limit, the end included, with their log probabilities."""
        memory = self.writer.decoder.remember(self.values[row : row + 1], self.mask[row : row + 1])
        log_prob_of = {}
        for n in range(int(LIMITS[row])):
            for words in itertools.product(WORDS, repeat=n):
                read = self.writer.decoder(memory, self.writer.embed(torch.tensor([[BEGIN, *words]])))
                log_probs = self.writer.next_log_probs(read.hidden, read.weights)[0]
                log_prob_of[words] = sum(float(log_probs[t, y]) for t, y in enumerate((*words, END)))
        return log_prob_of


@cache
def case_of(name: str) -> Case:
    """Return the case of a decoder, whose strings are enumerated once."""
    with torch.no_grad():
        return Case(name)


@pytest.fixture(params=DECODERS)
def case(request: Any) -> Any:
    made = case_of(request.param)
    torch.manual_seed(1)
    with torch.no_grad():
        yield made


@pytest.fixture
def one() -> Any:
    made = case_of("luong")
    torch.manual_seed(1)
    with torch.no_grad():
        yield made


def strings_in(hypotheses: Any, row: int) -> list[tuple[String, float]]:
    rows = zip(hypotheses.decisions[row].tolist(), hypotheses.scores[row].tolist(), strict=True)
    return [(tuple(d for d in decisions if d > END), score) for decisions, score in rows if score > -math.inf]


def test_a_beam_as_wide_as_all_strings_is_exact(case: Case) -> None:
    generation = case.generation()
    hypotheses = beam_search(generation, generation.score, 40)
    assert bool(hypotheses.finished[hypotheses.scores > -math.inf].all())
    for row in range(2):
        expected = sorted(case.strings[row].items(), key=lambda each: -each[1])
        mine = strings_in(hypotheses, row)
        assert [words for words, _ in mine] == [words for words, _ in expected]
        assert [score for _, score in mine] == pytest.approx([score for _, score in expected])


def test_a_wide_beam_finds_the_best_by_length_too(case: Case) -> None:
    generation, rank = case.generation(), length_penalty(1.0)
    hypotheses = ranked_beam_search(generation, generation.score, 40, rank)
    for row in range(2):
        keys = {words: log_p / ((5 + len(words) + 1) / 6) for words, log_p in case.strings[row].items()}
        mine = strings_in(hypotheses, row)
        assert [words for words, _ in mine] == sorted(keys, key=lambda words: -keys[words])
        assert dict(mine) == pytest.approx(case.strings[row])


def test_no_penalty_is_the_plain_beam(case: Case) -> None:
    for size in (1, 2, 3):
        assert strings_in(_plain(case, size), 1) == strings_in(_ranked(case, size), 1)


def _plain(case: Case, size: int) -> Any:
    generation = case.generation()
    return beam_search(generation, generation.score, size)


def _ranked(case: Case, size: int) -> Any:
    generation = case.generation()
    return ranked_beam_search(generation, generation.score, size, length_penalty(0.0))


def test_what_was_attended_to_is_the_sum_of_the_weights(case: Case) -> None:
    generation = case.generation()
    hypotheses = beam_search(generation, generation.score, 3)
    words = [d for d in hypotheses.decisions[0, 1].tolist() if d > END]
    memory = case.writer.decoder.remember(case.values, case.mask)
    read = case.writer.decoder(memory, case.writer.embed(torch.tensor([[BEGIN, *words]] * 2)))
    torch.testing.assert_close(hypotheses.state[COVERED][0, 1], read.weights[0].sum(0))
    penalty = coverage_penalty(hypotheses.state[COVERED], case.mask, 0.5)[0, 1]
    expected = 0.5 * sum(math.log(min(float(each), 1.0)) for each in read.weights[0].sum(0))
    assert float(penalty) == pytest.approx(expected)
    assert hypotheses.state[WEIGHTS].shape == (2, 3, 4)


def test_groups_of_a_diverse_beam_differ(one: Case) -> None:
    generation = one.generation()
    hypotheses = diverse_beam_search(generation, generation.score, 4, n_groups=2, strength=100.0)
    for row in range(2):
        strings = strings_in(hypotheses, row)
        assert dict(strings) == pytest.approx({words: one.strings[row][words] for words, _ in strings})
        first = [words[:1] for words, _ in strings]
        assert len(set(first)) > 1
    together = diverse_beam_search((g := one.generation()), g.score, 4, n_groups=2, strength=0.0)
    assert together.decisions[:, :2].tolist() == together.decisions[:, 2:].tolist()
    with pytest.raises(ScoreError, match="multiple of the groups"):
        diverse_beam_search(generation, generation.score, 4, n_groups=3)


# Samples


def test_samples_are_strings_of_the_model(one: Case) -> None:
    """Ancestral samples against the probabilities of all strings; those at the limit end with certainty."""
    generation, n = one.generation(limits=torch.tensor([4, 4])), 4000
    samples = sample(generation, generation.score, n, generator=torch.Generator().manual_seed(3))
    drawn = [tuple(d for d in row if d > END) for row in samples.decisions[0].tolist()]
    strings = {words: math.exp(log_p) for words, log_p in one.strings[0].items()}
    short = {words: p for words, p in strings.items() if len(words) < 3}
    longest = 1 - sum(short.values())
    counts = [drawn.count(words) for words in short] + [sum(len(words) == 3 for words in drawn)]
    assert stats.chisquare(counts, [n * p for p in (*short.values(), longest)]).pvalue > 0.001


def drawn_from(log_probs: Tensor, n: int) -> list[int]:
    drawn = torch.multinomial(log_probs.exp(), n, replacement=True, generator=torch.Generator().manual_seed(5))
    return torch.bincount(drawn, minlength=len(log_probs)).tolist()


def test_a_temperature_raises_probabilities_to_a_power() -> None:
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    expected = p**2 / (p**2).sum()
    torch.testing.assert_close(tempered(p.log(), 0.5).exp(), expected)
    assert stats.chisquare(drawn_from(tempered(p.log(), 0.5), 5000), (5000 * expected).tolist()).pvalue > 0.001
    torch.testing.assert_close(tempered(p.log(), 1e-3).exp(), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    torch.testing.assert_close(tempered(p.log(), 1e6).exp(), torch.full((4,), 0.25), atol=1e-5, rtol=0)


def test_the_best_symbols_alone_are_drawn() -> None:
    p = torch.tensor([0.15, 0.5, 0.05, 0.3])
    truncated = keep_best(p.log(), 2)
    torch.testing.assert_close(truncated.exp(), torch.tensor([0.0, 0.5, 0.0, 0.3]) / 0.8)
    counts = drawn_from(truncated, 5000)
    assert counts[0] == counts[2] == 0
    assert stats.chisquare([counts[1], counts[3]], [5000 * 0.5 / 0.8, 5000 * 0.3 / 0.8]).pvalue > 0.001
    assert int((keep_best(torch.zeros(6).log_softmax(0), 2) > -math.inf).sum()) == 2  # ties
    torch.testing.assert_close(keep_best(p.log(), 9), p.log())


def test_a_nucleus_is_the_smallest_set_with_enough_mass() -> None:
    p = torch.tensor([[0.15, 0.5, 0.05, 0.3], [0.97, 0.01, 0.01, 0.01]], dtype=torch.float64)
    for mass in (0.1, 0.5, 0.51, 0.79, 0.85, 0.96, 1.0):
        truncated = nucleus(p.log(), mass)
        torch.testing.assert_close(truncated.exp().sum(-1), torch.ones(2, dtype=torch.float64))
        for row in range(2):
            kept = [k for k in range(4) if truncated[row, k] > -math.inf]
            enough = [set(s) for n in range(5) for s in itertools.combinations(range(4), n)
                      if float(p[row, list(s)].sum()) >= mass - 1e-12]  # fmt: skip
            fewest = min(map(len, enough))
            assert set(kept) in enough and len(kept) == fewest, (mass, row)
    counts = drawn_from(nucleus(p[0].log(), 0.75), 5000)
    assert counts[0] == counts[2] == 0


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda p: tempered(p, 0.0), "temperature must be above 0"),
        (lambda p: keep_best(p, 0), "at least 1"),
        (lambda p: nucleus(p, 1.5), "mass of a nucleus"),
    ],
)
def test_what_cannot_be_drawn_from_is_said(change: Any, part: str) -> None:
    with pytest.raises(ScoreError, match=part):
        change(torch.zeros(3))


# Constraints


def test_only_strings_of_an_acceptor_are_written(case: Case) -> None:
    names = ["<unk>", "<s>", "</s>", "a", "b"]
    language = Acceptor([(0, 1, "a"), (1, 0, "b"), (0, 2, None), (2, 2, "b")], initial=0, final=2)  # (ab)* b*
    generation = case.generation(AcceptorConstraint(language, names, END))
    hypotheses = beam_search(generation, generation.score, 40)
    for row in range(2):
        letters = {words: "".join(names[w] for w in words) for words in case.strings[row]}
        inside = [words for words, text in letters.items() if _accepted(text)]
        mine = strings_in(hypotheses, row)
        assert sorted(words for words, _ in mine) == sorted(inside)
        assert dict(mine) == pytest.approx({words: case.strings[row][words] for words in inside})


def _accepted(text: str) -> bool:
    while text.startswith("ab"):
        text = text[2:]
    return set(text) <= {"b"}


def test_a_string_ends_in_time_where_that_is_possible(case: Case) -> None:
    names = ["<unk>", "<s>", "</s>", "a", "b"]
    language = Acceptor.from_strings([["a"] * 3, ["b"] * 7])
    generation = case.generation(AcceptorConstraint(language, names, END))
    hypotheses = beam_search(generation, generation.score, 1)
    assert [strings_in(hypotheses, row)[0][0] for row in range(2)] == [(3, 3, 3), (3, 3, 3)]
    only = AcceptorConstraint(Acceptor.from_strings([["b"] * 7]), names, END)  # longer than any limit
    generation = case.generation(only)
    assert strings_in(beam_search(generation, generation.score, 2), 0)[0][0] == (4,) * 7


def test_an_acceptor_of_nothing_is_refused(one: Case) -> None:
    nothing = Acceptor([(0, 1, "a")], initial=0, final=0).connect().intersect(Acceptor.from_strings([["c"]]))
    generation = one.generation(AcceptorConstraint(nothing, ["<unk>", "<s>", "</s>", "a", "b"], END))
    with pytest.raises(ConstraintError, match="accepts no string"):
        beam_search(generation, generation.score, 2)


class Balanced(PrefixConstraint):
    """As many 4s as 3s, and never more of them; the state is how many are open. Row 1 must begin with two."""

    def start(self, row: int) -> Hashable:
        return 0

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, int)
        return {3: state + 1, 4: state - 1} if state else {3: state + 1}

    def distance(self, state: Hashable) -> int:
        assert isinstance(state, int)
        return state + 1


def test_states_of_any_kind_are_numbered_as_they_are_met(case: Case) -> None:
    generation = case.generation(Balanced(V, END))
    hypotheses = beam_search(generation, generation.score, 40)
    assert {words for words, _ in strings_in(hypotheses, 0)} == {(), (3, 4)}
    assert {words for words, _ in strings_in(hypotheses, 1)} == {(), (3, 4), (3, 4, 3, 4), (3, 3, 4, 4)}
