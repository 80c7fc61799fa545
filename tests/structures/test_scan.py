"""Sums in few steps (`scan.py` of chains and segments) are those of the loop over positions, for every semiring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from benchmarks.launches import launches
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trelliswork.distributions import LinearChain, SemiMarkov
from trelliswork.semirings import Boolean, Counting, Expectation, KBest, Log, Max, Real, Sampling, Semiring, Tropical
from trelliswork.structures.chain import scan, structure
from trelliswork.structures.chain.structure import Chain
from trelliswork.structures.segments import structure as segmentations
from trelliswork.structures.segments.structure import Segments

INF = float("inf")
SEMIRINGS: tuple[Semiring, ...] = (
    Log(), Max(), KBest(3), Counting(), Boolean(), Real(), Tropical(), Expectation(), Sampling(),
)  # fmt: skip


def randoms(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def chain(n: int, by_position: bool, c: int = 3) -> Chain:
    """Ragged rows, one of length 1, with -inf and with what is no number where nothing is read."""
    emissions, start = randoms(3, n, c), randoms(c, seed=1)
    lengths = torch.tensor([n, max(1, n - 2), 1])
    emissions[0, n // 2, 1] = start[2] = -INF
    emissions[torch.arange(n) >= lengths[:, None]] = torch.nan
    transitions = randoms(3, n - 1, c, c) if by_position else randoms(c, c, seed=2)
    transitions[..., 0, 1] = -INF
    return Chain(emissions, transitions, start, randoms(c, seed=3), lengths)


def segments(n: int, k: int, with_arcs: bool) -> Segments:
    scores, arcs = randoms(3, n, k, 2), randoms(2, 2, seed=2)
    scores[0, n // 2, 0, 1] = arcs[0, 1] = -INF
    lengths = torch.tensor([n, max(1, n - 2), 1])
    return Segments(scores, arcs if with_arcs else None, randoms(2, seed=3), randoms(2, seed=4), lengths)


def both_ways(ask: Callable[[], Any]) -> list[Any]:
    """An answer by the loop and by the scan."""
    answers = []
    for kind in ("never", "always"):
        with scan.chosen_as_on(kind):
            answers.append(ask())
    return answers


def same(loop: Tensor, scanned: Tensor) -> None:
    assert loop.shape == scanned.shape and loop.dtype == scanned.dtype
    assert torch.allclose(loop.double(), scanned.double(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("by_position", [False, True])
def test_chains(n: int, by_position: bool) -> None:
    parts = chain(n, by_position)
    costs = parts.with_scores(*(torch.where(each > -INF, each, 0.0) for each in parts.scores))
    for semiring in SEMIRINGS:
        same(*both_ways(lambda semiring=semiring: structure.total(parts, semiring)))  # type: ignore[misc]
    same(*both_ways(lambda: structure.total(parts, Expectation(), costs)))
    for semiring in (Log(), Max(), KBest(2), Counting()):
        for direction in (structure.forward, structure.backward):
            tables = both_ways(lambda semiring=semiring, direction=direction: direction(parts, semiring))  # type: ignore[misc]
            real = parts.token_mask.T  # behind a row's end the loop keeps what the scan may not
            for loop, scanned, valid in zip(*tables, real, strict=True):
                same(loop[..., valid, :], scanned[..., valid, :])
    for query in (structure.marginals, structure.viterbi):
        for loop, scanned in zip(*both_ways(lambda query=query: query(parts)), strict=True):  # type: ignore[misc]
            same(loop, scanned)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (8, 3), (9, 4), (13, 2), (4, 6)])
@pytest.mark.parametrize("with_arcs", [True, False])
def test_segments(n: int, k: int, with_arcs: bool) -> None:
    parts = segments(n, k, with_arcs)
    for semiring in SEMIRINGS:
        same(*both_ways(lambda semiring=semiring: segmentations.total(parts, semiring)))  # type: ignore[misc]

    def marks() -> Tensor:
        leaf = parts.detached()
        (gradient,) = torch.autograd.grad(segmentations.total(leaf, Log()).sum(), leaf.segments)
        return gradient

    same(*both_ways(marks))


def test_derivatives_of_both_orders() -> None:
    """With -inf among the scores, as constants."""
    parts = chain(5, False)
    emissions = torch.where(parts.token_mask[..., None], parts.emissions, 0.0)

    def log_z(scores: Tensor, arcs: Tensor) -> Tensor:
        moved = torch.where(emissions > -INF, scores, -INF)
        forbidden = torch.where(parts.transitions > -INF, arcs, -INF)
        return structure.log_partition(parts.with_scores(moved, forbidden, parts.start, parts.end))

    given = torch.where(emissions > -INF, emissions, 0.0), torch.where(parts.transitions > -INF, parts.transitions, 0.0)
    leaves = tuple(each.requires_grad_() for each in given)
    with scan.chosen_as_on("always"):
        assert gradcheck(log_z, leaves) and gradgradcheck(log_z, leaves)


def test_samples_of_the_scan_have_their_probabilities() -> None:
    scores = randoms(1, 5, 2), randoms(2, 2, seed=1)
    with scan.chosen_as_on("always"):
        dist = LinearChain(*scores, backend="torch")
        drawn = dist.sample((4000,), generator=torch.Generator().manual_seed(2))
        frequency = torch.nn.functional.one_hot(drawn, 2).double().mean(0)
        assert torch.allclose(frequency, dist.marginals, atol=0.03)


def test_few_operations_are_launched() -> None:
    """Of long rows, as on another device; the page of results has the sizes of the others."""
    emissions, arcs = randoms(2, 64, 4).requires_grad_(), randoms(4, 4).requires_grad_()
    tags = torch.zeros(2, 64, dtype=torch.long)
    pieces = randoms(2, 64, 4, 3).requires_grad_()
    with scan.chosen_as_on("other"):
        assert launches(lambda: (-LinearChain(emissions, arcs, backend="torch").log_prob(tags).sum()).backward()) <= 200
        assert launches(lambda: LinearChain(emissions, arcs, backend="torch").argmax) <= 200
        assert launches(lambda: SemiMarkov(pieces, backend="torch").log_partition.sum().backward()) <= 330


def test_what_is_too_large_is_left_to_the_loop() -> None:
    small, wide = chain(8, False), chain(8, False, c=120)
    with scan.chosen_as_on("other"):
        assert scan.applies(small, Log()) and not scan.applies(wide, Log())
        assert not scan.applies(small, KBest(500)) and not scan.applies(chain(3, False), Log())
    with scan.chosen_as_on("cpu"):
        assert not scan.applies(chain(8, False, c=20), Log())
