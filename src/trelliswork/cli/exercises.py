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


def _automata(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions.acceptor import Acceptor

    return Acceptor([(0, 1, "a"), (0, 1, "b"), (1, 2, "a")], zeros(3), final=2)


def _chain(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import LinearChain

    return LinearChain(zeros(2, 3, 2), zeros(2, 2))


def _constituency(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import SpanTree

    return SpanTree(zeros(2, 3, 3, 2))


def _ctc(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import CTC

    return CTC(zeros(2, 4, 3)).given([[1, 2], [1]])


def _edit(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import EditAlignment

    return EditAlignment(zeros(2, 3, 3, 3))


def _factors(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions import FactorGraph

    return FactorGraph(zeros(2, 3, 2), [((0, 1), zeros(2, 2)), ((1, 2), zeros(2, 2))])


def _grammar(zeros: Zeros) -> StructuredDistribution:
    from trelliswork.distributions.weighted_cfg import WeightedCFG
    from trelliswork.structures.grammar.grammar import Grammar

    return WeightedCFG(Grammar.from_rules("S -> S S 1 | 'a' 1"), lexical=zeros(2, 3, 1))


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
    "automata": _automata,
    "chain": _chain,
    "constituency": _constituency,
    "ctc": _ctc,
    "edit": _edit,
    "factors": _factors,
    "grammar": _grammar,
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
    import torch

    answers = dist.log_prob(dist.argmax), dist.log_partition, dist.entropy(), dist.marginals
    torch.stack([answer.sum() for answer in answers]).sum().backward()
    dist.top_k(2)
    dist.sample((2,))
    dist.constrain(None).count  # noqa: B018, the query is what compiles
