"""A structure: exactly k of n items, p(S | x) = exp(sum of the scores of S) / Z.

The recursion goes through the items and keeps, for each j up to k, the total of all ways to have taken j of them:

    ways_i(j) = ways_{i-1}(j) + ways_{i-1}(j - 1) * score_i

Every query of the distribution comes from it: with another semiring, or by its gradient.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import torch
from torch import Tensor

from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.errors import ScoreError
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.record import Scores, Structure
from trelliswork.structures.reference import Reference, posteriors

INF = float("inf")


@dataclass(frozen=True)
class Items:
    """The scores [rows, n] of items, of which k are chosen."""

    scores: Tensor
    k: int

    @property
    def part_scores(self) -> Tensor:
        return self.scores

    def with_scores(self, scores: Tensor) -> Items:
        return replace(self, scores=scores)

    def detached(self) -> Items:
        return self.with_scores(self.scores.detach().double().requires_grad_())


def total(items: Items, semiring: Semiring) -> Tensor:
    """The recursion over any semiring: log Z for `Log`."""
    scores, lifted = items.scores, semiring.lift(items.scores)
    ways = [semiring.one((len(scores),), scores), *[semiring.zero((len(scores),), scores)] * items.k]
    for i in range(scores.shape[-1]):
        taken = [semiring.times(ways[j - 1], lifted[..., i]) for j in range(1, items.k + 1)]
        sums = [semiring.sum(torch.stack(both, -1), dim=-1) for both in zip(ways[1:], taken, strict=True)]
        ways = [ways[0], *sums]
    return ways[items.k]


def log_partition(items: Items) -> Tensor:
    """log Z in double precision."""
    return total(replace(items, scores=items.scores.double()), Log())


def marginals(items: Items) -> Tensor:
    """The probability that an item is chosen."""
    return posteriors(log_partition, items)


def path_score(items: Items, values: Tensor) -> Tensor:
    """The sum of the scores of the chosen items."""
    return torch.where(values.bool(), items.scores.double(), 0.0).sum(-1)


def decode(marks: Tensor, items: Items) -> Tensor:
    """1 at the items that were chosen."""
    return (marks > 0.5).long()


def example(scores: Scores) -> dict[str, Any]:
    """The arguments of a small distribution."""
    return {"scores": scores(2, 5), "k": 2}


_SOLVER = partial(Reference, sys.modules[__name__])  # no kernels: the reference is used everywhere
STRUCTURE = Structure("subset", _SOLVER, _SOLVER, example)


class Subset(StructuredDistribution):
    """p(S | x) over the subsets of exactly k of n items. A value is 1 at the chosen items, 0 elsewhere [..., batch, n].

    >>> Subset(torch.zeros(1, 5), k=2).count
    tensor([10.], dtype=torch.float64)
    """

    _structure = STRUCTURE
    _noun = "subset"
    _advice = "allow at least k items"

    def __init__(self, scores: Tensor, k: int, *, backend: Backend = "auto") -> None:
        if not 0 <= k <= scores.shape[-1]:
            raise ScoreError(f"k must lie in 0..{scores.shape[-1]}, the number of items; got {k}")
        self.scores, self.k = scores, k
        super().__init__(scores, scores.shape[:-1], scores.shape[-1:], backend)

    @cached_property
    def _parts(self) -> Items:  # type: ignore[override]
        return Items(self.scores.reshape(-1, self.scores.shape[-1]), self.k)

    def _read(self, value: Tensor, check: bool) -> Tensor:
        found = super()._read(value, check)
        if check and not bool(((found == 0) | (found == 1)).all() and (found.sum(-1) == self.k).all()):
            raise ScoreError(f"subsets must have 1 at exactly {self.k} items and 0 elsewhere; check the values")
        return found

    def _costs(self, costs: Tensor) -> tuple[Tensor]:
        return (costs.reshape(self._parts.scores.shape),)

    def constrain(self, partial: Tensor | None = None) -> Self:
        """`partial` is True at the items that may be chosen."""
        allowed = self.scores if partial is None else torch.where(partial, self.scores, -INF)
        return type(self)(allowed, self.k, backend=self.backend)

    def _divided(self, t: float) -> Self:
        return type(self)(self.scores / t, self.k, backend=self.backend)
