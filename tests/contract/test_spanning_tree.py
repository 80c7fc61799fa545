"""Every query of `SpanningTree` against enumeration: the generic contract, then what only spanning trees have."""

from __future__ import annotations

import math

import pytest
import torch

from tests.contract import dependencies
from tests.contract.base import BACKENDS, INF, Instance, close, log_sum
from tests.contract.dependencies import DependencyContract
from trelliswork.distributions import SpanningTree, kl_divergence
from trelliswork.errors import ScoreError
from trelliswork.structures.spanning import structure


class TestSpanningTree(DependencyContract):
    projective = False

    def build(self, instance: Instance, backend: str) -> SpanningTree:
        return SpanningTree(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]

    def test_expected_costs(self, instance: Instance, backend: str) -> None:
        costs = torch.rand(instance.scores["arcs"].shape, generator=torch.Generator().manual_seed(3))
        wanted = (self.enumerated_marginals(instance) * costs).flatten(-2).sum(-1)
        close(self.build(instance, backend).expected(costs), wanted)


every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_backend
@pytest.mark.parametrize("single_root", [True, False])
def test_one_word(backend: str, single_root: bool) -> None:
    trees = SpanningTree(torch.tensor([[[9.0, 2.0], [9.0, 9.0]]]), single_root=single_root, backend=backend)
    assert trees.log_partition.item() == 2.0
    assert trees.argmax.tolist() == trees.sample().tolist() == [[0]]
    assert trees.count.item() == 1
    assert trees.entropy().item() == 0.0
    assert trees.marginals.tolist() == [[[0.0, 1.0], [0.0, 0.0]]]


@every_backend
@pytest.mark.parametrize("n", [2, 5, 8, 10])
def test_counts_of_trees(n: int, backend: str) -> None:
    """n^(n-1) trees with one root word, (n+1)^(n-1) with any number (Cayley)."""
    arcs = torch.zeros(1, n + 1, n + 1, dtype=torch.float64)
    assert SpanningTree(arcs, backend=backend).count.item() == n ** (n - 1)
    close(SpanningTree(arcs, backend=backend).log_partition, [(n - 1) * math.log(n)])
    assert SpanningTree(arcs, single_root=False, backend=backend).count.item() == (n + 1) ** (n - 1)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_kernel_and_reference_agree_on_long_rows_of_any_range(scale: float, single_root: bool) -> None:
    generator = torch.Generator().manual_seed(int(scale))
    arcs = scale * torch.randn(3, 31, 31, generator=generator, dtype=torch.float64)
    arcs[torch.rand(arcs.shape, generator=generator) < 0.3] = -INF
    fast, plain = (
        SpanningTree(arcs, lengths=torch.tensor([30, 17, 2]), single_root=single_root, backend=each)
        for each in BACKENDS
    )
    close(fast.log_partition, plain.log_partition)
    close(fast.marginals, plain.marginals)
    words = torch.arange(1, 31) <= torch.tensor([30, 17, 2])[:, None]
    possible = (fast.log_partition > -INF)[:, None]
    close(fast.marginals.sum(1)[:, 1:], (words & possible).double())


