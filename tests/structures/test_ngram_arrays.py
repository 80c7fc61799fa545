"""Modified Kneser-Ney over arrays against a plain version of the equations, and against sums that must be 1."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from tests.contract.base import case
from trelliswork.structures.automata.ngram_arrays import DEFAULT_DISCOUNTS, NgramArrays, discounts, estimate

BEGIN, END = "<", ">"


class Plain:
    """p(w | h) as Chen and Goodman (1999) write it, by dictionaries."""

    def __init__(self, sequences: list[list[int]], n_words: int, order: int) -> None:
        self.n_words = n_words
        raw: dict[int, Counter[tuple]] = defaultdict(Counter)
        for sequence in sequences:
            padded = [BEGIN, *sequence, END]
            for i in range(1, len(padded)):
                for n in range(1, order + 1):
                    if i - n + 1 >= 0:
                        raw[n][tuple(padded[i - n + 1 : i + 1])] += 1
        top = max(raw)
        self.counts: dict[int, Counter[tuple]] = {top: raw[top]}
        for n in range(1, top):
            preceding: Counter[tuple] = Counter(gram[1:] for gram in raw[n + 1])
            self.counts[n] = Counter({g: c if g[0] == BEGIN else preceding[g] for g, c in raw[n].items()})

    def discounts(self, n: int) -> tuple[float, float, float]:
        return discounts(np.array(list(self.counts[n].values())))

    def prob(self, history: tuple, word: object) -> float:
        n = len(history) + 1
        below = 1 / (self.n_words + 1) if n == 1 else self.prob(history[1:], word)
        followers = {g[-1]: c for g, c in self.counts.get(n, {}).items() if g[:-1] == history}
        if not followers:
            return below
        d = (0.0, *self.discounts(n))
        total, left = sum(followers.values()), sum(d[min(c, 3)] for c in followers.values())
        count = followers.get(word, 0)
        return (count - d[min(count, 3)]) / total + left / total * below


def looked_up(model: NgramArrays, history: list[int], word: int) -> float:
    """p(word | history) by the trie: back-off only where an n-gram is missing."""
    nodes = [0]
    for start in range(len(history)):
        node = 0
        for each in history[start:]:
            node = child(model, node, each)
            if node is None:
                break
        if node is not None:
            nodes = [node]
            break
    node, weight = nodes[0], 1.0
    while (found := child(model, node, word)) is None:
        weight *= model.backoff[node]
        node = int(model.suffix[node])
    return weight * float(model.prob[found])


def child(model: NgramArrays, node: int, word: int) -> int | None:
    low, high = model.first[node], model.first[node + 1]
    at = low + int(np.searchsorted(model.word[low:high], word))
    return int(at) if at < high and model.word[at] == word else None


def corpus(n_words: int, n: int, seed: int) -> list[list[int]]:
    draw = random.Random(seed)
    return [[min(int(draw.expovariate(0.8)), n_words - 1) for _ in range(draw.randint(1, 7))] for _ in range(n)]


@pytest.mark.parametrize(("n_words", "n", "order"), [(4, 60, 3), (5, 300, 4), (3, 5, 2), (2, 3, 6), (4, 40, 1)])
def test_probabilities_are_those_of_the_plain_version(n_words: int, n: int, order: int) -> None:
    sequences = corpus(n_words, n, order)
    model = estimate([np.array(each) for each in sequences], n_words, order)
    plain = Plain(sequences, n_words, order)
    histories = {(): []} | {
        tuple(padded[i:j]): padded[i:j]
        for each in sequences[:20]
        for padded in [[n_words + 1, *each]]
        for i in range(len(padded))
        for j in range(i, min(i + order, len(padded) + 1))
    }
    for history in histories:
        named = tuple(BEGIN if word == n_words + 1 else word for word in history)
        with case(history=named):
            found = [looked_up(model, list(history), word) for word in range(n_words + 1)]
            assert sum(found) == pytest.approx(1.0, abs=1e-12)
            assert found == pytest.approx([plain.prob(named, w if w < n_words else END) for w in range(n_words + 1)])


def test_states_are_the_longest_suffixes_with_something_behind_them() -> None:
    model = estimate([np.array(each) for each in corpus(4, 50, 1)], 4, 4)
    for node in range(len(model.word)):
        expected = node
        while model.first[expected] == model.first[expected + 1]:
            expected = int(model.suffix[expected])
        assert model.state[node] == expected


def test_discounts_are_estimated_or_fixed() -> None:
    count = np.repeat([1, 2, 3, 4, 9], [10, 6, 4, 2, 5])
    y = 10 / 22
    assert discounts(count) == pytest.approx((1 - 2 * y * 6 / 10, 2 - 3 * y * 4 / 6, 3 - 4 * y * 2 / 4))
    assert discounts(np.array([1, 1, 2, 2, 2])) == DEFAULT_DISCOUNTS, "nothing was counted three times"
