"""Scores of predicted strings: word and symbol error rates, BLEU.

A string is a sequence of symbols (phones, letters or words). An input may have several right targets: a prediction is
right if it equals any of them, and its errors are counted against the nearest one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from trelliswork.draw.notebook import Rich
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.string_kernels import distances
from trelliswork.runtime.arrays import Array

Symbols = Sequence[str]
Targets = Sequence[Symbols]  # the right answers to one input

LONGEST = 4  # words of the n-grams of BLEU
NO_LOG = -9999999999.0  # what sacrebleu takes for log 0


def edit_distances(pairs: Sequence[tuple[Symbols, Symbols]]) -> list[int]:
    """Return fewest insertions, deletions and substitutions of symbols between the two strings of each pair.

    Levenshtein (1966), Binary codes capable of correcting deletions, insertions, and reversals.

    >>> edit_distances([("kitten", "sitting"), ("", "abc"), ("ab", "ab")])
    [3, 3, 0]
    """
    numbers = {symbol: i for i, symbol in enumerate(set(chain.from_iterable(chain.from_iterable(pairs))))}
    n_edits = np.zeros(len(pairs), np.int64)
    distances(*_flat([a for a, _ in pairs], numbers), *_flat([b for _, b in pairs], numbers), n_edits)
    distance_of: list[int] = n_edits.tolist()
    return distance_of


def edit_distance(first: Symbols, second: Symbols) -> int:
    """Return fewest insertions, deletions and substitutions of symbols.

    >>> edit_distance("Saturday", "Sunday")
    3
    """
    return edit_distances([(first, second)])[0]


def _flat(strings: Sequence[Symbols], numbers: dict[str, int]) -> tuple[Array, Array]:
    """Return all symbols in one array, and where each string begins."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(each) for each in strings], out=offsets[1:])
    return np.fromiter((numbers[each] for each in chain.from_iterable(strings)), np.int32, int(offsets[-1])), offsets


@dataclass(frozen=True)
class StringReport(Rich):
    """Counts over all inputs. `n_symbols` are those of the nearest right targets."""

    n: int
    n_wrong: int
    n_errors: int
    n_symbols: int
    right: tuple[bool, ...] = ()

    @property
    def word_error_rate(self) -> float:
        """The share of inputs whose prediction equals none of the right targets."""
        return self.n_wrong / self.n if self.n else 0.0

    @property
    def symbol_error_rate(self) -> float:
        """Edits to the nearest right targets, as a share of their symbols; it can be above 1."""
        return self.n_errors / self.n_symbols if self.n_symbols else float(self.n_errors > 0)


def string_scores(found: Sequence[Symbols], targets: Sequence[Targets]) -> StringReport:
    """Compare predictions with the right targets of each input.

    >>> report = string_scores(["ab", "xyz"], [["ab", "abc"], ["xy"]])
    >>> report.word_error_rate, report.symbol_error_rate
    (0.5, 0.25)
    """
    _check(found, targets)
    owners = [i for i, right in enumerate(targets) for _ in right]
    flat = list(chain.from_iterable(targets))
    errors = edit_distances([(found[i], each) for i, each in zip(owners, flat, strict=True)])
    nearest: dict[int, tuple[int, int]] = {}
    for i, each, n_errors in zip(owners, flat, errors, strict=True):
        nearest[i] = min(nearest.get(i, (n_errors, len(each))), (n_errors, len(each)), key=lambda pair: pair[0])
    right = tuple(nearest[i][0] == 0 for i in range(len(found)))
    return StringReport(
        len(found), right.count(False), sum(e for e, _ in nearest.values()), sum(n for _, n in nearest.values()), right
    )


def _check(found: Sequence[Symbols], targets: Sequence[Targets]) -> None:
    if len(found) != len(targets):
        raise TrellisworkError(f"expected a prediction for each of {len(targets)} inputs, got {len(found)}")
    if empty := [i for i, right in enumerate(targets) if not right]:
        raise TrellisworkError(f"expected at least one right target for each input, got none for input {empty[0]}")


@dataclass(frozen=True)
class Bleu(Rich):
    """The score in per cent, the precision of n-grams of 1 to 4 words in per cent, and the penalty for brevity."""

    score: float
    precisions: tuple[float, ...]
    brevity: float
    length: int
    target_length: int


def bleu(found: Sequence[Symbols], targets: Sequence[Targets]) -> Bleu:
    """BLEU of a corpus with exponential smoothing, as sacrebleu counts it with tokenize=none.

    Matches are clipped by the target that has most of an n-gram; the length that counts is the nearest, and the shorter
    of two. Papineni et al. (2002), BLEU: a method for automatic evaluation of machine translation; Post (2018), A call
    for clarity in reporting BLEU scores.

    >>> round(bleu(["the cat sat down".split()], [["the cat sat down here".split()]]).score, 2)
    77.88
    """
    _check(found, targets)
    correct, total = [0] * LONGEST, [0] * LONGEST
    length = target_length = 0
    for words, right in zip(found, targets, strict=True):
        length += len(words)
        target_length += min((abs(len(words) - len(each)), len(each)) for each in right)[1]
        mine, allowed = _ngrams(words), Counter[tuple[str, ...]]()
        for each in right:
            allowed |= _ngrams(each)
        for gram, n in mine.items():
            correct[len(gram) - 1] += min(n, allowed[gram])
            total[len(gram) - 1] += n
    brevity = 1.0 if length >= target_length else math.exp(1 - target_length / length) if length else 0.0
    precisions = _precisions(correct, total)
    logs = [math.log(each) if each else NO_LOG for each in precisions]
    score = brevity * math.exp(sum(logs) / LONGEST) if any(correct) else 0.0
    return Bleu(score, tuple(precisions), brevity, length, target_length)


def _ngrams(words: Symbols) -> Counter[tuple[str, ...]]:
    """Return those of all lengths."""
    words = tuple(words)
    grams: Iterable[tuple[str, ...]] = (
        words[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1)
    )
    return Counter(grams)


def _precisions(correct: Sequence[int], total: Sequence[int]) -> list[float]:
    """In per cent; each length without matches counts for half as much of a match as the one before."""
    precisions, smoothing = [0.0] * LONGEST, 1.0
    for n in range(LONGEST):
        if not total[n] or not any(correct):
            break
        if not correct[n]:
            smoothing *= 2
        precisions[n] = 100.0 * correct[n] / total[n] if correct[n] else 100.0 / (smoothing * total[n])
    return precisions