def test_the_determinant_agrees_where_it_is_well_conditioned() -> None:
    arcs = torch.randn(1, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    close(SpanningTree(arcs).log_partition[0], structure.laplacian(arcs[0].exp()).logdet())


def test_the_determinant_loses_what_elimination_keeps() -> None:
    """Two words that prefer each other by 400 nats: the Laplacian rounds to a singular matrix."""
    arcs = torch.zeros(1, 4, 4, dtype=torch.float64)
    arcs[0, 1, 2] = arcs[0, 2, 1] = 400.0
    multi = SpanningTree(arcs, single_root=False)
    weights = arcs[0].exp()
    words = weights[1:, 1:] - torch.diag(weights[1:, 1:].diagonal())
    printed = torch.diag(weights[0, 1:] + words.sum(0)) - words
    assert not math.isclose(float(printed.logdet()), float(multi.log_partition), rel_tol=1e-6)
    support = dependencies.support(Instance({"arcs": arcs}, {"single_root": torch.tensor(False)}), 0, False)
    close(multi.log_partition, [log_sum(list(support.values()))])


def test_the_single_root_optimum_is_not_the_greedy_repair() -> None:
    """The best tree with any number of roots, with all but its best root arc taken away, is not the best one."""
    worse = 0
    for seed in range(200):
        arcs = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        arcs[:, 0] += 1.5
        free = SpanningTree(arcs, single_root=False).argmax[0]
        roots = (free == 0).nonzero().flatten()
        keep = int(roots[arcs[0, 0, 1 + roots].argmax()])
        allowed = torch.ones(1, 6, 6, dtype=torch.bool)
        allowed[0, 0] = False
        allowed[0, 0, keep + 1] = True
        repaired = SpanningTree(arcs).constrain(allowed)
        trees = SpanningTree(arcs)
        best = trees.score(trees.argmax)
        assert (best >= repaired.score(repaired.argmax) - 1e-12).all()
        worse += bool(best > repaired.score(repaired.argmax) + 1e-9)
    assert worse > 10


def test_many_best_trees_come_in_order_without_duplicates() -> None:
    arcs = torch.randn(1, 13, 13, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    trees = SpanningTree(arcs)
    values, scores = trees.top_k(60)
    assert len({tuple(heads) for heads in values[:, 0].tolist()}) == 60
    assert (scores[1:] <= scores[:-1] + 1e-12).all()
    close(trees.score(values)[:, 0], scores[:, 0])


def test_samples_of_long_wide_rows_have_the_right_arcs() -> None:
    """Where two words prefer each other by 200 nats, a random walk would go round forever; this draws at once."""
    arcs = torch.randn(1, 13, 13, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    arcs[0, 1, 2] = arcs[0, 2, 1] = 200.0
    for single_root in (True, False):
        trees = SpanningTree(arcs, single_root=single_root)
        drawn = trees.sample((4000,), generator=torch.Generator().manual_seed(0))[:, 0]
        frequencies = torch.nn.functional.one_hot(drawn, 13).double().mean(0).T  # [head, word - 1]
        assert (frequencies - trees.marginals[0, :, 1:]).abs().max() < 5 * math.sqrt(0.25 / 4000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(arcs=torch.zeros(2, 3, 4)), r"arcs must be \[batch, n\+1, n\+1\]"),
        (dict(arcs=torch.zeros(2, 1, 1)), "n >= 1 words"),
        (dict(arcs=torch.zeros(2, 3, 3, dtype=torch.long)), "floating point"),
        (dict(arcs=torch.full((2, 3, 3), math.nan)), "got nan at row 0, head 0, dependent 1"),
        (dict(arcs=torch.full((2, 3, 3), INF)), "got inf at row 0"),
        (dict(arcs=torch.zeros(2, 3, 3), lengths=torch.tensor([2, 3])), r"lengths must lie in 1\.\.2; got 3 at row 1"),
        (dict(arcs=torch.zeros(2, 3, 3), lengths=torch.tensor([2])), "whole numbers of shape"),
        (dict(arcs=torch.zeros(2, 3, 3), backend="gpu"), "backend must be"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SpanningTree(**arguments)  # type: ignore[arg-type]


def test_what_is_never_read_may_be_anything() -> None:
    arcs = torch.zeros(1, 4, 4)
    arcs[:, :, 0] = math.nan
    arcs[:, 3, :] = arcs[:, :, 3] = math.nan
    assert SpanningTree(arcs, lengths=torch.tensor([2])).count.item() == 2


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 1, 0], r"heads must be a tree.*got \[2, 1, 0\] at row 0"),
        ([0, 0, 1], "exactly one word with head 0"),
        ([0, 4, 1], r"heads must lie in 0\.\.3; got 4 at row 0, word 2"),
    ],
)
def test_heads_that_are_no_tree_are_an_error(heads: list[int], message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SpanningTree(torch.zeros(1, 4, 4)).log_prob(torch.tensor([heads]))


def test_other_queries_refuse_what_does_not_fit() -> None:
    trees = SpanningTree(torch.zeros(1, 4, 4))
    with pytest.raises(ScoreError, match="k must be at least 1"):
        trees.top_k(0)
    with pytest.raises(ScoreError, match="an arc leads from"):
        trees.arc_probability(0, 0)
    with pytest.raises(ScoreError, match="costs must be"):
        trees.expected(torch.zeros(1, 3, 3))
    with pytest.raises(ScoreError, match="allowed arcs must be"):
        trees.constrain(torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(ScoreError, match=r"partial heads must lie in 0\.\.3"):
        trees.constrain(torch.tensor([[0, 4, 1]]))
    with pytest.raises(ScoreError, match="same family and root"):
        kl_divergence(trees, SpanningTree(torch.zeros(1, 4, 4), single_root=False))
    close(trees.arc_probability(0, 2), [1 / 3])


def test_expand_repeats_rows() -> None:
    trees = SpanningTree(torch.randn(1, 4, 4), lengths=torch.tensor([3]))
    wide = trees.expand((2, 3))
    assert wide.batch_shape == (2, 3)
    assert torch.equal(wide.log_partition, trees.log_partition.expand(2, 3))
