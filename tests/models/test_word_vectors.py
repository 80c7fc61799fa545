"""Word vectors against plain code: skip-gram by autograd, counts pair by pair, hashes in Python, ranks by scipy."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, spearmanr
from torch.nn import functional as F

from trelliswork.data import Sentence, read_vectors
from trelliswork.errors import DataError, ModelError, OutputError, TrellisworkError
from trelliswork.models import load
from trelliswork.models.language.config import VectorConfig
from trelliswork.models.language.corpus import corpus_of
from trelliswork.models.language.vector_kernels import Pace, skip_gram
from trelliswork.models.language.vector_learning import (
    Text,
    alias_table,
    bags_of,
    begin_skip_gram,
    buckets_of,
    count_pairs,
    kept_shares,
    pip_losses,
    shifted_pmi,
    singular_values,
)
from trelliswork.models.language.vectors import WordVectorModel, export_vectors, read_word_pairs, spearman
from trelliswork.training.progress import Progress

TEXT = ["the cat sat on the mat", "a dog sat on the rug", "the cat saw a dog", "rare the cat", "a", "the rug sat"] * 3
SMALL = dict(dim=6, epochs=2, subsample=0.01, buckets=50)


def trained(**settings: object) -> WordVectorModel:
    return WordVectorModel.fit(TEXT, VectorConfig(**{**SMALL, **settings}), least_count=1)  # type: ignore[arg-type]


class SplitMix:
    """The random numbers of the kernels, in Python's integers."""

    def __init__(self, state: int) -> None:
        self.state = state

    def __call__(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def of(self, table) -> int:  # type: ignore[no-untyped-def]
        place = self() * len(table.share)
        i = int(place)
        return i if place - i < table.share[i] else int(table.alias[i])


def slow_skip_gram(model, text: Text, pace: Pace, uniform: SplitMix) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    """One pass in which autograd differentiates the loss of each pair by both vectors."""
    inputs, outputs = torch.tensor(model.inputs).double(), torch.tensor(model.outputs).double()
    done = pace.done
    for low, high in itertools.pairwise(text.offsets.tolist()):
        words = [int(w) for w in text.tokens[low:high] if w < len(model.keep) and uniform() < model.keep[w]]
        rate = pace.rate * max(1 - done / pace.total, 1e-4)
        done += high - low
        for i, word in enumerate(words):
            width = 1 + int(uniform() * pace.window)
            context = [j for j in range(max(i - width, 0), min(i + width + 1, len(words))) if j != i]
            if not context:
                continue
            bag = model.bags.rows[model.bags.indptr[word] : model.bags.indptr[word + 1]]
            rows = inputs[bag].requires_grad_()
            steps = torch.zeros_like(rows)
            for j in context:
                others = [words[j]] + [uniform.of(model.noise) for _ in range(pace.negatives)]
                for k, other in enumerate(others):
                    if k and other == words[j]:
                        continue
                    vector = outputs[other].clone().requires_grad_()
                    score = rows.mean(0) @ vector
                    by_rows, by_vector = torch.autograd.grad(-F.logsigmoid(score if k == 0 else -score), (rows, vector))
                    steps += by_rows * len(bag)  # each vector of the bag moves as the mean would
                    outputs[other] -= rate * by_vector
            inputs.index_add_(0, torch.as_tensor(bag), -rate * steps)  # an n-gram may be there twice
    return inputs.numpy(), outputs.numpy()


@pytest.mark.parametrize("max_ngram", [0, 5])
def test_a_pass_of_the_kernel_is_that_of_autograd(max_ngram: int) -> None:
    config = VectorConfig(**SMALL, window=3, negatives=4, max_ngram=max_ngram)  # type: ignore[arg-type]
    corpus = corpus_of([line.split() for line in TEXT], least_count=4)
    text = Text.of(corpus)
    assert len(corpus.names) - 1 < len({word for line in TEXT for word in line.split()}), "some words are left out"
    model, _ = begin_skip_gram(text, corpus.names[:-1], config, seed=5)
    model.outputs[:] = np.random.default_rng(0).normal(0, 0.5, model.outputs.shape)
    pace = Pace(config.window, config.negatives, 0.4, 10, 2 * len(text.tokens))
    inputs, outputs = slow_skip_gram(model, text, pace, SplitMix(77))
    seen = np.zeros(2)
    skip_gram(model, text.tokens, text.offsets, 0, len(text.offsets) - 1, pace, np.array([77], np.uint64), seen)
    np.testing.assert_allclose(model.outputs, outputs, atol=2e-6)
    np.testing.assert_allclose(model.inputs, inputs, atol=2e-6)
    assert seen[1] > 0 and seen[0] > 0


def test_noise_has_the_share_of_counts_to_the_power_of_three_quarters() -> None:
    counts = np.array([100, 50, 7, 7, 1, 1])
    table, uniform = alias_table(counts**0.75), SplitMix(3)
    exact = np.bincount(table.alias, 1 - table.share, 6) + table.share
    np.testing.assert_allclose(exact / 6, counts**0.75 / (counts**0.75).sum(), rtol=1e-12)
    drawn = Counter(uniform.of(table) for _ in range(20_000))
    assert chisquare([drawn[i] for i in range(6)], 20_000 * exact / 6).pvalue > 1e-3


def test_frequent_words_are_read_less_often() -> None:
    kept = kept_shares(np.array([90, 9, 1]), 0.01)
    expected = [min(1, math.sqrt(0.01 / f) + 0.01 / f) for f in (0.9, 0.09, 0.01)]
    np.testing.assert_allclose(kept, expected)
    assert (kept_shares(np.array([90, 9, 1]), 0) == 1).all()


# Character n-grams


def fnv(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) % 2**32
    return value


def plain_ngrams(word: str, low: int, high: int) -> list[str]:
    word = f"<{word}>"
    pieces = [word[i : i + n] for i in range(len(word)) for n in range(low, high + 1) if i + n <= len(word)]
    return [each for each in pieces if each != word]


@pytest.mark.parametrize("buckets", [1, 7, 2_000_000])
def test_ngrams_are_hashed_by_their_characters(buckets: int) -> None:
    """[S4.463]: where, of 3: <wh, whe, her, ere, re>. Latin, Arabic, Chinese and emoji; the empty word."""
    words = ["where", "a", "كتاب", "日本語", "naïve", "🙂🙂", ""]
    assert plain_ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]
    config = VectorConfig(buckets=buckets, min_ngram=2, max_ngram=4)
    bags = buckets_of(words, config)
    for i, word in enumerate(words):
        expected = [fnv(each) % buckets for each in plain_ngrams(word, 2, 4)]
        assert bags.rows[bags.indptr[i] : bags.indptr[i + 1]].tolist() == expected, word
    rows, used = bags_of(words, config)
    for i in range(len(words)):
        own, *others = rows.rows[rows.indptr[i] : rows.indptr[i + 1]].tolist()
        assert own == i
        assert [used[each - len(words)] for each in others] == bags.rows[bags.indptr[i] : bags.indptr[i + 1]].tolist()
    assert len(used) == len(set(bags.rows.tolist())), "n-grams of one bucket share a row"


