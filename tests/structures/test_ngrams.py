"""n-gram models: probabilities that sum to 1, and acceptors that score as the model does."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from trelliswork.errors import ScoreError
from trelliswork.fst import Acceptor, NGramModel
from trelliswork.structures.automata.ngram_arrays import METHODS as ALL_METHODS

CORPUS = ["abab", "abc", "aab", "cab", "b", "abab", "bca", "abcab"]
METHODS = [each for each in ALL_METHODS if each != "stupid"]  # whose scores are no probabilities
every_method = pytest.mark.parametrize("method", METHODS)
every_order = pytest.mark.parametrize("order", [1, 2, 3, 4])


def model(method: str = "witten-bell", order: int = 3, **options: str) -> NGramModel:
    return NGramModel.train(CORPUS, order, method=method, **options)  # type: ignore[arg-type]


@every_method
@every_order
def test_every_history_sums_to_one(method: str, order: int) -> None:
    trained = model(method, order, unknown="<unk>")
    names = [*list(trained.symbols)[1:], None]
    for length in range(order + 1):
        for history in itertools.product([*"abc", "<unk>"], repeat=length):
            for at_start in (True, False):
                total = sum(math.exp(trained.log_prob(word, history, at_start=at_start)) for word in names)
                assert total == pytest.approx(1.0, abs=1e-12)


def test_witten_bell_by_hand() -> None:
    """p(b | a) = (c(ab) + T(a) p(b)) / (c(a) + T(a)), with T(a) words seen after a."""
    counts = Counter(x + y for s in CORPUS for x, y in itertools.pairwise(f"^{s}$"))
    after_a = {pair: n for pair, n in counts.items() if pair[0] == "a"}
    singles = Counter("".join(f"{s}$" for s in CORPUS))
    unigram = (singles["b"] + 4 * 0.25) / (singles.total() + 4)
    wanted = (counts["ab"] + len(after_a) * unigram) / (sum(after_a.values()) + len(after_a))
    assert math.exp(model(order=2).log_prob("b", "a")) == pytest.approx(wanted)


def test_kneser_ney_counts_contexts() -> None:
    """A word that follows one other only is rare on its own, however frequent."""
    text = ["xy"] * 50 + ["ab", "cb", "db", "eb"]
    kneser_ney = NGramModel.train(text, 2, method="kneser-ney")
    absolute = NGramModel.train(text, 2, method="absolute")
    assert absolute.log_prob("y") > absolute.log_prob("b")
    assert kneser_ney.log_prob("y") < kneser_ney.log_prob("b")


def test_absolute_discounting_by_hand() -> None:
    trained = NGramModel.train(["ab", "ab", "ac"], 2, method="absolute", discount=0.5)
    after_a = math.exp(trained.log_prob("b", "a"))
    assert after_a == pytest.approx((2 - 0.5) / 3 + 0.5 * 2 / 3 * math.exp(trained.log_prob("b")))
    unseen = math.exp(trained.log_prob("a", "a"))
    assert unseen == pytest.approx(0.5 * 2 / 3 * math.exp(trained.log_prob("a")))


@every_method
def test_the_acceptor_is_a_distribution_and_scores_as_the_model(method: str) -> None:
    trained = model(method)
    exact = trained.to_acceptor()
    assert exact.log_partition.item() == pytest.approx(0.0, abs=1e-9)
    for sentence in ("", "a", "abcab", "ccba"):
        assert exact.score(sentence).item() == pytest.approx(trained.score(sentence))
        line = trained.intersect(Acceptor.from_string(sentence, trained.symbols, torch.float64))
        assert line.log_partition.item() == pytest.approx(trained.score(sentence))


def test_epsilon_back_off_counts_too_much() -> None:
    """The approximation adds the backed-off paths of n-grams that are there; exact scoring does not."""
    trained = model()
    free = trained.to_epsilon_acceptor()
    gaps = [free.score(sentence).item() - trained.score(sentence) for sentence in ("ab", "abc", "cc", "a")]
    assert all(gap > -1e-12 for gap in gaps) and max(gaps) > 0.01


def test_intersection_with_an_ambiguous_machine_keeps_gradients() -> None:
    trained = model()
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64, requires_grad=True)
    machine = Acceptor([(0, 1, "a"), (0, 1, "b"), (1, 2, None), (2, 0, "c")], weights - 2, final={1: 0.5})
    joint, expanded = trained.intersect(machine), machine & trained.to_acceptor()
    assert joint.log_partition.item() == pytest.approx(expanded.log_partition.item())
    (found,) = torch.autograd.grad(joint.log_partition, weights)
    (wanted,) = torch.autograd.grad(expanded.log_partition, weights)
    torch.testing.assert_close(found, wanted)


def test_a_language_model_chooses_between_readings() -> None:
    """Emissions that cannot tell b from c: the model can."""
    trained = model()
    lattice = Acceptor.from_emissions(torch.zeros(4, 3, dtype=torch.float64), symbols="abc")
    (best, *_), scores = trained.intersect(lattice).top_k_strings(2)
    every = {s: trained.score(s) for s in map("".join, itertools.product("abc", repeat=4))}
    assert "".join(best) == max(every, key=every.__getitem__)
    assert scores.tolist() == pytest.approx(sorted(every.values(), reverse=True)[:2])


def test_sampled_sentences_follow_the_model() -> None:
    trained = model(order=2)
    drawn = trained.to_acceptor().sample((3000,), torch.Generator().manual_seed(0))
    first = Counter(path.input[:1] for path in drawn)
    wanted = np.array([math.exp(trained.log_prob(word, at_start=True)) for word in ("a", "b", "c", None)])
    found = np.array([first[("a",)], first[("b",)], first[("c",)], first[()]]) / 3000
    assert np.abs(found - wanted).max() < 5 * 0.5 / math.sqrt(3000)


def test_perplexity_and_unknown_words() -> None:
    trained = NGramModel.train([["the", "cat"], ["the", "dog"]], 2, unknown="<unk>")
    known, strange = trained.perplexity([["the", "cat"]]), trained.perplexity([["the", "emu"]])
    assert known < strange < math.inf
    with pytest.raises(ScoreError, match="'emu' is not in the symbol table"):
        NGramModel.train([["the", "cat"]], 2).score(["the", "emu"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "good-turing"}, "method must be one of"),
        ({"order": 0}, "order at least 1"),
        ({"method": "absolute", "discount": 1.5}, "between 0 and 1"),
    ],
)
def test_bad_settings_are_explained(options: dict[str, object], message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        NGramModel.train(CORPUS, **options)  # type: ignore[arg-type]


def test_no_text_is_an_error() -> None:
    with pytest.raises(ScoreError, match="at least one sentence"):
        NGramModel.train([])
