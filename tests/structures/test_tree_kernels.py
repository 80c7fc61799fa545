"""Kernels of dependency trees where the contract's small trees do not reach: long and wide rows, the loss in one go."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.contract.base import INF, close
from trelliswork.distributions import ProjectiveTree, SpanningTree, SpanTree
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.structures.arc_solver import ArcRows
from trelliswork.structures.projective import scaled_kernels
from trelliswork.structures.projective.kernels import log_row, workspace
from trelliswork.structures.projective.solver import FAMILY
from trelliswork.structures.spanning.log_kernels import log_row as log_spanning_row

both = pytest.mark.parametrize("family", [ProjectiveTree, SpanningTree])
either_root = pytest.mark.parametrize("single_root", [True, False])


def random_arcs(seed: int, n: int, scale: float = 1.0, batch: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(batch, n + 1, n + 1, generator=generator, dtype=torch.float64)


def in_log_space(arcs: Tensor, single_root: bool) -> tuple[float, Tensor]:
    """log Z and posteriors of one row without a scaled weight anywhere."""
    n = arcs.shape[1] - 1
    posteriors = np.zeros((n + 1, n + 1))
    given = ArcRows(arcs, torch.tensor([n]), single_root).arrays.scores[0]
    return log_row(given, n, int(single_root), workspace(n + 1), posteriors), torch.from_numpy(posteriors)


@either_root
@pytest.mark.parametrize(("n", "scale"), [(5, 1.0), (40, 1.0), (40, 8.0), (150, 1.0), (150, 1000.0), (260, 1.0)])
def test_exp_space_equals_log_space(n: int, scale: float, single_root: bool) -> None:
    arcs = random_arcs(n, n, scale)
    log_z, posteriors = in_log_space(arcs, single_root)
    trees = ProjectiveTree(arcs, single_root=single_root)
    close(trees.log_partition, [log_z])
    close(trees.marginals[0], posteriors)
    close(trees.marginals[0].sum(0)[1:], torch.ones(n, dtype=torch.float64))


def test_a_span_that_vanishes_but_is_the_only_way_is_seen() -> None:
    """Each word wants to be a root by 400 nats, but one only may: every span is e^-400 a word, all of Z lies there."""
    n = 12
    arcs = random_arcs(0, n)
    arcs[0, 0] += 400.0
    arcs[0, 1, 2:] -= 400.0
    arcs[0, 2, :] -= 400.0
    for single_root in (True, False):
        log_z, posteriors = in_log_space(arcs, single_root)
        trees = ProjectiveTree(arcs, single_root=single_root)
        close(trees.log_partition, [log_z])
        close(trees.marginals[0], posteriors)


def test_the_guard_sends_what_underflows_to_log_space() -> None:
    """A chain 1 -> 2 -> ... is forced although each word prefers the one behind it by 300 nats: weights of e^-300n."""
    n = 8
    arcs = torch.full((1, n + 1, n + 1), -INF, dtype=torch.float64)
    arcs[0, 0, 1] = 0.0
    for m in range(2, n + 1):
        arcs[0, m - 1, m] = 0.0
        arcs[0, n - m // 2, m] = 300.0 if n - m // 2 != m else -INF
    arcs[0, 2, 1] = 300.0
    log_z, posteriors = in_log_space(arcs, True)
    trees = ProjectiveTree(arcs)
    assert log_z > -INF
    close(trees.log_partition, [log_z])
    close(trees.marginals[0], posteriors)


def test_bounds_of_the_guard() -> None:
    """GROWTH^n is more than there are trees, and far from overflow for the longest row of exp space."""
    for n in (1, 2, 5, 20, 100):
        assert math.comb(3 * n + 1, n) // (3 * n + 1) < scaled_kernels.GROWTH**n
    assert scaled_kernels.GROWTH**scaled_kernels.LONGEST < 1e250
    assert scaled_kernels.TINY * scaled_kernels.GROWTH**scaled_kernels.LONGEST * scaled_kernels.MARGIN < 1.0


@both
@either_root
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_long_rows(family: type[DependencyTree], single_root: bool, scale: float) -> None:
    """Kernel and reference agree on sums; the best tree is no worse than samples, and most of Z if scores are wide."""
    arcs = random_arcs(3, 150, scale)
    arcs[torch.rand(arcs.shape, generator=torch.Generator().manual_seed(4)) < 0.3] = -INF
    arcs[0, 0, 1:] = arcs[0, 0, 1:].clamp(min=-scale)
    trees = family(arcs, single_root=single_root)
    plain = family(arcs, single_root=single_root, backend="torch")
    close(trees.log_partition, plain.log_partition)
    best = trees.score(trees.argmax)
    assert best <= trees.log_partition + 1e-9
    assert (trees.score(trees.sample((5,))) <= best).all()
    assert scale == 1.0 or trees.log_partition - best < 5.0


@either_root
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_spanning_trees_in_log_space(scale: float, single_root: bool) -> None:
    """The kernel of wide rows against the reference, on rows that are wide and others that are not."""
    arcs = random_arcs(10, 24, scale)
    arcs[torch.rand(arcs.shape, generator=torch.Generator().manual_seed(11)) < 0.2] = -INF
    given, posteriors = ArcRows(arcs, torch.tensor([24]), single_root).arrays.scores[0], np.zeros((25, 25))
    plain = SpanningTree(arcs, single_root=single_root, backend="torch")
    log_z = log_spanning_row(given, 24, int(single_root), posteriors)
    close(torch.tensor([log_z], dtype=torch.float64), plain.log_partition)
    assert log_spanning_row(given, 24, int(single_root), np.zeros((0, 0))) == log_z
    close(torch.from_numpy(posteriors), plain.marginals[0])


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_in_one_go_is_score_less_log_partition(family: type[DependencyTree], dtype: torch.dtype) -> None:
    arcs = random_arcs(5, 9, batch=3).to(dtype)
    lengths = torch.tensor([9, 1, 6])
    gold = family(random_arcs(6, 9, batch=3), lengths=lengths).argmax
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=dtype)
    gradients = []
    for by_parts in (True, False):
        leaf = arcs.clone().requires_grad_()
        trees = family(leaf, lengths=lengths)
        log_prob = trees.score(gold) - trees.log_partition if by_parts else trees.log_prob(gold)
        (log_prob * weights).sum().backward()
        gradients.append((log_prob.detach(), leaf.grad))
    close(gradients[0][0], gradients[1][0], dtype)
    close(gradients[0][1], gradients[1][1], dtype)


@both
def test_a_forbidden_gold_arc_has_gradient_zero_and_leaves_others_alone(family: type[DependencyTree]) -> None:
    arcs = random_arcs(7, 4, batch=2)
    gold = family(arcs).argmax
    arcs[0, gold[0, 2], 3] = -INF
    leaf = arcs.clone().requires_grad_()
    log_prob = family(leaf).log_prob(gold)
    assert log_prob[0].item() == -INF
    log_prob.sum().backward()
    assert leaf.grad is not None
    assert (leaf.grad[0] == 0).all()
    assert (leaf.grad[1] != 0).any()


@both
def test_two_threads_give_the_same(family: type[DependencyTree]) -> None:
    arcs = random_arcs(8, 70, batch=24)
    one = family(arcs)
    expected = one.marginals, one.argmax
    torch.set_num_threads(2)
    try:
        assert torch.equal(family(arcs).marginals, expected[0])
        assert torch.equal(family(arcs).argmax, expected[1])
    finally:
        torch.set_num_threads(1)


@either_root
@both
@pytest.mark.parametrize("too_wide", [False, True])
def test_parts_of_samples_have_their_posteriors(
    family: type[DependencyTree], single_root: bool, too_wide: bool
) -> None:
    """If too wide, two words want each other as heads by 750 nats: in exp space every tree vanishes."""
    n, n_samples = 7, 20_000
    arcs = random_arcs(11, n)
    if too_wide:
        arcs[0, 3, 4] += 750.0
        arcs[0, 4, 3] += 750.0
    trees = family(arcs, single_root=single_root)
    heads = trees.sample((n_samples,), generator=torch.Generator().manual_seed(2))[:, 0]
    counts = torch.stack([(heads == h).sum(0) for h in range(n + 1)])
    expected = trees.marginals[0, :, 1:]
    assert (counts - n_samples * expected).abs().le(6 * (n_samples * expected * (1 - expected)).sqrt() + 1e-6).all()
    assert trees.log_prob(heads[:50, None]).isfinite().all()


@pytest.mark.parametrize("too_wide", [False, True])
def test_nodes_of_samples_have_their_posteriors(too_wide: bool) -> None:
    """If too wide, a tree has one of two spans 750 nats above all others that cross: it vanishes in exp space."""
    n, n_samples = 6, 20_000
    spans = torch.randn(1, n, n, 3, generator=torch.Generator().manual_seed(12), dtype=torch.float64)
    if too_wide:
        spans[0, 1, 3] += 750.0
        spans[0, 2, 4] += 750.0
    trees = SpanTree(spans)
    assert trees._solver.run.is_scaled.tolist() == [not too_wide]
    nodes = trees.sample_nodes((n_samples,), generator=torch.Generator().manual_seed(3))
    counts, expected = trees.to_parts(nodes).sum(0), trees.marginals
    assert (counts - n_samples * expected).abs().le(6 * (n_samples * expected * (1 - expected)).sqrt() + 1e-6).all()


def test_sums_without_marginals_make_no_array() -> None:
    assert FAMILY.run_sums(ArcRows(random_arcs(9, 5), torch.tensor([5])).arrays, False)[1].size == 0
