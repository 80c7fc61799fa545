"""Significance of the difference between two models: a paired bootstrap over the sentences of a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trelliswork.draw.notebook import Rich
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.spans import Score
from trelliswork.runtime.arrays import Array

N_SAMPLES = 10_000
AT_A_TIME = 2_000_000  # sentences drawn at a time, which bounds the memory


@dataclass(frozen=True)
class Difference(Rich):
    """F1 of two models on the same data; the 95% interval and the p-value are of first - second."""

    first: float
    second: float
    low: float
    high: float
    p_value: float
    n_better: int
    n_worse: int
    n: int

    @property
    def difference(self) -> float:
        """Score of the first less that of the second; negative if the first is worse."""
        return self.first - self.second


def paired_bootstrap(
    first: Sequence[Score], second: Sequence[Score], *, n_samples: int = N_SAMPLES, seed: int = 0
) -> Difference:
    """Compare the counts of two models, sentence by sentence: F1 on test sets drawn with replacement.

    The p-value is the share of draws whose difference is at least as far from the observed one as that is from 0.
    Tokens as parts, of which every one is predicted, make F1 the accuracy.

    Berg-Kirkpatrick, Burkett and Klein (2012), An empirical investigation of statistical significance in NLP.

    >>> same = [Score(1, 2, 2), Score(2, 2, 2)]
    >>> paired_bootstrap(same, same).p_value
    1.0

    Args:
        first: Counts of the first model for each sentence.
        second: Counts of the second one for the same sentences.
        n_samples: Number of test sets to draw.
        seed: Seed of the draws.

    Returns:
        The scores of both, their difference and its p-value.
    """
    if len(first) != len(second) or not first:
        sizes = f"{len(first)} and {len(second)}"
        raise TrellisworkError(f"expected the counts of two models on the same sentences, got {sizes}; use one file")
    ours, theirs = _counts(first), _counts(second)
    observed = _f1(ours.sum(0)) - _f1(theirs.sum(0))
    drawn = _differences(ours, theirs, n_samples, np.random.default_rng(seed))
    n_far = int((np.abs(drawn - observed) >= abs(observed) - 1e-12).sum())
    errors = ours[:, 1:].sum(1) - 2 * ours[:, 0] - (theirs[:, 1:].sum(1) - 2 * theirs[:, 0])
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    better, worse = int((errors < 0).sum()), int((errors > 0).sum())
    p_value = (n_far + 1) / (n_samples + 1)
    return Difference(float(_f1(ours.sum(0))), float(_f1(theirs.sum(0))), low, high, p_value, better, worse, len(first))


def _differences(ours: Array, theirs: Array, n_samples: int, rng: np.random.Generator) -> Array:
    """Return F1 of the first less that of the second, on draws with replacement."""
    n, both = len(ours), np.concatenate([ours, theirs], 1)
    step = max(1, AT_A_TIME // n)
    differences = []
    for begin in range(0, n_samples, step):
        chosen = rng.integers(0, n, (min(step, n_samples - begin), n))
        totals = both[chosen].sum(1)  # (samples, 6)
        differences.append(_f1(totals[:, :3]) - _f1(totals[:, 3:]))
    return np.concatenate(differences)


def _counts(scores: Sequence[Score]) -> Array:
    return np.array([(each.correct, each.predicted, each.gold) for each in scores], np.int64)


def _f1(counts: Array) -> Array:
    """Return F1 of [..., 3] counts: right, predicted, gold."""
    return 2 * counts[..., 0] / np.maximum(counts[..., 1] + counts[..., 2], 1)
