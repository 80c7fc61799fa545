"""Kernel = reference on graphs that are too large to enumerate, and what the elimination promises."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import CliqueTemplate, FactorGraph, LinearChain, unroll
from trelliswork.structures.factors.elimination import (
    cheapest_elimination,
    eliminate,
    junction_tree,
    min_fill,
    min_weight,
)
from trelliswork.structures.factors.graph import Graph

INF = float("inf")


def sparse_graph(
    seed: int, n: int = 40, scale: float = 1.0
) -> tuple[Tensor, list[tuple[tuple[int, ...], Tensor]], list[int]]:
    """A random tree with a few more edges and a clique of three, sizes 1 to 5, some -inf."""
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    sizes = [rng.randint(1, 5) for _ in range(n)]
    scopes: list[tuple[int, ...]] = [(rng.randrange(v), v) for v in range(1, n)]
    scopes += [(v, v + 3) for v in range(0, n - 3, 7)] + [(n - 1, 0, n // 2), (5,)]
    factors = []
    for scope in scopes:
        table = scale * torch.randn(2, *(sizes[v] for v in scope), generator=generator, dtype=torch.float64)
        closed = torch.rand(table.shape, generator=generator) < 0.03
        factors.append((scope, torch.where(closed, -INF, table)))
    return scale * torch.randn(2, n, 5, generator=generator, dtype=torch.float64), factors, sizes


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("seed", range(3))
def test_kernel_equals_reference(seed: int, scale: float) -> None:
    unary, factors, sizes = sparse_graph(seed, scale=scale)
    answers = []
    for backend in ("kernel", "torch"):
        leaf = unary.clone().requires_grad_()
        dist = FactorGraph(leaf, factors, sizes=sizes, backend=backend)
        (gradient,) = torch.autograd.grad((dist.log_partition * torch.tensor([2.0, -0.5])).sum(), leaf)
        answers.append([dist.log_partition, dist.marginals, dist.entropy(), gradient, *dist.factor_marginals])
        answers[-1].append(dist.top_k(7)[1])
        assert (dist.log_prob(dist.sample((3,), torch.Generator().manual_seed(0))) > -INF).all()
        torch.testing.assert_close(dist.score(dist.argmax), dist.top_k(1)[1][0])
    for mine, other in zip(*answers, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10 * max(1.0, scale))


def test_a_thousand_positions() -> None:
    emissions, transitions = (
        torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in ((1000, 3), (3, 3))
    )
    chain, graph = LinearChain(emissions, transitions), FactorGraph(emissions, [unroll(transitions, (0, 1), 1000)])
    torch.testing.assert_close(graph.log_partition, chain.log_partition)
    torch.testing.assert_close(graph.marginals, chain.marginals, rtol=1e-5, atol=1e-6)
    assert torch.equal(graph.argmax, chain.argmax)


@pytest.mark.parametrize("seed", range(3))
def test_the_junction_tree_has_the_running_intersection_property(seed: int) -> None:
    """The buckets of a variable are connected: all but one have a parent that contains it. Each factor has a bucket."""
    _, factors, sizes = sparse_graph(seed)
    tree = junction_tree(Graph(tuple(sizes), 5, tuple(scope for scope, _ in factors)))
    parent = {child: b for b, bucket in enumerate(tree.buckets) for child, _ in bucket.children}
    for variable in range(len(sizes)):
        holding = [b for b, bucket in enumerate(tree.buckets) if variable in bucket.scope]
        tops = [b for b in holding if b not in parent or variable not in tree.buckets[parent[b]].scope]
        assert len(tops) == 1
    assert sum(len(bucket.reads) - 1 for bucket in tree.buckets) == len(factors)
    assert sorted(tree.roots + tuple(parent)) == list(range(len(sizes)))


def test_the_cheaper_of_two_orders_is_taken() -> None:
    """A large hub with small leaves: no table holds two leaves, and the last one is left alone, not the hub."""
    hub = Graph((50, *[2] * 8), 50, tuple((0, leaf) for leaf in range(1, 9)))
    assert cheapest_elimination(hub).n_entries == 8 * 100 + 2 and cheapest_elimination(hub).width == 1
    for seed in range(5):
        _, factors, sizes = sparse_graph(seed)
        graph = Graph(tuple(sizes), 5, tuple(scope for scope, _ in factors))
        costs = [eliminate(graph, cost).n_entries for cost in (min_fill, min_weight)]
        assert cheapest_elimination(graph).n_entries == min(costs)


def test_a_cycle_has_width_two_and_a_grid_its_side() -> None:
    cycle = CliqueTemplate([(i, (i + 1) % 12) for i in range(12)], torch.zeros(2, 2))
    assert FactorGraph(torch.zeros(12, 2), [cycle]).tree_width == 2
    side = 5
    edges = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    edges += [(v, v + side) for v in range(side * (side - 1))]
    assert FactorGraph(torch.zeros(side**2, 2), [CliqueTemplate(edges, torch.zeros(2, 2))]).tree_width == side
