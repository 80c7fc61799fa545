"""Every query of `FactorGraph` against enumeration: the generic contract, then what only factor graphs have."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import graphs
from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close
from trelliswork.distributions import CliqueTemplate, FactorGraph, LinearChain, factorial_chain, skip_chain, unroll
from trelliswork.errors import ScoreError

both_backends = pytest.mark.parametrize("backend", BACKENDS)


class TestFactorGraph(StructureContract):
    gradient_of = "unary"

    def instances(self) -> dict[str, Instance]:
        return graphs.many()

    def small_instances(self) -> dict[str, Instance]:
        return graphs.small()

    def impossible(self) -> tuple[Instance, int]:
        closed = graphs.graph(21, (3,), c=2, shared={"pair": graphs.CYCLE})
        return graphs.with_forbidden(closed, unary=[(1, 0, 0), (1, 1, 0)], **{"shared pair": [(1, 1)]}), 1

    def build(self, instance: Instance, backend: str) -> FactorGraph:
        factors = [
            CliqueTemplate(graphs.cliques(instance, name), instance.scores[name], name.startswith("each"))
            for name in graphs.names(instance)
        ]
        options: dict[str, Any] = {name: instance.options.get(name) for name in ("sizes", "mask")}
        return FactorGraph(instance.scores["unary"], factors, **options, backend=backend)

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return graphs.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return graphs.n_rows(instance)

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        return [tuple(row) for row in value.reshape(-1, value.shape[-1]).tolist()]

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        values = torch.tensor(plain)
        values = torch.where(graphs.present(instance), values, -7)  # not read
        return values.reshape(instance.scores["unary"].shape[:-1])

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["unary"].shape[-2:], dtype=torch.float64)
        for variable, value in enumerate(plain):
            marks[variable, value] = float(graphs.present(instance)[row, variable])
        return marks

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        """The last variable is known; or all but the best value of the last one are allowed."""
        supports, n = self.supports(instance), instance.scores["unary"].shape[-2]
        best = [max(each.items(), key=lambda pair: pair[1])[0] if each else (0,) * n for each in supports]
        known = torch.full((self.n_rows(instance), n), -100)
        known[:, -1] = torch.tensor([values[-1] for values in best])
        shape = instance.scores["unary"].shape
        allowed = torch.ones(self.n_rows(instance), *shape[-2:], dtype=torch.bool)
        for row, values in enumerate(best):
            allowed[row, -1, values[-1]] = False
        return [
            PartialKnowledge(known.reshape(shape[:-1]), lambda row, value: value[-1] == best[row][-1]),
            PartialKnowledge(allowed.reshape(shape), lambda row, value: value[-1] != best[row][-1]),
        ]

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        moved = instance.with_scores(unary=instance.scores["unary"] + by)
        return moved, [by * int(row.sum()) for row in graphs.present(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        n_batch_axes = instance.scores["unary"].dim() - 2
        scores, options = {}, dict(instance.options)
        for name, part in instance.scores.items():
            scores[name] = (
                part if name.startswith("shared") else part.reshape(-1, *part.shape[n_batch_axes:])[row][None]
            )
        if "mask" in options:
            options["mask"] = graphs.present(instance)[row][None]
        return Instance(scores, options)

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        unary = instance.scores["unary"]
        changed = {"unary": torch.where(graphs.read(instance).reshape(unary.shape), unary, garbage)}
        for name in graphs.names(instance):
            part = instance.scores[name]
            if name.startswith("each"):
                complete = graphs.present(instance)[:, torch.tensor(graphs.cliques(instance, name))].all(-1)
                m = len(graphs.cliques(instance, name)[0])
                complete = complete.reshape(*part.shape[: part.dim() - m], *[1] * m)
                changed[name] = torch.where(complete, part, garbage)
        return instance.with_scores(**changed)

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        unary, variable = instance.scores["unary"].clone(), int(graphs.present(instance)[row].int().argmax())
        unary.reshape(-1, *unary.shape[-2:])[row, variable, plain[variable]] = -INF
        return instance.with_scores(unary=unary)

    # --- beyond the contract ---------------------------------------------------------------------------------

    def test_factor_marginals(self, instance: Instance, backend: str) -> None:
        found = self.build(instance, backend).factor_marginals
        for name, tables in zip(graphs.names(instance), found, strict=True):
            cliques = graphs.cliques(instance, name)
            tables = tables.reshape(self.n_rows(instance), len(cliques), *tables.shape[-len(cliques[0]) :])
            wanted = torch.zeros(tables.shape, dtype=torch.float64)
            for row in range(self.n_rows(instance)):
                for place, clique in enumerate(cliques):
                    if all(graphs.present(instance)[row, variable] for variable in clique):
                        for values, p in self.probabilities(instance, row).items():
                            wanted[(row, place, *(values[variable] for variable in clique))] += p
            close(tables, wanted)

    def test_the_gradient_by_a_template_sums_over_its_cliques(self, instance: Instance, backend: str) -> None:
        """[S4.78-79]: tied parameters; and scores by clique keep theirs apart."""
        leaves = instance.leaves()
        dist = self.build(leaves, backend)
        dist.log_partition.sum().backward()
        for name, tables in zip(graphs.names(instance), dist.factor_marginals, strict=True):
            m = len(graphs.cliques(instance, name)[0])
            wanted = tables.flatten(0, -m - 1).sum(0) if name.startswith("shared") else tables
            gradient = leaves.scores[name].grad
            assert gradient is not None
            close(gradient, wanted.detach())

    def test_expected_costs(self, instance: Instance, backend: str) -> None:
        dist, costs = self.build(instance, backend), instance.perturbed(3).mapped(lambda part: part.clamp(min=-5.0))
        wanted = []
        for row in range(self.n_rows(instance)):
            priced = graphs.support(costs, row)
            wanted.append(math.fsum(p * priced[value] for value, p in self.probabilities(instance, row).items()))
        found = dist.expected(costs.scores["unary"], [costs.scores[name] for name in graphs.names(instance)])
        close(found, wanted, magnitude=max(map(abs, wanted)))

    def test_probability_of_known_values(self, instance: Instance, backend: str) -> None:
        last = instance.scores["unary"].shape[-2] - 1
        found = self.build(instance, backend).probability({0: 0, last: 0}).reshape(-1)
        for row in range(self.n_rows(instance)):
            wanted = sum(p for value, p in self.probabilities(instance, row).items() if value[0] == value[last] == 0)
            close(found[row], [min(wanted, 1.0)])


def scores(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@both_backends
def test_a_chain_is_a_linear_chain(backend: str) -> None:
    emissions, transitions, lengths = scores(3, 6, 4), scores(4, 4, seed=1), torch.tensor([6, 1, 4])
    mask = torch.arange(6) < lengths[:, None]
    leaves = [[each.clone().requires_grad_() for each in (emissions, transitions)] for _ in range(2)]
    chain = LinearChain(*leaves[0], lengths=lengths)
    graph = FactorGraph(leaves[1][0], [unroll(leaves[1][1], (0, 1), 6)], mask=mask, backend=backend)
    assert graph.tree_width == 1
    for query in ("log_partition", "marginals", "count"):
        close(getattr(graph, query), getattr(chain, query))
    close(graph.entropy(), chain.entropy())
    assert torch.equal(graph.argmax, chain.argmax)
    assert torch.equal(graph.top_k(4)[0], chain.top_k(4)[0])
    for dist in (chain, graph):
        dist.log_prob(chain.argmax).sum().backward()
    for mine, other in zip(leaves[1], leaves[0], strict=True):
        assert mine.grad is not None and other.grad is not None
        close(mine.grad, other.grad)


def test_a_skip_chain_joins_neighbouring_mentions() -> None:
    chain, skip = skip_chain(scores(2, 2), scores(2, 2), ["Smith", None, "Jones", "Smith", None, "Smith"])
    assert chain.cliques == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    assert skip.cliques == ((0, 3), (3, 5))
    assert len(skip_chain(scores(2, 2), scores(2, 2), ["a", None, "b"])) == 1


def test_a_factorial_chain_is_one_chain_over_pairs() -> None:
    """Two chains of 2 and 3 values, tied at each position, are one chain of 6 values."""
    n, first, second, across = 4, scores(2, 2), scores(3, 3, seed=1), scores(2, 3, seed=2)
    unary = scores(2 * n, 3, seed=3)
    graph = FactorGraph(unary, factorial_chain(n, [first, second], [across]), sizes=[2, 3] * n)
    pairs = unary[0::2, :2, None] + unary[1::2, None, :] + across
    arcs = first[:, None, :, None] + second[None, :, None, :]
    chain = LinearChain(pairs.reshape(n, 6), arcs.reshape(6, 6))
    close(graph.log_partition, chain.log_partition)
    joint = chain.marginals.reshape(n, 2, 3)
    close(graph.marginals[0::2, :2], joint.sum(2))
    close(graph.marginals[1::2], joint.sum(1))
    best = chain.argmax
    assert graph.argmax.tolist() == [each for tag in best.tolist() for each in divmod(tag, 3)]


def test_a_graph_that_is_too_wide_says_so_and_names_the_ways_out() -> None:
    pairs = [(i, j) for i in range(12) for j in range(i)]
    graph = FactorGraph(scores(12, 4), [CliqueTemplate(pairs, scores(4, 4))])
    with pytest.raises(ScoreError, match=r"tree-width 11\) and tables of 22,369,620 numbers .* ad3\(\)"):
        graph.log_partition  # noqa: B018
    assert graph.score(torch.zeros(12, dtype=torch.long)).isfinite()


def test_a_long_grid_stays_narrow() -> None:
    """Three rows, forty columns: an elimination from one end to the other never needs more than four together."""
    along = [(3 * t + i, 3 * t + 3 + i) for t in range(39) for i in range(3)]
    across = [(3 * t + i, 3 * t + i + 1) for t in range(40) for i in range(2)]
    graph = FactorGraph(scores(120, 2), [CliqueTemplate([*along, *across], scores(2, 2))])
    assert graph.tree_width == 3
    close(graph.marginals.sum(-1), torch.ones(120))


def test_half_precision_goes_in_and_comes_out() -> None:
    unary, pair = scores(2, 3, 2).half(), scores(2, 2).half()
    graph = FactorGraph(unary, [unroll(pair, (0, 1), 3)])
    exact = FactorGraph(unary.double(), [unroll(pair.double(), (0, 1), 3)])
    assert graph.log_partition.dtype == graph.marginals.dtype == torch.float16
    assert torch.equal(graph.log_partition, exact.log_partition.half())


def test_constraints_on_factors() -> None:
    graph = FactorGraph(scores(3, 2), [unroll(scores(2, 2), (0, 1), 3)])
    assert graph.constrain(factors=[torch.eye(2).bool()]).count.item() == 2


@both_backends
def test_expand_repeats_the_distribution(backend: str) -> None:
    graph = FactorGraph(scores(1, 3, 2), [CliqueTemplate([(0, 2)], scores(1, 1, 2, 2), True)], backend=backend)
    many = graph.expand((4,))
    assert many.batch_shape == (4,)
    close(many.log_partition, graph.log_partition.expand(4))


def test_an_empty_batch_has_empty_answers() -> None:
    graph = FactorGraph(scores(0, 3, 2), [unroll(scores(2, 2), (0, 1), 3)])
    assert graph.log_partition.shape == (0,)
    assert graph.marginals.shape == (0, 3, 2)
    assert graph.argmax.shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (dict(unary=torch.zeros(3)), r"unary must be \[batch, n, c\]"),
        (dict(sizes=[2, 2]), r"sizes must be 3 whole numbers in 1\.\.2"),
        (dict(sizes=[2, 2, 5]), r"sizes must be 3 whole numbers in 1\.\.2"),
        (
            dict(factors=[((0, 3), torch.zeros(2, 2))]),
            r"factor 0: variables must be different ones of 0\.\.2; got \(0, 3\)",
        ),
        (dict(factors=[((1, 1), torch.zeros(2, 2))]), r"factor 0: variables must be different"),
        (
            dict(factors=[((0, 1), torch.zeros(2, 3))]),
            r"factor 0: scores must be \(2, 2\) or, for each row, .*got \(2, 3\)",
        ),
        (dict(factors=[((0, 1), torch.full((2, 2), math.nan))]), r"factor 0 must be finite numbers or -inf; got nan"),
        (dict(unary=torch.tensor([[0.0, INF]] * 3)), r"unary must be finite numbers or -inf; got inf at \[0, 1\]"),
        (dict(unary=torch.zeros(3, 2, dtype=torch.long)), r"scores must be floating point"),
        (dict(mask=torch.ones(2).bool()), r"mask must be bool \(3,\)"),
    ],
)
def test_bad_input_is_explained(change: dict[str, Any], sentence: str) -> None:
    arguments = {"unary": torch.zeros(3, 2), "factors": [], **change}
    with pytest.raises(ScoreError, match=sentence):
        FactorGraph(**arguments)


def test_bad_values_are_explained() -> None:
    graph = FactorGraph(torch.zeros(2, 3, 2))
    with pytest.raises(ScoreError, match=r"variable 1 must lie in 0\.\.1; got 2 at row 0"):
        graph.score(torch.tensor([[0, 2, 0], [0, 0, 0]]))
    with pytest.raises(ScoreError, match="whole numbers"):
        graph.score(torch.zeros(2, 3))
    with pytest.raises(ScoreError, match="k must be at least 1"):
        graph.top_k(0)
    with pytest.raises(ScoreError, match="known must map variables"):
        graph.probability({3: 0})
    with pytest.raises(ScoreError, match="same number of variables"):
        CliqueTemplate([(0, 1), (0, 1, 2)], torch.zeros(2, 2))
    with pytest.raises(ScoreError, match="couplings must be one fewer"):
        factorial_chain(3, [torch.zeros(2, 2)], [torch.zeros(2, 2)])


@pytest.mark.parametrize(
    ("factor", "problem"),
    [
        ((0, torch.zeros(2)), r"factor 0 must be a pair \(variables, scores\)"),
        (((0.5, 1.0), torch.zeros(2, 2)), r"factor 0 must be a pair \(variables, scores\)"),
        (torch.zeros(2), r"factor 0 must be a pair \(variables, scores\)"),
        (((0, 1), [[1.0, 2.0], [3.0, 4.0]]), "factor 0: scores must be a tensor; got list"),
    ],
)
def test_what_is_no_factor_is_named(factor: Any, problem: str) -> None:
    with pytest.raises(ScoreError, match=problem):
        FactorGraph(torch.zeros(3, 2), [factor])


def test_sizes_masks_and_lists_of_factors_are_checked() -> None:
    unary = torch.zeros(3, 2)
    for sizes in (2, [1.5, 2, 2]):
        with pytest.raises(ScoreError, match="sizes must be 3 whole numbers"):
            FactorGraph(unary, sizes=sizes)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="mask must be a tensor; got list"):
        FactorGraph(unary, mask=[True] * 3)  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="factors must be 1 tensors or None, one a factor; got 0"):
        FactorGraph(unary, [((0, 1), torch.zeros(2, 2))]).constrain(factors=[])


def test_an_empty_batch_is_sampled_and_scored() -> None:
    empty = FactorGraph(torch.zeros(0, 3, 2))
    assert empty.gibbs(8).samples.shape == (8, 0, 3)  # type: ignore[union-attr]
    assert empty.log_prob(empty.sample((2,))).shape == (2, 0)
