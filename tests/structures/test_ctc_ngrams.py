"""The beam with n-grams in a kernel, against all strings and against the plain beam with the model of automata."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from trelliswork.distributions import CTC
from trelliswork.fst import NGramModel
from trelliswork.structures.ctc.beam import NgramScorer

TEXTS = ["abab", "abc", "cab", "bbca", "a", "ccab", "abba", "cabab"]
MODELS = [
    NGramModel.train(TEXTS, order, method=how) for order, how in ((1, "witten-bell"), (3, "kneser-ney"), (5, "stupid"))
]


class Plain:
    """The same model as the plain search takes it; labels are numbers of the symbol table, 0 being the blank."""

    def __init__(self, model: NGramModel) -> None:
        self.model = model

    def start(self) -> int:
        return self.model.start

    def score(self, state: int, symbol: int) -> tuple[float, int]:
        return self.model.step(state, symbol)

    def final(self, state: int) -> float:
        return self.model.step(state, 0)[0]


def scorer_of(model: NGramModel, c: int) -> NgramScorer:
    return NgramScorer(model.arrays, [-1, *range(c - 1)])


def frames(t: int, c: int, seed: int, scale: float = 1.5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(t, c, generator=generator, dtype=torch.float64)).log_softmax(-1)


@pytest.mark.parametrize("model", MODELS, ids=["unigrams", "trigrams", "stupid"])
def test_a_wide_beam_finds_the_best_of_all_strings(model: NGramModel) -> None:
    for seed, (weight, bonus) in enumerate([(0.7, 0.4), (2.0, -0.3), (0.0, 0.0)]):
        dist = CTC(frames(5, 4, seed), backend="kernel")
        wanted = []
        for n in range(6):
            for string in itertools.product((1, 2, 3), repeat=n):
                if (log_p := float(dist.log_prob(list(string)))) > -math.inf:
                    state, said = model.start, 0.0
                    for label in string:
                        log_q, state = model.step(state, label)
                        said += log_q
                    wanted.append((log_p + weight * (said + model.step(state, 0)[0]) + bonus * n, string))
        wanted.sort(key=lambda each: -each[0])
        found = dist.beam_search(10_000, k=5, scorer=scorer_of(model, 4), scorer_weight=weight, label_bonus=bonus)
        assert [tuple(each.labels) for each in found] == [string for _, string in wanted[:5]]
        assert [each.score for each in found] == pytest.approx([score for score, _ in wanted[:5]])


@pytest.mark.parametrize("model", MODELS, ids=["unigrams", "trigrams", "stupid"])
def test_the_kernel_is_the_plain_beam_at_any_width(model: NGramModel) -> None:
    for seed, (width, gap) in enumerate([(1, math.inf), (2, math.inf), (7, 3.0), (30, math.inf), (30, 5.0)]):
        scores = frames(25, 4, 100 + seed, 0.8)
        scores[3, 2] = -math.inf
        asked = {"k": 4, "beam_threshold": gap, "scorer_weight": 0.9, "label_bonus": 0.5}
        plain = CTC(scores, backend="torch").beam_search(width, scorer=Plain(model), **asked)
        fused = CTC(scores, backend="kernel").beam_search(width, scorer=scorer_of(model, 4), **asked)
        assert [each.labels for each in fused] == [each.labels for each in plain]
        assert [each.score for each in fused] == pytest.approx([each.score for each in plain])


def test_a_label_that_the_model_does_not_have_is_never_written() -> None:
    model = MODELS[1]
    scorer = NgramScorer(model.arrays, [-1, 0, -1, 1])  # label 2 is no word, label 3 is b
    dist = CTC(frames(12, 4, 5), backend="kernel")
    for backend in ("kernel", "torch"):
        dist = CTC(frames(12, 4, 5), backend=backend)
        (best,) = dist.beam_search(50, scorer=scorer, scorer_weight=1.0)
        assert 2 not in best.labels and best.labels
    assert scorer.score(scorer.start(), 2) == (-math.inf, 0)
    state = scorer.start()
    for label, word in ((1, "a"), (3, "b"), (1, "a")):
        log_p, after = scorer.score(state, label)
        assert log_p == pytest.approx(model.step(state, model.symbols.number(word))[0])
        state = after
    assert scorer.final(state) == pytest.approx(model.step(state, 0)[0])
    with np.errstate(all="raise"):
        assert scorer.score(0, 1)[0] == pytest.approx(model.step(0, 1)[0])
