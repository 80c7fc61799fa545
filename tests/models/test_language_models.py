"""n-gram language models against the plain equations, enumeration, and the kenlm module."""

from __future__ import annotations

import gzip
import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.structures.test_ngram_arrays import Plain
from trelliswork.data import Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.fst import read_arpa
from trelliswork.models import load
from trelliswork.models.language.config import GenerationSettings, NgramConfig
from trelliswork.models.language.constraint import Constrained
from trelliswork.models.language.corpus import TextReading, corpus_of, learned_reading, read_corpus
from trelliswork.models.language.ngram import NgramLanguageModel
from trelliswork.models.language.sampling import beam_search, samples
from trelliswork.runtime.scratch import Scratch
from trelliswork.structures.automata.ngram_arrays import NgramArrays, estimate

TEXT = ["a b a b", "a b c", "a a b", "c a b", "b", "a b a b", "b c a", "a b c a b", "d"] * 2 + ["c c d a"]
SENTENCES = [tuple(words) for n in range(4) for words in itertools.product("abc", repeat=n)]


def model(**settings: object) -> NgramLanguageModel:
    return NgramLanguageModel.fit(TEXT, NgramConfig(**{"order": 3, **settings}))  # type: ignore[arg-type]


def log_prob_of(trained: NgramLanguageModel, words: tuple[str, ...]) -> float:
    return float(trained.log_probs([words])[0].astype(np.float64).sum())


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_scores_are_those_of_kneser_ney_by_dictionaries(order: int) -> None:
    trained = model(order=order)
    number = {name: i for i, name in enumerate(trained.names)}
    plain = Plain([[number[word] for word in line.split()] for line in TEXT], len(number), order)
    for sentence in [*SENTENCES, ("z", "a", "b"), ("a", "d", "d")]:
        history: tuple = ("<",)
        for unit, log_prob in zip((*sentence, None), trained.log_probs([sentence])[0], strict=True):
            word = ">" if unit is None else number.get(unit, number["<unk>"])
            expected = plain.prob(history[-(order - 1) :] if order > 1 else (), word)
            assert log_prob == pytest.approx(math.log(expected), abs=2e-6), (sentence, unit)
            history = (*history, word)[-order:]


@pytest.mark.parametrize(
    "settings", [{"order": 4}, {"smoothing": "witten-bell"}, {"prune": 1e-3}, {"cutoffs": "1,2,2"}, {"order": 1}]
)
def test_the_kernel_scores_as_the_plain_walk_and_sums_to_one(settings: dict) -> None:
    trained = model(**settings)
    every = trained.log_probs(SENTENCES)
    for sentence, logs in zip(SENTENCES, every, strict=True):
        assert logs.sum() == pytest.approx(trained.machine.score(list(sentence)), abs=1e-5)
        for i, unit in enumerate((*sentence, None)):
            following = trained.next_log_probs(sentence[:i])
            assert np.exp(following).sum() == pytest.approx(1.0, abs=1e-5)
            at = len(trained.names) if unit is None else trained.names.index(unit)
            assert following[at] == pytest.approx(logs[i], abs=1e-5)
    assert [len(each) for each in every] == [len(each) + 1 for each in SENTENCES]


def test_ngrams_whose_suffix_is_missing_are_found(tmp_path: Path) -> None:
    """Pruned models of other tools have them: `b c a` without `c a`."""
    (tmp_path / "m.arpa").write_text(
        "\\data\\\nngram 1=5\nngram 2=1\nngram 3=1\n\\1-grams:\n-99 <s> -0.5\n-0.5 </s>\n-0.4 a -0.125\n-1 b -0.3\n"
        "-1.2 c -0.2\n\\2-grams:\n-0.1 b c -0.7\n\\3-grams:\n-0.01 b c a\n\\end\\\n"
    )
    trained = NgramLanguageModel.from_arpa(tmp_path / "m.arpa")
    logs = trained.log_probs([("b", "c", "a"), ("c", "a", "z")])
    assert logs[0] / math.log(10) == pytest.approx([-0.5 - 1, -0.1, -0.01, -0.125 - 0.5])
    assert logs[1][:2] / math.log(10) == pytest.approx([-0.5 - 1.2, -0.2 - 0.4])
    assert logs[1][2] == -np.inf, "there is no <unk>"
    assert logs[1][3] / math.log(10) == pytest.approx(-0.5), "nothing is known of what follows"


