"""Every query of `ProjectiveTree` against enumeration: the generic contract, then what only projective trees have."""

from __future__ import annotations

import math

import pytest
import torch

from tests.contract.base import BACKENDS, INF, Instance, close
from tests.contract.dependencies import DependencyContract
from trelliswork.distributions import ProjectiveTree, SpanningTree, kl_divergence
from trelliswork.errors import ScoreError


class TestProjectiveTree(DependencyContract):
    projective = True

    def build(self, instance: Instance, backend: str) -> ProjectiveTree:
        return ProjectiveTree(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]

    def test_expected_costs(self, instance: Instance, backend: str) -> None:
        costs = torch.rand(instance.scores["arcs"].shape, generator=torch.Generator().manual_seed(3))
        wanted = (self.enumerated_marginals(instance) * costs).flatten(-2).sum(-1)
        close(self.build(instance, backend).expected(costs), wanted)


every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_backend
@pytest.mark.parametrize("single_root", [True, False])
def test_one_word(backend: str, single_root: bool) -> None:
    trees = ProjectiveTree(torch.tensor([[[9.0, 2.0], [9.0, 9.0]]]), single_root=single_root, backend=backend)
    assert trees.log_partition.item() == 2.0
    assert trees.argmax.tolist() == trees.sample().tolist() == [[0]]
    assert trees.count.item() == 1
    assert trees.marginals.tolist() == [[[0.0, 1.0], [0.0, 0.0]]]


@every_backend
@pytest.mark.parametrize(("n", "single", "multi"), [(1, 1, 1), (2, 2, 3), (3, 7, 12), (4, 30, 55), (5, 143, 273)])
def test_counts_of_trees(n: int, single: int, multi: int, backend: str) -> None:
    """binomial(3n - 2, n - 1) / n trees with one root word, binomial(3n + 1, n) / (3n + 1) with any number."""
    assert (single, multi) == (math.comb(3 * n - 2, n - 1) // n, math.comb(3 * n + 1, n) // (3 * n + 1))
    arcs = torch.zeros(1, n + 1, n + 1)
    assert ProjectiveTree(arcs, backend=backend).count.item() == single
    assert ProjectiveTree(arcs, single_root=False, backend=backend).count.item() == multi


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_kernel_and_reference_agree_on_long_rows_of_any_range(scale: float, single_root: bool) -> None:
    generator = torch.Generator().manual_seed(int(scale))
    arcs = scale * torch.randn(3, 21, 21, generator=generator, dtype=torch.float64)
    arcs[torch.rand(arcs.shape, generator=generator) < 0.2] = -INF
    lengths = torch.tensor([20, 13, 2])
    fast, plain = (ProjectiveTree(arcs, lengths=lengths, single_root=single_root, backend=each) for each in BACKENDS)
    close(fast.log_partition, plain.log_partition)
    close(fast.marginals, plain.marginals)
    possible = fast.log_partition > -INF
    best, possible_too = fast._solver.best()
    other, _ = plain._solver.best()
    assert torch.equal(possible, possible_too)
    assert torch.equal(best[possible], other[possible])


def test_projective_trees_are_fewer_and_no_better() -> None:
    arcs = torch.randn(4, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    projective, spanning = ProjectiveTree(arcs), SpanningTree(arcs)
    assert (projective.log_partition < spanning.log_partition).all()
    assert (projective.score(projective.argmax) <= spanning.score(spanning.argmax) + 1e-12).all()
    spanning.log_prob(projective.sample((5,)))


def test_crossing_arcs_are_an_error() -> None:
    crossing = torch.tensor([[3, 0, 2, 2]])
    SpanningTree(torch.zeros(1, 5, 5)).log_prob(crossing)
    with pytest.raises(ScoreError, match=r"projective tree \(no arcs cross\).*got \[3, 0, 2, 2\] at row 0"):
        ProjectiveTree(torch.zeros(1, 5, 5)).log_prob(crossing)


def test_kl_needs_the_same_family() -> None:
    with pytest.raises(ScoreError, match="same family"):
        kl_divergence(ProjectiveTree(torch.zeros(1, 4, 4)), SpanningTree(torch.zeros(1, 4, 4)))
