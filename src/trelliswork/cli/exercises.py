"""One small distribution of every structure, and all its queries: what `trelliswork warmup --all` runs to compile.

A new structure adds a line to `EVERY_STRUCTURE`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from trelliswork.distributions import StructuredDistribution

Zeros = Callable[..., "torch.Tensor"]


def _chain(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import LinearChain

    return LinearChain(zeros(2, 3, 2), zeros(2, 2))


def _projective(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import ProjectiveTree

    return ProjectiveTree(zeros(2, 4, 4))


def _segments(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import SemiMarkov

    return SemiMarkov(zeros(2, 3, 2, 2), zeros(2, 2))


def _spanning(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import SpanningTree

    return SpanningTree(zeros(2, 4, 4), zeros(2, 4, 4, 2))  # with labels: their kernels, too


EVERY_STRUCTURE: dict[str, Callable[[Zeros], StructuredDistribution]] = {
    "chain": _chain,
    "projective": _projective,
    "segments": _segments,
    "spanning": _spanning,
}


def exercise_all() -> Iterator[tuple[str, float]]:
    """Run every query of every structure in float32 and float64; (name, seconds) as each is done."""
    import torch

    for name, build in EVERY_STRUCTURE.items():
        began = time.perf_counter()
        for dtype in (torch.float32, torch.float64):

            def zeros(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
                return torch.zeros(shape, dtype=dtype, requires_grad=True)

            _ask_everything(build(zeros))
        yield name, time.perf_counter() - began


def _ask_everything(dist: StructuredDistribution) -> None:
    best = dist.argmax
    dist.log_prob(best).sum().backward()
    (dist.log_partition.sum() + dist.entropy().sum() + dist.marginals.sum()).backward()
    dist.top_k(2)
    dist.sample((2,))
    dist.constrain(None).count  # noqa: B018, the query is what compiles