def test_kenlm_scores_our_files_alike(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed; pip install kenlm compiles it")
    for settings in ({"order": 4}, {"order": 3, "prune": 1e-3}, {"order": 3, "cutoffs": "1,1,2"}):
        trained = model(**settings)
        trained.save(tmp_path / "lm")
        from trelliswork.models.transducers.pair_ngram.arpa import export_arpa

        export_arpa(load(tmp_path / "lm"), tmp_path / "m.arpa", force=True)
        other = kenlm.Model(str(tmp_path / "m.arpa"))
        for sentence in [*SENTENCES, ("a", "zebra", "b")]:
            expected = other.score(" ".join(sentence)) * math.log(10)
            assert log_prob_of(trained, sentence) == pytest.approx(expected, abs=1e-5)


def test_files_of_other_tools_may_be_packed(tmp_path: Path) -> None:
    from trelliswork.fst import write_arpa

    trained = model()
    write_arpa(trained.machine, tmp_path / "m.arpa")
    (tmp_path / "m.arpa.gz").write_bytes(gzip.compress((tmp_path / "m.arpa").read_bytes()))
    back = NgramLanguageModel.from_arpa(tmp_path / "m.arpa.gz")
    assert back.names == trained.names and read_arpa(tmp_path / "m.arpa.gz").order == 3
    for ours, theirs in zip(trained.log_probs(SENTENCES), back.log_probs(SENTENCES), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_model_comes_back_from_its_folder(tmp_path: Path) -> None:
    trained = model(smoothing="witten-bell", prune=1e-4)
    trained.save(tmp_path / "lm")
    back = load(tmp_path / "lm")
    for ours, theirs in zip(trained.log_probs(SENTENCES), back.log_probs(SENTENCES), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert back.config == trained.config and back.size == trained.size
    assert back.describe().kind == "n-gram language model over words"


@pytest.mark.parametrize("name", ["word", "first", "suffix"])
def test_damaged_arrays_are_refused(tmp_path: Path, name: str) -> None:
    trained = model()
    array = getattr(trained.arrays, name).copy()
    array[-1] = 10**6
    trained.arrays = trained.arrays._replace(**{name: array})
    trained.save(tmp_path / "lm")
    with pytest.raises(ModelError, match="does not fit together"):
        load(tmp_path / "lm")


# Text


def test_a_corpus_has_units_by_frequency_and_rare_ones_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("b a b\n\nc b\n")
    for scratch in (None, Scratch(tmp_path / "scratch")):
        corpus = read_corpus([str(tmp_path / "text")], TextReading(pretokenised=True), 1, scratch)
        assert corpus.names == ["b", "a", "c", "<unk>"] and corpus.counts.tolist() == [3, 1, 1, 0]
        assert corpus.tokens.tolist() == [5, 0, 1, 0, 4, 5, 2, 0, 4] and corpus.n_sentences == 2
    rare = corpus_of([["b", "a", "b"], ["c", "b", "<unk>"]], least_count=2)
    assert rare.names == ["b", "<unk>"] and rare.counts.tolist() == [3, 3]


def test_raw_text_is_cut_and_documents_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("One day. It\nrained!\n\nNext.\n")
    lines = list(TextReading().lines(str(tmp_path / "text")))
    assert lines == [("One", "day", "."), ("It", "rained", "!"), [], ("Next", ".")]
    assert "".join(list(TextReading("characters").lines(str(tmp_path / "text")))[1]) == "It▁rained!"


def test_subwords_are_joined_to_the_text_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("lower lowest newer newest\nlow new\n" * 3)
    reading = learned_reading([str(tmp_path / "text")], TextReading("subwords", pretokenised=True), 6)
    units = reading.cut(Sentence(("slower", "newest")))
    assert len(units) > 2 and reading.join(units) == "slower newest"


def test_perplexity_by_hand() -> None:
    trained = NgramLanguageModel.fit(["a a b"], NgramConfig(order=1, smoothing="witten-bell"))
    # 4 tokens of 3 kinds (a, b and the end) and 4 units with <unk>: p = (c + 3 / 4) / 7
    p = {"a": 2.75 / 7, "b": 1.75 / 7, "</s>": 1.75 / 7, "<unk>": 0.75 / 7}
    scores = trained.evaluate([Sentence(("a", "z")), Sentence(("b",))])
    logs = [math.log(p[each]) for each in ("a", "<unk>", "</s>", "b", "</s>")]
    assert scores["perplexity"] == pytest.approx(math.exp(-sum(logs) / 5), rel=1e-6)
    known = [each for i, each in enumerate(logs) if i != 1]
    assert scores["perplexity_of_known"] == pytest.approx(math.exp(-sum(known) / 4), rel=1e-6)
    assert scores["bits_per_character"] == pytest.approx(-sum(logs) / math.log(2) / len("a z\nb\n"), rel=1e-6)
    bands = {name: band["n"] for name, band in scores["by_frequency"].items()}
    assert bands == {"end of sentence": 2, "unknown": 1, "seen once": 1, "seen 2-9": 1}
    assert trained.predict("a")[0].probability == pytest.approx(p["a"] * p["</s>"], rel=1e-6)


# Samples


def drawn(trained: NgramLanguageModel, n: int, top_k: int = 0, **settings: object) -> Counter[tuple[str, ...]]:
    wanted = GenerationSettings(sample=n, longest=20, **settings)  # type: ignore[arg-type]
    return Counter(each.units for each in samples(trained, (), wanted, top_k))


def test_samples_follow_the_model() -> None:
    trained = model(order=2)
    counts = drawn(trained, 2000, seed=1)
    common = [sentence for sentence in SENTENCES if 2000 * math.exp(log_prob_of(trained, sentence)) > 10]
    expected = [2000 * math.exp(log_prob_of(trained, sentence)) for sentence in common]
    observed = [counts[sentence] for sentence in common]
    rest = 2000 - sum(observed), 2000 - sum(expected)
    assert len(common) > 8 and chisquare([*observed, rest[0]], [*expected, rest[1]]).pvalue > 1e-3


def test_truncated_samples_are_drawn_from_the_likely_units() -> None:
    trained = model(order=1, smoothing="witten-bell")
    order = np.argsort(-trained.next_log_probs(()))
    first = [*trained.names, "</s>"]
    allowed = {first[i] for i in order[:2]}
    units = {unit for sentence in drawn(trained, 50, top_k=2) for unit in sentence}
    assert units and units <= allowed
    assert set(drawn(trained, 20, nucleus=1e-6)) == {(first[order[0]],) * 20 if first[order[0]] != "</s>" else ()}
    cold, hot = (sum(drawn(trained, 300, temperature=t)[()] for _ in (0,)) for t in (0.3, 3.0))
    assert cold != hot


def test_a_wide_beam_finds_the_most_probable_sentences() -> None:
    trained = model(order=3)
    best = sorted(SENTENCES, key=lambda sentence: -log_prob_of(trained, sentence))[:3]
    found = beam_search(trained, (), 50, 10)
    assert [each.units for each in found[:3]] == best
    assert found[0].log_prob == pytest.approx(log_prob_of(trained, best[0]), abs=1e-5)
    (greedy,) = beam_search(trained, ("c",), 1, 10)
    units: list[str] = ["c"]
    while (i := int(np.argmax(trained.next_log_probs(units)))) < len(trained.names):
        units.append(trained.names[i])
    assert greedy.units == tuple(units[1:]) and greedy.ended


# Constraints


@pytest.mark.parametrize(
    ("constraint", "matches"),
    [
        ("a (b|c) .?", lambda s: len(s) in (2, 3) and s[0] == "a" and s[1] in "bc"),
        ("(a|a b)+", None),
        ("", lambda s: s == ()),
        ("a? b? c", lambda s: s in [("c",), ("a", "c"), ("b", "c"), ("a", "b", "c")]),
    ],
)
def test_constrained_sentences_have_the_share_that_enumeration_gives(constraint: str, matches) -> None:  # type: ignore[no-untyped-def]
    trained = model(order=3)
    every = [tuple(each) for n in range(4) for each in itertools.product(trained.names, repeat=n)]
    if matches is None:  # (a|a b)+ is ambiguous only if strings were counted by path; longer ones go on for ever
        constraint, matches = "(a|a b) (a|b a)", lambda s: s in [("a", "a"), ("a", "b", "a"), ("a", "b", "b", "a")]
        every += [("a", "b", "b", "a")]
    probs = {sentence: math.exp(log_prob_of(trained, sentence)) for sentence in every if matches(sentence)}
    constrained = Constrained(trained, constraint)
    assert constrained.log_prob == pytest.approx(math.log(sum(probs.values())), abs=1e-5)
    best = max(probs, key=probs.__getitem__)
    assert constrained.best().units == best
    assert constrained.best().given_constraint == pytest.approx(math.log(probs[best] / sum(probs.values())), abs=1e-5)
    if len(probs) > 1:
        n = 2000
        counts = Counter(each.units for each in constrained.samples(n, seed=3))
        assert set(counts) <= set(probs)
        shares = {sentence: n * p / sum(probs.values()) for sentence, p in probs.items()}
        common = [sentence for sentence, share in shares.items() if share > 8]
        rest = sum(shares.values()) - sum(shares[each] for each in common)
        observed, expected = [counts[each] for each in common], [shares[each] for each in common]
        tail = ([n - sum(observed)], [rest]) if rest > 1 else ([], [])
        scale = sum([*observed, *tail[0]]) / sum([*expected, *tail[1]])
        assert chisquare([*observed, *tail[0]], [scale * each for each in (*expected, *tail[1])]).pvalue > 1e-3


def test_sentences_of_any_length_are_summed() -> None:
    trained = model(order=2)
    assert Constrained(trained, ".*").log_prob == pytest.approx(0.0, abs=1e-5), "all sentences"
    constrained = Constrained(trained, "a (b|a)*")
    total = sum(
        math.exp(log_prob_of(trained, ("a", *rest))) for n in range(13) for rest in itertools.product("ab", repeat=n)
    )
    assert math.exp(constrained.log_prob) == pytest.approx(total, rel=1e-4)
    lengths = [len(each.units) for each in constrained.samples(400, seed=2)]
    assert min(lengths) >= 1 and max(lengths) > 3
    assert constrained.best().units == max(
        (("a", *rest) for n in range(6) for rest in itertools.product("ab", repeat=n)),
        key=lambda sentence: log_prob_of(trained, sentence),
    )


def test_an_acceptor_in_a_file_constrains_as_well(tmp_path: Path) -> None:
    (tmp_path / "two.fst").write_text("0 1 a 3.5\n0 1 b\n1 2 b\n2\n")
    constrained = Constrained(model(), str(tmp_path / "two.fst"))
    total = sum(math.exp(log_prob_of(model(), sentence)) for sentence in [("a", "b"), ("b", "b")])
    assert math.exp(constrained.log_prob) == pytest.approx(total, rel=1e-5), "weights of the file do not count"


def test_characters_are_constrained_by_sets_of_them() -> None:
    corpus = corpus_of(["ab▁a", "ba", "abab", "b▁b"])
    trained = NgramLanguageModel.fit(corpus, NgramConfig(order=2), format=TextReading("characters"))
    constrained = Constrained(trained, "[a-b] ?a")
    wanted = [("a", "a"), ("b", "a"), ("a", "▁", "a"), ("b", "▁", "a")]
    total = sum(math.exp(log_prob_of(trained, each)) for each in wanted)
    assert math.exp(constrained.log_prob) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ("(a", "a bracket is not closed"),
        ("a)", "got '\\)' too many"),
        ("* a", "has nothing to repeat"),
        ("a zebra", "'zebra' is not among the units"),
    ],
)
def test_what_is_no_expression_is_explained(constraint: str, problem: str) -> None:
    with pytest.raises(TrellisworkError, match=problem):
        Constrained(model(), constraint)


def test_a_vocabulary_of_one_and_text_shorter_than_the_order() -> None:
    one = NgramLanguageModel.fit(["a"], NgramConfig(order=5))
    assert np.exp(one.next_log_probs(())).sum() == pytest.approx(1.0)
    assert math.isfinite(log_prob_of(one, ("a", "a", "zebra")))
    arrays = estimate([np.array([], np.int64)], 0, 3)
    assert isinstance(arrays, NgramArrays) and arrays.n_words == 0
