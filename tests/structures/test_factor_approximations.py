"""Belief propagation, Gibbs sampling and AD3 of factor graphs against exact answers, and what they guarantee."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import Approximation, CliqueTemplate, FactorGraph, unroll
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.structures.factors import ad3_kernels, search
from trelliswork.structures.factors.graph import graph_arrays

INF = float("inf")
TREE = [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)]
GRID = [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)] + [(i, i + 3) for i in range(6)]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def graph(
    pairs: list[tuple[int, int]], n: int, c: int = 3, *, batch: int = 4, scale: float = 1.0, seed: int = 0
) -> FactorGraph:
    rng = generator(seed)
    unary = scale * torch.randn(batch, n, c, generator=rng, dtype=torch.float64)
    tables = scale * torch.randn(batch, len(pairs), c, c, generator=rng, dtype=torch.float64)
    return FactorGraph(unary, [CliqueTemplate(pairs, tables, by_clique=True)])


def mixed_tree(batch: int = 3) -> FactorGraph:
    """No loops, but cliques of three, variables of different sizes, -inf, one variable alone, one not in row 1."""
    rng = generator(1)
    unary = torch.randn(batch, 6, 4, generator=rng, dtype=torch.float64)
    unary[0, 1, 2] = -INF
    triple, pair = (torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((2, 4, 3), (3, 3)))
    triple[1, 2, 0] = pair[0, 1] = -INF
    mask = torch.ones(batch, 6, dtype=torch.bool)
    mask[1, 4] = False
    return FactorGraph(unary, [((0, 1, 2), triple), ((2, 4), pair)], sizes=[2, 4, 3, 4, 3, 2], mask=mask)


def close(found: Tensor | None, wanted: Tensor, tolerance: float = 1e-7) -> None:
    assert found is not None
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


# --- belief propagation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dist", [graph(TREE, 6), mixed_tree(), graph([], 3)], ids=["tree", "mixed", "no factors"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_on_trees_propagation_is_exact(dist: FactorGraph, damping: float) -> None:
    found = dist.propagate(damping=damping, tolerance=1e-10)
    assert found.converged.all()
    close(found.estimate, dist.log_partition)
    close(found.marginals, dist.marginals)
    best = dist.propagate(best=True, damping=damping)
    assert best.converged.all()
    assert torch.equal(best.value, dist.argmax)
    close(best.estimate, dist.score(dist.argmax))


def test_the_bethe_estimate_has_the_beliefs_for_its_gradient() -> None:
    dist = graph(GRID, 9, scale=0.5)
    unary, pairs = dist.unary.clone().requires_grad_(), dist.factors[0].scores.clone().requires_grad_()
    found = FactorGraph(unary, [CliqueTemplate(GRID, pairs, by_clique=True)]).propagate(tolerance=1e-12)
    assert found.converged.all() and found.estimate is not None
    found.estimate.sum().backward()
    close(unary.grad, found.marginals)
    # By the pairs it is a table with the beliefs of both ends for its sums.
    assert pairs.grad is not None and found.marginals is not None
    close(pairs.grad.sum(-1), found.marginals[:, [i for i, _ in GRID]])
    close(pairs.grad.sum(-2), found.marginals[:, [j for _, j in GRID]])


def test_on_loops_propagation_is_near_and_says_when_it_stopped_early() -> None:
    dist = graph(GRID, 9, scale=0.5)
    found = dist.propagate()
    assert found.converged.all()
    close(found.estimate, dist.log_partition, 0.02)
    assert not torch.allclose(found.estimate, dist.log_partition, atol=1e-6)
    early = dist.propagate(max_iterations=2)
    assert not early.converged.any() and early.iterations.tolist() == [2] * 4


def test_damping_calms_messages_that_swing() -> None:
    """A strong odd loop of repulsions has a fixed point that undamped messages run past."""
    repel = torch.tensor([[-4.0, 0.0], [0.0, -4.0]], dtype=torch.float64)
    unary = torch.tensor([[0.3, 0.0], [0.0, 0.1], [0.0, 0.0]], dtype=torch.float64)
    dist = FactorGraph(unary, [CliqueTemplate([(0, 1), (1, 2), (0, 2)], repel)])
    swinging, calm = dist.propagate(max_iterations=150), dist.propagate(damping=0.5, max_iterations=150)
    assert calm.converged and calm.iterations < swinging.iterations


def test_a_row_gives_the_same_alone() -> None:
    dist = graph(GRID, 9)
    together = dist.propagate()
    for row in range(4):
        alone = graph(GRID, 9)
        alone = FactorGraph(alone.unary[row], [CliqueTemplate(GRID, alone.factors[0].scores[row], by_clique=True)])
        close(alone.propagate().estimate, together.estimate[row], 1e-12)


# --- Gibbs sampling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dist", [graph(GRID, 9, batch=2), mixed_tree()], ids=["grid", "mixed"])
def test_gibbs_marginals_come_to_the_exact_ones(dist: FactorGraph) -> None:
    """Within six standard errors of 16 chains (beyond by chance in one entry of 40,000), and those are small."""
    found = dist.gibbs(32_000, chains=16, generator=generator(3))
    assert found.converged.all() and found.marginals is not None and found.standard_error is not None
    assert found.standard_error.max() < 0.01
    assert ((found.marginals - dist.marginals).abs() <= 6 * found.standard_error + 1e-9).all()
    assert found.samples is not None and found.samples.shape == (32_000, *dist.batch_shape, *dist.event_shape)
    frequencies = dist.to_parts(found.samples).mean(0)
    close(frequencies, dist.marginals, 0.03)
    assert (dist.score(found.samples[::500]) > -INF).all()
    close(found.estimate, dist.score(dist.argmax))


def test_the_same_seed_gives_the_same_chains() -> None:
    dist = graph(GRID, 9, batch=2)
    first, second = (dist.gibbs(50, generator=generator(4)).samples for _ in range(2))
    assert first is not None and second is not None
    assert torch.equal(first, second)


def test_chains_that_cannot_meet_are_found_out() -> None:
    """Two variables that must be equal: no single step leads from 00 to 11."""
    dist = FactorGraph(torch.zeros(2, 2), [((0, 1), torch.tensor([[0.0, -INF], [-INF, 0.0]]))])
    found = dist.gibbs(400, chains=8, generator=generator(0))
    assert not found.converged.any()


def test_gibbs_says_when_it_finds_nothing_possible() -> None:
    impossible = FactorGraph(torch.zeros(2, 2), [((0, 1), torch.full((2, 2), -INF))])
    with pytest.raises(ConstraintError, match="row 0: a chain found no assignment"):
        impossible.gibbs(10)


# --- AD3 -----------------------------------------------------------------------------------------------------


def check_bound(dist: FactorGraph, found: Approximation) -> None:
    best = dist.score(dist.argmax)
    assert found.bound is not None and found.gap is not None and found.estimate is not None
    assert (found.bound >= best - 1e-9 * best.abs()).all()
    assert (found.estimate <= best + 1e-9 * best.abs()).all()
    close(dist.score(found.value), found.estimate, 1e-12)
    close(found.estimate[found.certified], best[found.certified], 1e-6)


@pytest.mark.parametrize("dist", [graph(TREE, 6), mixed_tree(), graph([], 3)], ids=["tree", "mixed", "no factors"])
def test_on_trees_ad3_is_certified(dist: FactorGraph) -> None:
    found = dist.ad3()
    check_bound(dist, found)
    assert found.certified.all() and found.converged.all()
    assert torch.equal(found.value, dist.argmax)


@pytest.mark.parametrize("seed", range(3))
def test_on_loops_the_bound_holds_and_integral_solutions_are_certified(seed: int) -> None:
    dist = graph(GRID, 9, batch=20, scale=2.0, seed=seed)
    found = dist.ad3()
    check_bound(dist, found)
    assert found.certified.float().mean() > 0.6
    assert found.marginals is not None
    integral = (found.marginals.amax(-1) > 1 - 1e-3).all(-1)
    assert (found.certified | ~integral).all()
    early = dist.ad3(max_iterations=3)
    check_bound(dist, early)


def test_cliques_of_three_and_four() -> None:
    rng = generator(7)
    triples, four = [(0, 1, 2), (2, 3, 4), (4, 5, 0)], [(1, 3, 5, 6)]
    tables = [torch.randn(10, *shape, generator=rng, dtype=torch.float64) for shape in ((3, 3, 3, 3), (1, 3, 3, 3, 3))]
    dist = FactorGraph(
        torch.randn(10, 7, 3, generator=rng, dtype=torch.float64),
        [CliqueTemplate(triples, tables[0], by_clique=True), CliqueTemplate(four, tables[1], by_clique=True)],
    )
    found = dist.ad3()
    check_bound(dist, found)
    assert found.certified.float().mean() >= 0.5


def test_a_frustrated_triangle_keeps_its_gap() -> None:
    """Three variables of two values that want to differ: its relaxation says ½, ½, and nothing reaches the bound."""
    differ = 1.0 - torch.eye(2, dtype=torch.float64)
    dist = FactorGraph(torch.zeros(3, 2, dtype=torch.float64), [CliqueTemplate([(0, 1), (1, 2), (0, 2)], differ)])
    found = dist.ad3()
    assert found.estimate == 2.0
    close(found.bound, torch.tensor(3.0, dtype=torch.float64), 1e-5)
    assert not found.certified
    close(found.marginals, torch.full((3, 2), 0.5, dtype=torch.float64), 1e-3)


def test_rows_in_which_nothing_is_possible_end_with_minus_infinity() -> None:
    unary = torch.zeros(2, 3, 2)
    unary[1, 0] = -INF
    found = FactorGraph(unary, [unroll(torch.eye(2), (0, 1), 3)]).ad3()
    assert found.estimate is not None and found.bound is not None
    assert found.estimate.tolist() == [2.0, -INF] and found.bound[1] == -INF
    closed = FactorGraph(torch.zeros(2, 2), [((0, 1), torch.full((2, 2), -INF))]).ad3()
    assert closed.estimate == -INF == closed.bound


def test_impossible_rows_are_never_not_a_number() -> None:
    """A cycle of must-differ over two values is impossible, though each factor and each variable has something left."""
    differ = torch.zeros(2, 2, dtype=torch.float64).fill_diagonal_(-INF)
    loop = [(0, 1), (1, 2), (0, 2)]
    dist = FactorGraph(torch.zeros(3, 2, dtype=torch.float64), [CliqueTemplate(loop, differ)])
    assert dist.count == 0
    found = dist.ad3(max_iterations=50)
    assert found.estimate == -INF and found.bound is not None and found.bound.isfinite()
    assert not found.certified
    unary = torch.tensor([[[0.0, 0.0], [-INF, 0.0]], [[0.0, 0.0], [0.0, 0.0]]], requires_grad=True)
    rows = FactorGraph(unary, [((0, 1), torch.tensor([[0.0, -INF], [0.0, -INF]]))]).propagate()
    assert rows.estimate is not None and rows.marginals is not None
    assert rows.estimate.tolist() == pytest.approx([-INF, 2 * torch.tensor(2.0).log().item() - 0.6931472], abs=1e-5)
    assert rows.marginals.isfinite().all()
    (gradient,) = torch.autograd.grad(rows.estimate.sum(), unary)
    assert (gradient[0] == 0).all() and gradient.isfinite().all()


def test_the_quadratic_step_of_a_factor_is_optimal() -> None:
    """Against projected gradients on the simplex of all entries."""
    rng = generator(11)
    dist = FactorGraph(torch.zeros(3, 3, dtype=torch.float64), [((0, 1, 2), torch.zeros(3, 3, 3))])
    arrays = graph_arrays(dist._parts.graph)
    for _ in range(3):
        theta = torch.randn(9 + 27, generator=rng, dtype=torch.float64)
        targets = torch.randn(3, 3, generator=rng, dtype=torch.float64)
        room = 11
        marginals = torch.zeros(3, 3, dtype=torch.float64)
        scratch = [
            torch.zeros(*shape, dtype=torch.float64).numpy() for shape in ((3, 3), (room + 2, room + 2), (room + 2,))
        ]
        active, weights = torch.zeros(room, dtype=torch.long), torch.zeros(room, dtype=torch.float64)
        size = ad3_kernels.project(
            theta.numpy(),
            arrays,
            0,
            0.7,
            targets.numpy(),
            (active.numpy(), weights.numpy()),
            0,
            marginals.numpy(),
            scratch[0],
            tuple(scratch[1:]),
        )
        assert (weights[:size] >= 0).all()
        close(weights[:size].sum(), torch.tensor(1.0, dtype=torch.float64))
        found = 0.5 * (marginals - targets).pow(2).sum() - (weights[:size] * theta[9 + active[:size]]).sum() / 0.7
        assert found <= slow_projection(theta[9:], targets, 0.7) + 1e-6


def slow_projection(theta: Tensor, targets: Tensor, rho: float) -> Tensor:
    """The same minimum by exponentiated gradients: slow, simple, never below it."""
    q = torch.full((27,), 1 / 27, dtype=torch.float64)
    values = torch.cartesian_prod(*[torch.arange(3)] * 3)
    for _ in range(1500):
        apart = (
            torch.stack([torch.zeros(3, dtype=torch.float64).index_add(0, values[:, i], q) for i in range(3)]) - targets
        )
        slope = sum(apart[i][values[:, i]] for i in range(3)) - theta / rho
        q = torch.softmax(q.clamp(min=1e-300).log() - 0.2 * slope, 0)
    return 0.5 * apart.pow(2).sum() - (q * theta).sum() / rho


# --- both ----------------------------------------------------------------------------------------------------


def test_what_is_too_wide_for_exact_answers_has_approximate_ones() -> None:
    pairs = [(i, j) for i in range(20) for j in range(i)]
    dist = graph(pairs, 20, 3, batch=1, scale=0.2)
    with pytest.raises(ScoreError, match="tree-width 19"):
        dist.log_partition  # noqa: B018
    beliefs, sampled = dist.propagate(damping=0.3), dist.gibbs(4000, generator=generator(5))
    assert beliefs.converged.all() and sampled.converged.all()
    close(beliefs.marginals, sampled.marginals, 0.05)
    found = dist.ad3(max_iterations=100)
    assert found.gap is not None and (found.gap >= 0).all()


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda dist: dist.propagate(damping=1.0), r"damping must lie in \[0, 1\)"),
        (lambda dist: dist.gibbs(10, chains=1), "gibbs needs chains >= 2"),
    ],
)
def test_bad_settings_are_explained(ask: object, sentence: str) -> None:
    with pytest.raises(ScoreError, match=sentence):
        ask(graph(TREE, 6))  # type: ignore[operator]


def test_float32_comes_back_as_float32() -> None:
    dist = FactorGraph(torch.randn(2, 3, 2, generator=generator(0)), [unroll(torch.eye(2), (0, 1), 3)])
    for found in (dist.propagate(), dist.gibbs(20, generator=generator(0)), dist.ad3()):
        assert found.estimate is not None and found.estimate.dtype == torch.float32
        assert found.marginals is not None and found.marginals.dtype == torch.float32


def test_chains_report_their_sweeps() -> None:
    chains = search.gibbs(graph(TREE, 6)._parts, 7, n_chains=2, burn_in=1, thin=3, generator=generator(0))
    assert chains.samples.shape == (4, 2, 7, 6) and chains.n_sweeps == 21
