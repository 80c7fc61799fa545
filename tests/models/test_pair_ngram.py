"""Pair n-grams against enumeration: every sequence of chunk pairs that fits a source."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import trelliswork as tw
from tests.contract.base import case
from tests.soon import soon
from tests.structures.test_ngram_arrays import looked_up
from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import DataError, ModelError, OutputError, TrellisworkError
from trelliswork.fst import read_arpa
from trelliswork.models.transducers.config import PairNgramConfig
from trelliswork.models.transducers.pair_ngram import alignment_kernels as kernels
from trelliswork.models.transducers.pair_ngram.alignment import ChunkLimits, align
from trelliswork.models.transducers.pair_ngram.arpa import export_arpa, word_of
from trelliswork.models.transducers.pair_ngram.chunk_model import ChunkModel
from trelliswork.models.transducers.pair_ngram.model import PairNgram

PAIRS = [
    ("ab", "XY"), ("abc", "XYZ"), ("aab", "XXY"), ("ca", "ZX"), ("cab", "ZXY"), ("bb", "Y"), ("bba", "YX"),
    ("ac", "XZZ"), ("cc", "ZZZ"), ("abba", "XYX"), ("cb", "ZY"), ("b", "Y"), ("bcb", "YZZ"), ("a", "X"), ("aa", "XY"),
]  # fmt: skip
SOURCES = ["a", "b", "ab", "bc", "cca", "abc", "bbb", "abba"]
Chunk = tuple[tuple[str, ...], tuple[str, ...]]


def sentences(pairs: list[tuple[str, str]]) -> list[Sentence]:
    return [Sentence(tuple(x), target=tuple(y), line=i, file="pairs.tsv") for i, (x, y) in enumerate(pairs, 1)]


@pytest.fixture(scope="module")
def model() -> PairNgram:
    return PairNgram.fit(sentences(PAIRS), PairNgramConfig(order=3))


def segmentations(model: ChunkModel, source: tuple[str, ...]) -> Iterator[list[int]]:
    """Every sequence of chunk pairs whose sources make up the source."""
    if not source:
        yield []
    for i, (x, _) in enumerate(model.chunks):
        if source[: len(x)] == x:
            yield from ([i, *rest] for rest in segmentations(model, source[len(x) :]))


def joint(model: ChunkModel, sequence: list[int], order: int) -> float:
    """The n-gram probability of chunk pairs, by looking up each of them."""
    padded, found = [model.ngrams.n_words + 1, *sequence, model.ngrams.n_words], 1.0
    for i in range(1, len(padded)):
        found *= looked_up(model.ngrams, padded[max(0, i - order + 1) : i], padded[i])
    return found


def enumerated(model: PairNgram, source: str) -> dict[tuple[str, ...], list[tuple[list[int], float]]]:
    """Of each target all alignments with p(source, target, alignment)."""
    found: dict[tuple[str, ...], list[tuple[list[int], float]]] = defaultdict(list)
    for sequence in segmentations(model.model, tuple(source)):
        target = tuple(symbol for i in sequence for symbol in model.model.chunks[i][1])
        found[target].append((sequence, joint(model.model, sequence, model.config.order)))
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_every_target_and_its_probability(model: PairNgram, source: str) -> None:
    found = enumerated(model, source)
    total = sum(p for each in found.values() for _, p in each)
    assert model.model.lattice(tuple(source)).log_joint == pytest.approx(math.log(total), abs=1e-9)
    shares = {target: sum(p for _, p in each) / total for target, each in found.items()}
    for target, share in shares.items():
        assert model.log_prob(tuple(source), target) == pytest.approx(math.log(share), abs=1e-9)
    best = model.transduced([tuple(source)], len(shares) + 5, True)[0].best
    assert len({target for target, _ in best}) == len(best), "no string twice"
    assert [p for _, p in best] == pytest.approx(sorted(map(math.log, shares.values()), reverse=True)[: len(best)])
    assert sum(math.exp(p) for _, p in best) == pytest.approx(1.0, abs=1e-8)
    assert {target: math.exp(p) for target, p in best} == pytest.approx({t: shares[t] for t, _ in best})


def test_the_best_string_need_not_have_the_best_alignment() -> None:
    """Strings are ranked by all of their alignments: somewhere that is another one than the best alignment says."""
    differ = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        pairs = [
            ("".join(draw.choice(list("ab"), 3)), "".join(draw.choice(list("XY"), draw.integers(1, 5))))
            for _ in range(12)
        ]
        model = PairNgram.fit(sentences(pairs), PairNgramConfig(order=2, many_to_many=True))
        for source in map("".join, product("ab", repeat=3)):
            found = enumerated(model, source)
            by_sum = max(found, key=lambda target: sum(p for _, p in found[target]))
            by_alignment = max(found, key=lambda target: max(p for _, p in found[target]))
            with case(seed=seed, source=source):
                assert model.transduced([tuple(source)], 1, False)[0].best[0][0] == by_sum
            differ += by_sum != by_alignment
    assert differ > 0


def test_the_top_answer_is_the_same_whatever_k(model: PairNgram) -> None:
    for source in SOURCES:
        lists = [model.transduced([tuple(source)], k, False)[0].best for k in (1, 2, 5, 20)]
        for shorter, longer in pairwise(lists):
            assert longer[: len(shorter)] == shorter


@pytest.mark.parametrize("source", ["ab", "cca", "abba"])
def test_alignments_and_their_posteriors(model: PairNgram, source: str) -> None:
    x = tuple(source)
    found = enumerated(model, source)
    for target in sorted(found, key=lambda each: -sum(p for _, p in found[each]))[:4]:
        total = sum(p for _, p in found[target])
        table = np.zeros((len(x), len(target)))
        for sequence, p in found[target]:
            for i, end, j, last in spans(model.model.chunks, sequence):
                table[i:end, j:last] += p / total
        np.testing.assert_allclose(model.model.lattice(x).posteriors(target), table, atol=1e-9)
        best = max(found[target], key=lambda each: each[1])[0]
        assert model.model.lattice(x).align(target).chunks == spans(model.model.chunks, best)


def spans(chunks: list[Chunk], sequence: list[int]) -> list[tuple[int, int, int, int]]:
    made, i, j = [], 0, 0
    for each in sequence:
        a, b = map(len, chunks[each])
        made.append((i, i + a, j, j + b))
        i, j = i + a, j + b
    return made


def test_parts_have_the_probability_of_each_symbol_given_those_before_it(model: PairNgram) -> None:
    answer = model.predict("abc", top_k=3)[0]
    assert answer.value == "XYZ" and [part.label for part in answer.parts] == ["X", "Y", "Z"]
    assert [(part.start, part.end) for part in answer.parts] == [(0, 1), (1, 2), (2, 3)]
    found = enumerated(model, "abc")
    total = sum(p for each in found.values() for _, p in each)
    for j, part in enumerate(answer.parts):
        begins = [
            sum(p for t, each in found.items() if t[: j + k] == tuple("XYZ")[: j + k] for _, p in each) for k in (0, 1)
        ]
        assert part.probability == pytest.approx(begins[1] / begins[0], abs=1e-8)
    assert answer.probability == pytest.approx(sum(p for _, p in found[tuple("XYZ")]) / total)
    assert answer.alternatives[0].value == "XYZ" and len(answer.alternatives) == 3


# Alignment


def every_alignment(x: str, y: str, limits: ChunkLimits) -> Iterator[list[Chunk]]:
    if not x and not y:
        yield []
    for a, b in product(range(1, limits.source + 1), range(limits.target + 1)):
        if a <= len(x) and b <= len(y) and (a == 1 or b == 1 or (limits.both and b)):
            yield from ([(tuple(x[:a]), tuple(y[:b])), *rest] for rest in every_alignment(x[a:], y[b:], limits))


def every_chunk(limits: ChunkLimits) -> set[Chunk]:
    """Those of all cells of the lattices, whether or not an alignment has them."""
    return {
        (tuple(x[i : i + a]), tuple(y[j : j + b]))
        for x, y in PAIRS
        for i, j in product(range(len(x)), range(len(y) + 1))
        for a, b in product(range(1, limits.source + 1), range(limits.target + 1))
        if i + a <= len(x) and j + b <= len(y) and (a == 1 or b == 1 or (limits.both and b))
    }


@pytest.mark.parametrize("limits", [ChunkLimits(), ChunkLimits(1, 2), ChunkLimits(3, 2, True)])
def test_expectation_maximisation_is_that_of_enumeration(limits: ChunkLimits) -> None:
    pairs = [(tuple(x), tuple(y)) for x, y in PAIRS]
    lattices = [list(every_alignment(x, y, limits)) for x, y in PAIRS]
    kinds = {chunk for each in lattices for path in each for chunk in path}
    size = {chunk: 1.0 + len(chunk[0]) - 1 + max(len(chunk[1]) - 1, 0) for chunk in kinds}
    prob, history = dict.fromkeys(kinds, 1 / len(every_chunk(limits))), []
    for _ in range(3):
        counts, likelihood = defaultdict(float), 0.0
        for each in lattices:
            weights = [math.prod(prob[chunk] ** size[chunk] for chunk in path) for path in each]
            likelihood += math.log(sum(weights))
            for path, weight in zip(each, weights, strict=True):
                for chunk in path:
                    counts[chunk] += weight / sum(weights)
        history.append(likelihood / len(pairs))
        prob = {chunk: counts[chunk] / sum(counts.values()) for chunk in kinds}
    aligned = align(pairs, limits, 3, 1.0)
    assert aligned.log_likelihoods == pytest.approx(history)
    for each, sequence in zip(lattices, aligned.sequences, strict=True):
        weights = [math.prod(prob[chunk] ** size[chunk] for chunk in path) for path in each]
        found = [aligned.chunks[i] for i in sequence]
        assert math.prod(prob[chunk] ** size[chunk] for chunk in found) == pytest.approx(max(weights))


def test_more_chunk_pairs_than_the_table_has_room_for() -> None:
    """The table of chunk pairs grows; nothing is lost."""
    draw = np.random.default_rng(0)
    pairs = [
        (tuple(map(str, draw.integers(0, 300, 12))), tuple(map(str, draw.integers(0, 300, 12)))) for _ in range(60)
    ]
    aligned = align(pairs, ChunkLimits(2, 2, True), 2, 1.0)
    assert aligned.log_likelihoods[1] > aligned.log_likelihoods[0]
    for (x, y), sequence in zip(pairs, aligned.sequences, strict=True):
        chunks = [aligned.chunks[i] for i in sequence]
        assert (sum((c[0] for c in chunks), ()), sum((c[1] for c in chunks), ())) == (x, y)
    assert kernels.EMPTY == -1


# Data that do not fit


LONG = [*PAIRS, ("a", "XYZXYZX")]


def test_a_target_too_long_for_the_chunks_lets_them_grow_and_says_so() -> None:
    model = PairNgram.fit(sentences(LONG), PairNgramConfig(order=3))
    assert model.learned == [
        "1 pair that target chunks of 2 cannot align: aligned with chunks of up to 7; pairs.tsv:16 has a target of 7 "
        "symbols for a source of 1"
    ]
    assert any(len(target) == 7 for _, target in model.model.chunks)
    assert model.log_prob("a", "XYZXYZX") > -math.inf


def test_a_target_too_long_is_skipped_or_refused_on_request() -> None:
    model = PairNgram.fit(sentences(LONG), PairNgramConfig(order=3, unalignable="skip"))
    assert model.learned[0].startswith("1 pair that target chunks of 2 cannot align: skipped; pairs.tsv:16")
    assert model.log_prob("a", "XYZXYZX") == -math.inf
    with pytest.raises(DataError, match=r"pairs.tsv:16: expected a pair that target chunks of 2 can align"):
        PairNgram.fit(sentences(LONG), PairNgramConfig(unalignable="error"))
    with pytest.raises(TrellisworkError, match="got none; give a larger --target-chunk"):
        PairNgram.fit(sentences(LONG[-1:]), PairNgramConfig(unalignable="skip"))


def test_an_empty_side_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match=r"pairs.tsv:2: expected a target, got nothing"):
        PairNgram.fit([*sentences(PAIRS[:1]), Sentence(("a",), target=(), line=2, file="pairs.tsv")])


def test_symbols_never_seen_write_nothing(model: PairNgram) -> None:
    answer = model.predict("a?b")[0]
    plain = model.predict("ab")[0]
    assert (answer.value, answer.probability) == (plain.value, plain.probability)
    assert [(part.start, part.end) for part in answer.parts] == [(0, 1), (2, 3)]
    assert not model.knows("?") and model.knows("a")
    assert model.predict("??")[0].value == ""
    assert "'?'" in model.notes([], sentences([("a?", "X")]))[0]


def test_sources_answered_together_have_the_answers_of_each_alone(model: PairNgram) -> None:
    """Also where one of them needs larger tables than those before and after it."""
    draw = np.random.default_rng(0)
    sources = [tuple(draw.choice(list("abc?"), n)) for n in (0, 3, 60, 1, 8, 7)]
    together = model.transduced(sources, 800, False)
    assert sum(len(target) for target, _ in together[2].best) > 8 * 4096, "more symbols than the tables begin with"
    for source, answer in zip(sources, together, strict=True):
        known = tuple(symbol for symbol in source if symbol != "?")
        alone = model.model.lattice(known).top_k(800, model.config.widest)
        with case(source="".join(source)):
            assert (answer.best, answer.certain) == (alone.best, alone.certain)
            assert len({target for target, _ in answer.best}) == len(answer.best)
            shares = [model.log_prob(known, target) for target, _ in answer.best[::100]] if known else [0.0]
            assert [p for _, p in answer.best[::100]] == pytest.approx(shares, abs=1e-6)


def test_a_thousand_symbols(model: PairNgram) -> None:
    with soon(240):
        answer = model.predict("abc" * 333)[0]
    assert len(answer.value) > 900 and answer.value.startswith("XYZXYZ")
    assert not answer.certain and model.predict("abc")[0].certain


# Disk


def test_a_stored_model_answers_the_same(model: PairNgram, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = tw.load(tmp_path / "model")
    assert isinstance(again, PairNgram) and again.format == PairFormat("characters", "characters", "none")
    for source in SOURCES:
        assert again.predict(source, top_k=4) == model.predict(source, top_k=4)
    assert again.size == model.size and again.describe().kind == "a pair n-gram"


def test_an_arpa_file_has_the_probability_of_every_alignment(model: PairNgram, tmp_path: Path) -> None:
    export_arpa(model, tmp_path / "model.arpa")
    ngrams = read_arpa(tmp_path / "model.arpa")
    assert ngrams.order == 3
    for source in ("ab", "cca", "abba"):
        for alignments in enumerated(model, source).values():
            for sequence, p in alignments:
                words = [word_of(model.model.chunks[i]) for i in sequence]
                assert ngrams.score(words) == pytest.approx(math.log(p), abs=1e-6)
    with pytest.raises(OutputError, match="there is a file already"):
        export_arpa(model, tmp_path / "model.arpa")


def test_words_of_an_arpa_file_are_told_apart() -> None:
    pairs = [((x,), y) for x in ("_", "}", "|", "%", " ", "%20", "</s>", "ä") for y in ((), ("_",), ("|",), ("a", "b"))]
    words = [word_of(pair) for pair in pairs]
    assert len(set(words)) == len(pairs)
    assert all(word.split() == [word] and word.count("}") == 1 for word in words)


def test_a_damaged_model_is_told(model: PairNgram, tmp_path: Path) -> None:
    arrays = model.model.arrays()
    for name, wrong in (
        ("first", arrays["first"][::-1]),
        ("suffix", arrays["suffix"] + 10**6),
        ("prob", -arrays["prob"]),
    ):
        with case(name=name), pytest.raises(ValueError, match="n-grams"):
            ChunkModel.from_arrays(model.model.chunks, {**arrays, name: wrong.copy()})
    model.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"chunks"', '"chunk"'), encoding="utf-8")
    with pytest.raises(ModelError, match="do not fit"):
        tw.load(tmp_path / "model")
