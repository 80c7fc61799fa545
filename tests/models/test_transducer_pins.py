"""Answers around pins: the best of those targets in which places of the source become what is known of them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from functools import cache

import pytest
import torch

from tests.contract.base import case
from tests.models.test_pair_ngram import PAIRS, enumerated, sentences, spans
from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.transducers.config import EditConfig, PairNgramConfig
from trelliswork.models.transducers.edit import EditTransducer
from trelliswork.models.transducers.pair_ngram.model import PairNgram
from trelliswork.models.transducers.transducer import NOTHING, span_pins
from trelliswork.nn.edit.kernels import COPY, DELETE, INSERT, N_OPERATIONS, SUBSTITUTE

CASES = [
    ("abc", {1: "Y"}), ("abc", {(0, 2): "XY"}), ("abba", {(1, 3): "Y"}), ("abba", {0: "X", (1, 4): "YX"}),
    ("cca", {(0, 2): "ZZZ", 2: "X"}), ("bb", {0: ""}), ("abba", {(0, 4): "XYX"}), ("aab", {0: "X", 1: "X", 2: "Y"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> PairNgram:
    return PairNgram.fit(sentences(PAIRS), PairNgramConfig(order=3))


def agrees(path: list[tuple[int, int, int, int]], target: tuple[str, ...], pins: dict) -> bool:
    """Whether an alignment passes the borders of each pin, and has its symbols between them."""
    at = {0: 0} | {end: last for _, end, _, last in path}
    for place, text in pins.items():
        start, end = (place, place + 1) if isinstance(place, int) else place
        if start not in at or end not in at or target[at[start] : at[end]] != tuple(text):
            return False
    return True


@pytest.mark.parametrize(("source", "pins"), CASES)
def test_pair_ngrams_given_pins_are_those_of_enumeration(model: PairNgram, source: str, pins: dict) -> None:
    left: dict[tuple[str, ...], float] = defaultdict(float)
    for target, alignments in enumerated(model, source).items():
        for sequence, p in alignments:
            if agrees(spans(model.model.chunks, sequence), target, pins):
                left[target] += p
    total = sum(left.values())
    answer = model.predict([source], pins=[pins], top_k=len(left) + 3)[0]
    found = {tuple(each.value): each.probability for each in answer.alternatives}
    ranked = sorted(left.values(), reverse=True)
    assert list(found.values()) == pytest.approx([p / total for p in ranked][: len(found)], abs=1e-8)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-8)
    for target, p in found.items():
        assert p == pytest.approx(left[target] / total, abs=1e-8)
    assert agrees_with_parts(answer.parts, pins)


def agrees_with_parts(parts, pins: dict) -> bool:
    """Whether the symbols that are aligned with each pin are those of the pin."""
    within = {
        place: "".join(p.label for p in parts if start <= p.start and p.end <= end)
        for place in pins
        for start, end in [(place, place + 1) if isinstance(place, int) else place]
    }
    return within == pins


@pytest.mark.parametrize(("source", "pins"), [("abc", {}), ("cca", {}), ("abba", {(1, 3): "Y"}), ("aab", {1: "X"})])
def test_what_pieces_may_become_is_as_probable_as_all_alignments_that_do(
    model: PairNgram, source: str, pins: dict
) -> None:
    paths = [
        (spans(model.model.chunks, sequence), target, p)
        for target, alignments in enumerated(model, source).items()
        for sequence, p in alignments
    ]
    total = sum(p for path, target, p in paths if agrees(path, target, pins))
    found = model.choices([source], pins=[pins])[0]
    assert [each.start for each in found] == [0, *[each.end for each in found[:-1]]] and found[-1].end == len(source)
    unsure = 0
    for piece in found:
        place = (piece.start, piece.end)
        for choice in piece.choices:
            wanted = {**pins, place: "" if choice.label == NOTHING else choice.label}
            if place in ((i, i + 1) for i in pins if isinstance(i, int)):
                wanted.pop(piece.start)
            also = sum(p for path, target, p in paths if agrees(path, target, pins) and agrees(path, target, wanted))
            assert choice.probability == pytest.approx(also / total, abs=1e-8), (place, choice.label)
            unsure += 1e-3 < choice.probability < 1 - 1e-3
        shares = [each.probability for each in piece.choices]
        rest = [*shares, max(1 - sum(shares), 0.0)]
        assert shares == sorted(shares, reverse=True) and sum(shares) <= 1 + 1e-9
        assert piece.entropy == pytest.approx(-sum(p * math.log2(p) for p in rest if p > 0), abs=1e-6)
    assert unsure
    assert model.choices([source], most=1)[0][0].choices == model.choices([source])[0][0].choices[:1]
    assert model.choices([Sentence(())]) == [[]]


def test_pins_that_no_target_agrees_with(model: PairNgram) -> None:
    for pins in ({0: "XYZXYZ"}, {0: "?"}, {(0, 2): "Q"}):
        with case(pins=pins), pytest.raises(ConstraintError, match="no target of 'ab' agrees"):
            model.predict(["ab"], pins=[pins])
    with pytest.raises(ConstraintError):
        model.predict(["?"], pins=[{0: "X"}])
    assert model.predict(["a?b"], pins=[{1: "", 2: "Y"}])[0].value == "XY"


def test_pins_outside_of_the_source_or_over_each_other_are_refused(model: PairNgram) -> None:
    for pins, problem in (({2: "X"}, "which has 2; got 2"), ({(0, 2): "X", 1: "Y"}, "0..1 and 1..1")):
        with case(pins=pins), pytest.raises(TrellisworkError, match=problem):
            model.predict(["ab"], pins=[pins])
    with pytest.raises(TrellisworkError, match="expected pins for 2 sentences; got 1"):
        model.predict(["ab", "b"], pins=[{0: "X"}])


def test_other_sources_are_answered_as_without_pins(model: PairNgram) -> None:
    found = model.predict(["abc", "cab"], pins=[{1: "Y"}, {}])
    assert found[1] == model.predict("cab")[0]


# Networks

LETTERS = "ab"
SMALL = EditConfig(symbol_dim=5, hidden=6, cell_dim=7, dropout=0.0, unknown_dropout=0.0)


def network(copy: bool, paths: str) -> EditTransducer:
    torch.manual_seed(3)
    given = [Sentence(tuple("ab"), target=tuple("aXb")), Sentence(tuple("ba"), target=tuple("bX"))]
    made = EditTransducer.from_data(given, replace(SMALL, copy=copy, paths=paths), format=FORMAT, seed=4)
    with torch.no_grad():
        for each in made.parameters():
            each.copy_(torch.randn_like(each) * 0.9)
    return made


FORMAT = PairFormat("characters", "characters", "none")


def scripts(model: EditTransducer, source: str, target: str):
    """Every script that writes a target: its probability, and for each written symbol the place read last."""
    given = model.encode([Sentence(tuple(source), target=tuple(target))], with_tags=True)[0]
    net, n, m = model.network, len(source), len(target)
    with model.evaluating():
        left = net.encode(given.source[None], torch.tensor([n]))[0]
        state, symbol, rights = (torch.zeros(1, net.reader.hidden_size),) * 2, -1, []
        for j in range(m + 1):
            right, state = net.read_on(torch.tensor([symbol]), state)
            rights.append(right[0])
            symbol = int(given.target[j]) if j < m else -1

        @cache
        def cell(i: int, j: int):
            outputs = net.outputs(torch.tanh(left[i] + rights[j])).double()
            scores = outputs[:N_OPERATIONS].clone()
            if i == n:
                scores[SUBSTITUTE] = -math.inf
            if i == n or given.copies[i] < 0:
                scores[COPY] = -math.inf
            symbols = outputs[N_OPERATIONS:].softmax(-1)
            y = int(given.target[j]) if j < m else -1
            return scores.softmax(-1), float(symbols[y]) if 0 <= y < net.n_targets else 0.0, y

        def paths(i: int, j: int, p: float, owners: tuple[int, ...]):
            operations, symbol, y = cell(i, j)
            if i == n and j == m:
                yield p * float(operations[DELETE]), owners
            if i < n:
                yield from paths(i + 1, j, p * float(operations[DELETE]), owners)
            if j < m:
                yield from paths(i, j + 1, p * float(operations[INSERT]) * symbol, (*owners, i - 1))
                if i < n:
                    yield from paths(i + 1, j + 1, p * float(operations[SUBSTITUTE]) * symbol, (*owners, i))
                    if given.copies[i] == y:
                        yield from paths(i + 1, j + 1, p * float(operations[COPY]), (*owners, i))

        return list(paths(0, 0, 1.0, ()))


def weight(model: EditTransducer, source: str, target: str, pins: dict) -> float:
    """What the scripts weigh that agree with the pins."""
    found = []
    for p, owners in scripts(model, source, target):
        within = [
            "".join(y for y, owner in zip(target, owners, strict=True) if start <= owner < end) == text
            for place, text in pins.items()
            for start, end in [(place, place + 1) if isinstance(place, int) else place]
        ]
        if all(within):
            found.append(p)
    return (max if model.config.paths == "best" else sum)(found) if found else 0.0


def strings(longest: int):
    level = [""]
    for _ in range(longest + 1):
        yield from level
        level = [each + y for each in level for y in "abX"]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("paths", ["all", "best"])
def test_networks_given_pins_are_those_of_enumeration(copy: bool, paths: str) -> None:
    model = network(copy, paths)
    for source, pins in (("ab", {0: "X"}), ("ab", {(0, 2): "ba"}), ("ba", {0: "", 1: "Xa"}), ("aba", {1: "b"})):
        weights = {y: weight(model, source, y, pins) for y in strings(4)}
        answer = model.predict([source], pins=[pins], top_k=4)[0]
        with case(source=source, pins=pins):
            assert len({each.value for each in answer.alternatives}) == 4
            for each in answer.alternatives:
                if len(each.value) <= 4:
                    assert each.probability == pytest.approx(weights[each.value], rel=1e-4)
            if answer.certain:
                assert answer.probability >= max(weights.values()) * (1 - 1e-4)
            assert answer.certain or answer.alternatives[-1].probability < 0.02


def test_a_network_writes_strange_symbols_around_pins() -> None:
    model = network(True, "all")
    answer = model.predict(["aQ"], pins=[{1: "Q"}])[0]
    assert answer.value.count("Q") == 1
    with pytest.raises(ConstraintError):
        model.predict(["ab"], pins=[{1: "Q"}])
    with pytest.raises(TrellisworkError, match="at most 1,000 symbols in a source with pins, got 1,001"):
        model.predict(["a" * 1001], pins=[{1: "X"}])


def test_pins_from_left_to_right() -> None:
    assert [each.start for each in span_pins({3: "a", (0, 2): "b"}, 4, tuple)] == [0, 3]