def test_an_unseen_word_is_the_mean_of_its_known_ngrams() -> None:
    model = trained(buckets=2_000_000)
    place = {bucket: i for i, bucket in enumerate(model.rows.buckets.tolist())}
    numbers = [place.get(fnv(each) % 2_000_000) for each in plain_ngrams("cats", 3, 6)]
    known = [each for each in numbers if each is not None]
    assert 0 < len(known) < len(numbers)
    expected = model.rows.matrix[np.array(known) + len(model.names)].mean(0)
    np.testing.assert_allclose(model.vectors(["cats"])[0], expected, rtol=1e-5)
    at = model.names.index("cat")
    bag = [at, *(place[fnv(each) % 2_000_000] + len(model.names) for each in plain_ngrams("cat", 3, 6))]
    np.testing.assert_allclose(model.vectors(["cat"])[0], model.rows.matrix[bag].mean(0), rtol=1e-5, atol=1e-7)
    assert not model.vectors(["zzzz", ""]).any() and model.nearest(["zzzz", ""]) == [[], []]
    assert model.vectors([]).shape == (0, 6)


# Counting


@pytest.mark.parametrize("block", [4, 1 << 22])
def test_pairs_are_counted_as_one_by_one(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trelliswork.models.language.vector_learning.COUNTED_AT_A_TIME", block)
    corpus = corpus_of([line.split() for line in TEXT], least_count=4)
    text, known = Text.of(corpus), corpus.names[:-1]
    expected = np.zeros((len(known), len(known)))
    for line in TEXT:
        numbers = [known.index(word) for word in line.split() if word in known]
        for i, j in itertools.permutations(range(len(numbers)), 2):
            expected[numbers[i], numbers[j]] += max(0, 3 - abs(i - j) + 1) / 3
    counts = count_pairs(text, 3)
    np.testing.assert_allclose(counts.toarray(), expected)
    pmi, contexts = np.zeros_like(expected), expected.sum(0) ** 0.75
    for i, j in zip(*expected.nonzero(), strict=True):
        p = expected[i, j] / expected.sum()
        ratio = p / (expected[i].sum() / expected.sum() * contexts[j] / contexts.sum())
        pmi[i, j] = max(math.log(ratio) - math.log(2), 0)
    assert (pmi > 0).any()
    np.testing.assert_allclose(shifted_pmi(counts, 2).toarray(), pmi, atol=1e-12)


@pytest.mark.parametrize("n", [6, 520])
def test_singular_values_are_the_largest(n: int) -> None:
    from scipy.sparse import csr_array

    matrix = np.random.default_rng(1).normal(size=(n, n)) * (np.random.default_rng(2).random((n, n)) < 0.5)
    u, d = singular_values(csr_array(matrix), 5)
    np.testing.assert_allclose(d, np.linalg.svd(matrix, compute_uv=False)[:5], rtol=1e-8)
    np.testing.assert_allclose(u @ np.diag(d**2) @ u.T, _largest(matrix @ matrix.T, 5), atol=1e-7)


def _largest(symmetric: np.ndarray, k: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors[:, -k:] * values[-k:]) @ vectors[:, -k:].T


def test_the_estimated_dimension_is_close_to_the_best_one() -> None:
    """[S4.474-476]: a matrix of rank 30 under noise; the true PIP loss is known for each dimension."""
    n, noise, alpha, generator = 120, 0.1, 0.5, np.random.default_rng(4)
    spectrum = np.append(12 * 0.8 ** np.arange(30), np.zeros(n - 30))
    u, v = (np.linalg.qr(generator.normal(size=(n, n)))[0] for _ in range(2))
    true = (u * spectrum**alpha)[:, :30]
    measured = np.linalg.svd(u @ np.diag(spectrum) @ v.T + noise * generator.normal(size=(n, n)))
    losses = []
    for k in range(1, 60):
        vectors = measured[0][:, :k] * measured[1][:k] ** alpha
        losses.append(np.linalg.norm(true @ true.T - vectors @ vectors.T))
    expected = pip_losses(measured[1][:59], noise, n, alpha)
    np.testing.assert_allclose(expected[:20], losses[:20], rtol=0.1)
    chosen = int(np.argmin(expected))
    assert 1 < chosen < 30
    assert losses[chosen] < 1.02 * min(losses) < losses[58], (chosen, int(np.argmin(losses)))


# The model


def test_words_of_like_contexts_are_near() -> None:
    text = [f"the {a} {b} here" for a in ("cat", "dog") for b in ("eats", "sleeps")]
    text += [f"my {a} {b} fast" for a in ("car", "truck") for b in ("drives", "stops")]
    for settings in ({"epochs": 60, "lr": 0.1, "subsample": 0.0, "max_ngram": 0}, {"method": "sppmi", "negatives": 1}):
        config = VectorConfig(**{"dim": 8, "window": 3, **settings})  # type: ignore[arg-type]
        model = WordVectorModel.fit(text * 40, config, least_count=1)
        near, far = model.similarities([("cat", "dog"), ("cat", "truck")])
        assert near > far + 0.2, (settings, near, far)
        assert model.nearest(["cat"], 1)[0][0][0] == "dog"
        assert model.predict([["cat"]], top_k=1)[0].value[0][0][0] == "dog"


def test_one_thread_is_deterministic_and_two_threads_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again, other = trained(), trained(), WordVectorModel.fit(TEXT, VectorConfig(**SMALL), least_count=1, seed=1)  # type: ignore[arg-type]
    np.testing.assert_array_equal(first.matrix, again.matrix)
    assert not np.array_equal(first.matrix, other.matrix)
    two = WordVectorModel.fit(TEXT, VectorConfig(**SMALL), least_count=1, threads=2)  # type: ignore[arg-type]
    assert np.isfinite(two.matrix).all() and two.names == first.names
    for method in ("skipgram", "sppmi"):
        more = {"method": method} if method == "sppmi" else {}
        one = WordVectorModel.fit(["a b a", "b a"] * 9, VectorConfig(dim=3, **more), least_count=1)  # type: ignore[arg-type]
        assert one.matrix.shape == (2, 3)


@pytest.mark.parametrize("method", ["skipgram", "sppmi"])
@pytest.mark.parametrize("text", [["a"], ["a a a a"], ["a b"], ["a", "b"], ["a b c d e f g h i j k l m"]])
def test_little_text_is_no_error(method: str, text: list[str]) -> None:
    config = VectorConfig(method=method, dim=4, window=50)  # type: ignore[arg-type]
    model = WordVectorModel.fit(text, config, least_count=1)
    assert model.matrix.shape == (len(set(" ".join(text).split())), 4) and np.isfinite(model.matrix).all()


def test_a_line_of_100_000_words_and_no_frequent_word() -> None:
    words = np.random.default_rng(0).integers(0, 50, 100_000)
    line = " ".join(f"w{i}" for i in words)
    assert len(WordVectorModel.fit([line], VectorConfig(dim=4, epochs=1)).names) == 50
    with pytest.raises(TrellisworkError, match="frequent enough"):
        WordVectorModel.fit(["a b c"], VectorConfig(dim=4))


def test_other_forms_of_unicode_are_one_word() -> None:
    model = WordVectorModel.fit(["caf\u00e9 كِتاب"] * 5 + ["cafe\u0301 KITAB"] * 5, VectorConfig(dim=4, lower=True))
    assert model.names[:1] == ["caf\u00e9"] and model.counts[0] == 10 and "kitab" in model.names
    np.testing.assert_array_equal(*model.vectors(["CAFE\u0301", "caf\u00e9"]))
    assert model.knows("Cafe\u0301") and not model.knows("cafes")


def test_a_rate_without_bounds_is_an_error() -> None:
    with pytest.raises(TrellisworkError, match="try a lower rate"):
        trained(lr=1e30, epochs=4)


def test_settings_of_the_other_method_are_refused() -> None:
    for settings, option in (({"method": "sppmi", "lr": 0.1}, "lr"), ({"fit_dim": True}, "fit-dim")):
        with pytest.raises(TrellisworkError, match=f"--{option} is not used by --method"):
            VectorConfig(**settings)  # type: ignore[arg-type]


# Similarities


def test_ranks_are_those_of_scipy() -> None:
    generator = np.random.default_rng(3)
    for n in (2, 5, 40):
        first, second = generator.integers(0, 7, n).astype(float), generator.normal(size=n)
        first[0] = 9
        assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    assert spearman(np.ones(3), np.arange(3.0)) == 0 and spearman(np.ones(1), np.ones(1)) == 0


def test_pairs_are_scored_by_file_with_coverage(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("cat\tdog\t7\ncat\tmat\t3\ncat\tcats\t9\ncat\tzzzz\t1\nrug\tmat\t5\n")
    (tmp_path / "b.txt").write_text("word1 word2 score\n\nthe a 2.5\nsat cat 1\n")
    model = trained(buckets=2_000_000)
    gold = [pair for name in "ab" for pair in read_word_pairs(str(tmp_path / f"{name}.txt"))]
    scores = model.evaluate(gold)
    first, second = scores["by_file"].values()
    assert (first["pairs"], first["covered"], first["answered"]) == (5, 3, 4) and second["pairs"] == 2
    human = [7, 3, 9, 5]
    cosines = model.similarities([("cat", "dog"), ("cat", "mat"), ("cat", "cats"), ("rug", "mat")])
    assert first["spearman"] == pytest.approx(spearmanr(cosines, human).statistic)
    assert scores["score"] == pytest.approx((first["spearman"] + second["spearman"]) / 2)
    assert np.isnan(model.similarities([("cat", "zzzz")])).all()
    with pytest.raises(TrellisworkError, match="got none"):
        model.evaluate([])


@pytest.mark.parametrize("line", ["cat dog", "cat\tdog\tnear", "cat dog nan"])
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "p").write_text(f"a b 1\n{line}\n")
    with pytest.raises(DataError, match="two words and their similarity") as error:
        list(read_word_pairs(str(tmp_path / "p")))
    assert error.value.line == 2  # type: ignore[attr-defined]


# Files


@pytest.mark.parametrize("method", ["skipgram", "sppmi"])
def test_a_model_comes_back_from_its_folder_and_from_text(tmp_path: Path, method: str) -> None:
    model = WordVectorModel.fit(TEXT, VectorConfig(dim=5, negatives=1, method=method), least_count=1)  # type: ignore[arg-type]
    model.save(tmp_path / "vec")
    back = load(tmp_path / "vec")
    assert isinstance(back, WordVectorModel) and back.config == model.config and back.size == model.size
    np.testing.assert_array_equal(back.vectors(["cat", "cats"]), model.vectors(["cat", "cats"]))
    export_vectors(back, tmp_path / "v.txt")
    read = read_vectors(tmp_path / "v.txt")
    assert list(read.words) == model.names and read.n_announced == len(model.names)
    np.testing.assert_allclose(read.matrix, model.matrix, rtol=1e-4)
    assert WordVectorModel.from_file(tmp_path / "v.txt").nearest(["cat"], 1)[0][0][0] == model.nearest(["cat"])[0][0][0]
    with pytest.raises(OutputError, match="a file already"):
        export_vectors(back, tmp_path / "v.txt")


@pytest.mark.parametrize("damage", ["rows", "buckets", "counts"])
def test_damaged_folders_are_refused(tmp_path: Path, damage: str) -> None:
    model = trained()
    if damage == "rows":
        model.rows = model.rows._replace(matrix=model.rows.matrix[1:])
    elif damage == "buckets":
        model.rows.buckets[0] = model.rows.buckets[1]
    else:
        model.counts = model.counts[1:]
    model.save(tmp_path / "vec")
    with pytest.raises(ModelError, match="does not fit together"):
        load(tmp_path / "vec")


def test_ctrl_c_between_epochs_is_passed_on() -> None:
    class Stopped(Progress):
        def iteration(self, *arguments: object, **more: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WordVectorModel.fit(TEXT, VectorConfig(dim=4), least_count=1, progress=Stopped())


def test_pairs_are_sentences() -> None:
    gold = [Sentence(("cat", "dog"), target=("3",)), Sentence(("cat", "mat"), target=("1",))]
    assert trained().evaluate(gold)["by_file"]["pairs"]["pairs"] == 2
