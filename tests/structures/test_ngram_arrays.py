"""Modified Kneser-Ney over arrays against a plain version of the equations, and against sums that must be 1."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests.contract.base import case
from trelliswork.runtime.scratch import Scratch
from trelliswork.structures.automata.ngram_arrays import DEFAULT_DISCOUNTS, NgramArrays, discounts, estimate, states_of
from trelliswork.structures.automata.ngram_counts import NgramLevel, count_levels, padded
from trelliswork.structures.automata.ngram_pruning import pruned

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
        weight *= math.exp(model.log_backoff[node])
        node = int(model.suffix[node])
    return weight * math.exp(model.log_prob[found])


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
        assert states_of(model)[node] == expected


def test_discounts_are_estimated_or_fixed() -> None:
    count = np.repeat([1, 2, 3, 4, 9], [10, 6, 4, 2, 5])
    y = 10 / 22
    assert discounts(count) == pytest.approx((1 - 2 * y * 6 / 10, 2 - 3 * y * 4 / 6, 3 - 4 * y * 2 / 4))
    assert discounts(np.array([1, 1, 2, 2, 2])) == DEFAULT_DISCOUNTS, "nothing was counted three times"


@pytest.mark.parametrize("block", [1, 7, 50, 10_000])
def test_counts_in_sorted_runs_on_disk_are_those_in_memory(tmp_path: Path, block: int) -> None:
    tokens = padded([np.array(each) for each in corpus(5, 40, 3)], 5)
    in_memory = count_levels(tokens, 5, 4)
    on_disk = count_levels(tokens, 5, 4, Scratch(tmp_path), block)
    for ours, wanted in zip(on_disk, in_memory, strict=True):
        for name, one, other in zip(NgramLevel._fields, ours, wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


def test_cut_offs_leave_out_rare_ngrams_whose_mass_goes_to_backing_off() -> None:
    """A kept n-gram keeps its own share; p(w | h) of all others is that of backing off, and each history sums to 1."""
    sequences = [np.array(each) for each in corpus(5, 200, 1)]
    for smoothing in ("kneser-ney", "witten-bell"):
        whole = estimate(sequences, 5, 3, smoothing=smoothing)
        cut = estimate(sequences, 5, 3, smoothing=smoothing, cutoffs=(1, 2, 3))
        seen = count_levels(padded(sequences, 5), 5, 3)
        sizes = [len(seen[0].word), int((seen[1].seen >= 2).sum()), int((seen[2].seen >= 3).sum())]
        assert np.diff(cut.starts[1:]).tolist() == sizes and sizes[2] < len(seen[2].word)
        for history in ([], [0], [1, 2], [6, 0], [0, 0], [3, 4]):
            with case(smoothing=smoothing, history=history):
                probs = [looked_up(cut, history, word) for word in range(6)]
                assert sum(probs) == pytest.approx(1.0, abs=1e-12)
                if all(child(whole, 0, each) for each in history) and len(history) == 1:
                    node = child(whole, 0, history[0])
                    own = sum(seen[1].history == node)
                    assert own == whole.first[node + 1] - whole.first[node]
        trigram = int(np.argmax(seen[2].seen))  # kept; its share of counts is as before
        assert seen[2].seen[trigram] >= 3


def test_stupid_back_off_is_relative_frequency_or_a_constant_times_the_shorter_score() -> None:
    model = estimate([np.array([0, 1, 0, 1]), np.array([0, 2])], 4, 3, smoothing="stupid")
    assert looked_up(model, [0], 1) == pytest.approx(2 / 3)
    assert looked_up(model, [1, 0], 1) == pytest.approx(1.0)
    assert looked_up(model, [1, 0], 2) == pytest.approx(0.4 * 1 / 3)
    assert looked_up(model, [1, 0], 0) == pytest.approx(0.4 * 0.4 * 3 / 8)
    assert looked_up(model, [], 3) == pytest.approx(0.4 / 5), "never seen"


@pytest.mark.parametrize("smoothing", ["kneser-ney", "witten-bell"])
@pytest.mark.parametrize("threshold", [1e-3, 1e-2, 1e9])
def test_pruning_is_that_of_the_formula(smoothing: str, threshold: float) -> None:
    """Stolcke's equations by dictionaries: losses of single n-grams, then new back-off weights."""
    whole = estimate([np.array(each) for each in corpus(5, 60, 2)], 5, 3, smoothing=smoothing)
    wanted = plainly_pruned(whole, threshold)
    model = pruned(whole, threshold)
    names = grams_of(model)
    assert set(names.values()) == set(wanted)
    assert 6 < len(wanted) < len(whole.word) or threshold > 1
    for history in ([], [0], [6, 0], [1, 1], [2, 0], [4, 3], [0, 6]):
        probs = [looked_up(model, history, word) for word in range(6)]
        assert sum(probs) == pytest.approx(1.0, abs=1e-9), history
        if tuple(history) in wanted and history:
            node = next(number for number, name in names.items() if name == tuple(history))
            assert math.exp(model.log_backoff[node]) == pytest.approx(wanted[tuple(history)])


def grams_of(model: NgramArrays) -> dict[int, tuple[int, ...]]:
    names: dict[int, tuple[int, ...]] = {0: ()}
    for node, parent in enumerate(model.parent[1:].tolist(), 1):
        names[node] = (*names[parent], int(model.word[node]))
    return names


def plainly_pruned(model: NgramArrays, threshold: float) -> dict[tuple[int, ...], float]:
    """The n-grams that stay, each with its weight as a history."""
    names = grams_of(model)
    p = {name: math.exp(model.log_prob[node]) for node, name in names.items() if node}
    weight = {name: math.exp(model.log_backoff[node]) for node, name in names.items()}
    kept = set(names.values())
    for n in (3, 2):
        gone = set()
        for gram in [each for each in kept if len(each) == n]:
            history, word = gram[:-1], gram[-1]
            if any(each[:-1] == gram for each in kept):
                continue
            siblings = [each for each in names.values() if each[:-1] == history and len(each) == n]
            unseen = 1 - sum(p[each] for each in siblings)
            free = 1 - sum(p[each[1:]] for each in siblings)
            new = (unseen + p[gram]) / (free + p[gram[1:]])
            old = unseen / free if free > 1e-9 else weight[history]
            marginal = 1.0
            for i in range(len(history)):
                marginal *= p[(5,)] if history[: i + 1] == (6,) else p[history[: i + 1]]
            divergence = -marginal * (
                p[gram] * (math.log(p[gram[1:]]) + math.log(new) - math.log(p[gram]))
                + unseen * (math.log(new) - math.log(old))
            )
            if math.expm1(divergence) < threshold:
                gone.add((history, word))
        kept -= {(*history, word) for history, word in gone}
    final = {(): 1.0}

    def prob(history: tuple[int, ...], word: int) -> float:
        if (*history, word) in kept:
            return p[(*history, word)]
        return final.get(history, 1.0) * prob(history[1:], word)

    for history in sorted(kept - {()}, key=len):
        words = [each[-1] for each in kept if each[:-1] == history]
        unseen, free = 1 - sum(p[(*history, word)] for word in words), 1 - sum(prob(history[1:], w) for w in words)
        final[history] = unseen / free if words else 1.0
    return final
