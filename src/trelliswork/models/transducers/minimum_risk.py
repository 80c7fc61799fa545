"""Minimum Bayes risk: the answer that agrees best with all that the model might say.

Kumar and Byrne (2004), Minimum Bayes-risk decoding for statistical machine translation; Eikema and Aziz (2020), Is MAP
decoding all you need?
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from trelliswork.metrics.strings import edit_distances

Symbol = TypeVar("Symbol", bound=Hashable)
Utility = Callable[[Sequence[tuple[Sequence[object], Sequence[object]]]], list[float]]
Sample = tuple[tuple[Symbol, ...], float]


def similarity(pairs: Sequence[tuple[Sequence[object], Sequence[object]]]) -> list[float]:
    """Return 1 - edit distance / length of the longer one, for pairs of strings.

    >>> similarity([("abcd", "abd"), ("", "")])
    [0.75, 1.0]
    """
    distances = edit_distances([(tuple(map(str, a)), tuple(map(str, b))) for a, b in pairs])
    return [1 - d / max(len(a), len(b), 1) for d, (a, b) in zip(distances, pairs, strict=True)]


def by_agreement(samples: Sequence[Sample[Symbol]], utility: Utility = similarity) -> list[Sample[Symbol]]:
    """Return the different samples, those with the highest mean utility against all samples first.

    A sample that was drawn twice counts twice. Ties keep the order in which they were drawn.

    >>> [string for string, _ in by_agreement([(("b",), -1.0), (("a", "b"), -2.0), (("a", "b"), -2.0)])]
    [('a', 'b'), ('b',)]
    """
    different: dict[tuple[Symbol, ...], float] = {}
    for string, log_p in samples:
        different.setdefault(string, log_p)
    strings = list(different)
    gains = utility([(mine, other) for mine in strings for other, _ in samples])
    n = len(samples)
    means = [sum(gains[i * n : (i + 1) * n]) / n for i in range(len(strings))]
    order = sorted(range(len(strings)), key=lambda i: -means[i])
    return [(strings[i], different[strings[i]]) for i in order]
