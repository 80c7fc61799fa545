"""Expected numbers of parts: how many spans, tags or arcs of a label a text has, with exact error bars.

The number of parts with a label is a sum over the parts of y, so its mean and its variance under p(y | x) are queries
of the distribution, `expected` and `variance`. Inputs are independent of each other: means add up, and so do variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.batched import BUDGET, in_batches

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.models.base import Inputs, Known, Model


@dataclass(frozen=True)
class ExpectedCount:
    """The number of parts with a label: its mean and variance under p(y | x).

    >>> str(ExpectedCount("PER", 12.34, 1.21)), str(ExpectedCount("LOC", 3.0, 0.0))
    ('12.3 +- 1.1 PER', '3 +- 0 LOC')
    """

    label: str
    mean: float
    variance: float

    @property
    def deviation(self) -> float:
        """The standard deviation: the error bar."""
        return math.sqrt(self.variance)

    def __add__(self, other: ExpectedCount) -> ExpectedCount:
        """Return the count over two independent inputs."""
        return ExpectedCount(self.label, self.mean + other.mean, self.variance + other.variance)

    def __str__(self) -> str:
        digits = 0 if self.deviation < 1e-6 else min(max(0, 1 - math.floor(math.log10(self.deviation))), 6)
        return f"{self.mean:.{digits}f} +- {self.deviation:.{digits}f} {self.label}".rstrip()

    def record(self) -> dict[str, object]:
        """Return plain values."""
        return {"label": self.label, "mean": round(self.mean, 6), "deviation": round(self.deviation, 6)}


class Counting(NamedTuple):
    """The distributions whose mean p(y | x) of a batch is, the labels of parts, and the costs that count each label."""

    members: Sequence[Any]
    labels: Sequence[str]
    costs: Callable[[str], Mapping[str, Tensor]]

    def counts(self, labels: Sequence[str] | None) -> list[list[ExpectedCount]]:
        """Return the counts of each row; None stands for all labels."""
        wanted = self.labels if labels is None else labels
        for label in wanted:
            if label not in self.labels:
                near = get_close_matches(label, self.labels, n=1)
                fix = f"did you mean {near[0]}?" if near else "choose one of these"
                raise TrellisworkError(f"expected one of the labels {', '.join(self.labels)}; got {label!r}; {fix}")
        if any(bool((each.log_partition == -math.inf).any()) for each in self.members):
            raise ConstraintError("no answer agrees with the pins; drop one of them, or pin others that go together")
        columns = [self._counts_of(label) for label in wanted]
        return [list(row) for row in zip(*columns, strict=True)]

    def _counts_of(self, label: str) -> list[ExpectedCount]:
        """Count the parts with a label; the variance of a mean adds the variance of the means to the mean variance."""
        costs = self.costs(label)
        means, variances = (
            [query(each, **costs).double().tolist() for each in self.members] for query in (_mean, _variance)
        )
        return [
            ExpectedCount(label, *_mixed(m, v))
            for m, v in zip(zip(*means, strict=True), zip(*variances, strict=True), strict=True)
        ]


def _mean(distribution: Any, **costs: Tensor) -> Tensor:
    mean: Tensor = distribution.expected(**costs)
    return mean.detach()


def _variance(distribution: Any, **costs: Tensor) -> Tensor:
    variance: Tensor = distribution.variance(**costs)
    return variance.detach()


def _mixed(means: Sequence[float], variances: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the variance of a mean of distributions.

    >>> _mixed([1.0, 3.0], [0.5, 0.5])
    (2.0, 1.5)
    """
    mean = sum(means) / len(means)
    between = sum((each - mean) ** 2 for each in means) / len(means)
    return mean, sum(variances) / len(variances) + between


def expected_counts(
    model: Model, inputs: Inputs, labels: Sequence[str] | None, pins: Known
) -> list[list[ExpectedCount]]:
    """Return the counts of each input, as `Model.expected_counts` says; `model.counting` has the distribution.

    Args:
        model: a model with `counting`.
        inputs: what the model reads.
        labels: the labels to count; None for all.
        pins: for each input the parts of its answer that are known.

    Returns:
        For each input a count of each label.
    """
    return in_batches(
        model,
        model.sentences_of(inputs),
        pins,
        lambda batch, known: model.counting(batch, known).counts(labels),
        empty=lambda: [ExpectedCount(label, 0.0, 0.0) for label in labels or ()],
        budget=getattr(model, "budget", BUDGET),
    )


def total_counts(counts: Iterable[Sequence[ExpectedCount]]) -> list[ExpectedCount]:
    """Return the counts over independent inputs by label.

    >>> one = ExpectedCount("PER", 1.0, 0.25), ExpectedCount("LOC", 0.5, 0.25)
    >>> [str(each) for each in total_counts([one, one])]
    ['2.00 +- 0.71 PER', '1.00 +- 0.71 LOC']
    """
    totals: dict[str, ExpectedCount] = {}
    for row in counts:
        for each in row:
            totals[each.label] = totals[each.label] + each if each.label in totals else each
    return list(totals.values())
