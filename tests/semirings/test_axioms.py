"""The axioms of [S2] for every semiring, products of matrices, closures, and the safe logsumexp."""

from __future__ import annotations

import functools
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trelliswork.semirings import Boolean, Counting, Expectation, KBest, Log, Max, Real, Sampling, Semiring, Tropical
from trelliswork.semirings.log import logsumexp

INF = float("inf")
SEMIRINGS: dict[str, Semiring] = {
    "log": Log(),
    "max": Max(),
    "tropical": Tropical(),
    "real": Real(),
    "counting": Counting(),
    "boolean": Boolean(),
    "1-best": KBest(1),
    "3-best": KBest(3),
    "sampling": Sampling(),
    "expectation": Expectation(),
}
every_semiring = pytest.mark.parametrize("semiring", SEMIRINGS.values(), ids=SEMIRINGS.keys())

# Multiples of 1/4 add up without rounding, so that best-path semirings can be compared exactly.
quarters = st.integers(-20, 20).map(lambda i: i / 4)
scores = st.one_of(quarters, st.just(-INF))


class Recipe(NamedTuple):
    """An element to be: up to three log scores with values, joined by ⊕ or ⊗ into one composite element."""

    log_scores: tuple[float, ...]
    values: tuple[float, ...]
    joins: tuple[str, ...]


recipes = st.builds(
    Recipe,
    st.tuples(scores, scores, scores),
    st.tuples(quarters, quarters, quarters),
    st.lists(st.sampled_from(("plus", "times")), max_size=2).map(tuple),
)


def lift(semiring: Semiring, log_scores: Tensor, values: Tensor) -> Tensor:
    return semiring.lift(log_scores, values) if isinstance(semiring, Expectation) else semiring.lift(log_scores)


def element(semiring: Semiring, recipe: Recipe) -> Tensor:
    """One element, of shape (*payload, 1)."""
    parts = [
        lift(semiring, torch.tensor([score], dtype=torch.float64), torch.tensor([value], dtype=torch.float64))
        for score, value in zip(recipe.log_scores, recipe.values, strict=True)
    ]
    built = parts[0]
    for join, part in zip(recipe.joins, parts[1:], strict=False):
        built = getattr(semiring, join)(built, part)
    return built


def same(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-12, atol=1e-12)


def constants(semiring: Semiring, shape: tuple[int, ...] = (1,)) -> tuple[Tensor, Tensor]:
    like = torch.zeros(1, dtype=torch.float64)
    return semiring.zero(shape, like), semiring.one(shape, like)


@every_semiring
@given(a=recipes, b=recipes, c=recipes)
def test_plus_is_associative_and_commutative(semiring: Semiring, a: Recipe, b: Recipe, c: Recipe) -> None:
    x, y, z = (element(semiring, recipe) for recipe in (a, b, c))
    same(semiring.plus(semiring.plus(x, y), z), semiring.plus(x, semiring.plus(y, z)))
    same(semiring.plus(x, y), semiring.plus(y, x))


@every_semiring
@given(a=recipes, b=recipes, c=recipes)
def test_times_is_associative(semiring: Semiring, a: Recipe, b: Recipe, c: Recipe) -> None:
    x, y, z = (element(semiring, recipe) for recipe in (a, b, c))
    same(semiring.times(semiring.times(x, y), z), semiring.times(x, semiring.times(y, z)))


@every_semiring
@given(a=recipes)
def test_zero_and_one(semiring: Semiring, a: Recipe) -> None:
    x, (zero, one) = element(semiring, a), constants(semiring)
    same(semiring.plus(x, zero), x)
    same(semiring.plus(zero, x), x)
    same(semiring.times(x, one), x)
    same(semiring.times(one, x), x)
    same(semiring.times(x, zero), zero)
    same(semiring.times(zero, x), zero)


@every_semiring
@given(a=recipes, b=recipes, c=recipes)
def test_times_distributes_from_both_sides(semiring: Semiring, a: Recipe, b: Recipe, c: Recipe) -> None:
    x, y, z = (element(semiring, recipe) for recipe in (a, b, c))
    same(semiring.times(x, semiring.plus(y, z)), semiring.plus(semiring.times(x, y), semiring.times(x, z)))
    same(semiring.times(semiring.plus(x, y), z), semiring.plus(semiring.times(x, z), semiring.times(y, z)))


@every_semiring
def test_minus_infinity_lifts_to_zero_and_nought_to_one(semiring: Semiring) -> None:
    zero, one = constants(semiring, (2,))
    same(semiring.lift(torch.full((2,), -INF, dtype=torch.float64)), zero)
    same(semiring.lift(torch.zeros(2, dtype=torch.float64)), one)


@every_semiring
def test_zero_and_one_have_the_shape_and_type_of_lifted_scores(semiring: Semiring) -> None:
    like = torch.zeros(2, 5, dtype=torch.float32)
    for constant in (semiring.zero((2, 5), like), semiring.one((2, 5), like)):
        assert constant.shape == semiring.lift(like).shape
        assert constant.dtype == semiring.lift(like).dtype


@every_semiring
@given(data=st.data())
def test_sum_over_an_axis_is_repeated_plus(semiring: Semiring, data: st.DataObject) -> None:
    parts = [element(semiring, data.draw(recipes)) for _ in range(4)]
    together = torch.stack(parts, dim=-2)  # (*payload, 4, 1)
    same(semiring.sum(together, dim=-2), functools.reduce(semiring.plus, parts))
    same(semiring.sum(together.transpose(-1, -2), dim=-1), functools.reduce(semiring.plus, parts))


def matrix(semiring: Semiring, rows: int, columns: int, data: st.DataObject) -> Tensor:
    """(*payload, rows, columns) of drawn elements."""
    lines = [torch.cat([element(semiring, data.draw(recipes)) for _ in range(columns)], dim=-1) for _ in range(rows)]
    return torch.stack(lines, dim=-2)


@every_semiring
@given(data=st.data())
def test_matmul_is_the_double_loop(semiring: Semiring, data: st.DataObject) -> None:
    left, right = matrix(semiring, 2, 3, data), matrix(semiring, 3, 2, data)
    product = semiring.matmul(left, right)
    for i in range(2):
        for j in range(2):
            cell, _ = constants(semiring, ())
            for k in range(3):
                cell = semiring.plus(cell, semiring.times(left[..., i, k], right[..., k, j]))
            same(product[..., i, j], cell)


# --- closures ------------------------------------------------------------------------------------------------

below_one = st.one_of(st.integers(-20, -1).map(lambda i: i / 4), st.just(-INF))
up_to_one = st.one_of(below_one, st.just(0.0))
CONVERGING: dict[str, st.SearchStrategy[float]] = {
    "log": below_one,
    "max": up_to_one,
    "tropical": up_to_one,
    "real": below_one,
    "counting": st.just(-INF),
    "boolean": scores,
    "1-best": up_to_one,
    "3-best": up_to_one,
    "sampling": below_one,
    "expectation": below_one,
}


def test_every_semiring_has_a_line_about_its_closure() -> None:
    assert CONVERGING.keys() == SEMIRINGS.keys()


@pytest.mark.parametrize("name", SEMIRINGS)
@given(data=st.data(), value=quarters)
def test_star_satisfies_its_equation_from_both_sides(name: str, data: st.DataObject, value: float) -> None:
    semiring, score = SEMIRINGS[name], data.draw(CONVERGING[name])
    a = lift(semiring, torch.tensor([score], dtype=torch.float64), torch.tensor([value], dtype=torch.float64))
    star, (_, one) = semiring.star(a), constants(semiring)
    same(star, semiring.plus(one, semiring.times(a, star)))
    same(star, semiring.plus(one, semiring.times(star, a)))


@pytest.mark.parametrize("name", [name for name in SEMIRINGS if name not in ("boolean", "tropical", "expectation")])
@pytest.mark.parametrize("score", [0.25, 3.0])
def test_star_diverges_to_infinity_where_going_round_gains(name: str, score: float) -> None:
    semiring = SEMIRINGS[name]
    assert (semiring.star(semiring.lift(torch.tensor([score], dtype=torch.float64))) == INF).all()


def test_star_of_the_tropical_semiring_diverges_downwards() -> None:
    assert Tropical().star(torch.tensor([-0.25])).item() == -INF


@pytest.mark.parametrize("name", ["log", "real", "counting", "sampling"])
def test_star_of_one_diverges_where_weights_add_up(name: str) -> None:
    semiring = SEMIRINGS[name]
    assert semiring.star(semiring.lift(torch.tensor([0.0]))).item() == INF


def test_star_of_an_expectation_counts_the_rounds() -> None:
    weight, gain = 0.75, 2.0
    log_weight, mean = Expectation().star(Expectation().lift(torch.tensor(weight).log(), torch.tensor(gain)))
    expected_rounds = sum(m * weight**m for m in range(400)) / sum(weight**m for m in range(400))
    assert log_weight.exp().item() == pytest.approx(4.0, rel=1e-5)
    assert mean.item() == pytest.approx(gain * expected_rounds, rel=1e-5)


def test_star_of_the_k_best_lists_the_k_best_numbers_of_rounds() -> None:
    assert KBest(3).star(KBest(3).lift(torch.tensor([-1.0]))).squeeze(-1).tolist() == [0.0, -1.0, -2.0]


# --- what the gradients say ----------------------------------------------------------------------------------


def test_among_ties_the_gradient_of_max_marks_the_first_only() -> None:
    tied = torch.tensor([1.0, 3.0, 3.0, 3.0], requires_grad=True)
    Max().sum(tied, dim=-1).backward()
    assert tied.grad is not None
    assert tied.grad.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_the_k_best_keep_equal_scores_of_different_origin() -> None:
    tied = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    best = KBest(2).sum(KBest(2).lift(tied), dim=-1)
    marks = [torch.autograd.grad(best[r], tied, retain_graph=True)[0] for r in range(2)]
    assert best.tolist() == [2.0, 2.0]
    assert sum(marks).tolist() == [1.0, 1.0, 0.0]


def test_the_gradient_of_sampling_is_one_draw_in_proportion() -> None:
    weights = torch.tensor([0.7, 0.0, 0.3], dtype=torch.float64)
    scores = weights.log().requires_grad_()
    total = Sampling(torch.Generator().manual_seed(3)).sum(scores, dim=-1)
    draws = torch.stack([torch.autograd.grad(total, scores, retain_graph=True)[0] for _ in range(4000)])
    assert total.item() == pytest.approx(0.0, abs=1e-12)
    assert (draws.sum(1) == 1).all()
    assert draws[:, 1].sum() == 0
    deviation = (draws[:, 0].mean() - 0.7).abs() / (0.7 * 0.3 / 4000) ** 0.5
    assert deviation < 4.5


def test_viterbi_carries_scores_or_nonnegative_weights() -> None:
    """Erratum 11 of [S2]: (max, ×) on all reals is no semiring; on weights >= 0 and as (max, +) it is one."""

    def both_sides(a: float, b: float, c: float) -> tuple[float, float]:
        return a * max(b, c), max(a * b, a * c)

    literal, distributed = both_sides(-1.0, 2.0, 3.0)
    assert literal != distributed
    for a, b, c in [(0.0, 2.0, 3.0), (0.5, 0.0, 3.0), (2.0, 2.0, 0.25)]:
        weight, same_weight = both_sides(a, b, c)
        assert weight == same_weight
        x, y, z = (torch.tensor([w], dtype=torch.float64).log() for w in (a, b, c))
        best = Max().times(x, Max().plus(y, z)).exp()
        assert best.item() == pytest.approx(weight, abs=1e-12)


# --- logsumexp -----------------------------------------------------------------------------------------------


def test_logsumexp_of_nothing_is_minus_infinity_with_gradient_zero() -> None:
    scores = torch.tensor([[-INF, -INF], [0.0, -INF], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    total = logsumexp(scores, dim=-1)
    total.sum().backward()
    assert total[0].item() == -INF
    assert total[1].item() == 0.0
    assert scores.grad is not None
    assert scores.grad.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shift", [-1e4, 0.0, 1e4])
def test_logsumexp_agrees_with_torch_on_any_scale(dtype: torch.dtype, shift: float) -> None:
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(dtype) + shift
    for dim in (-1, -2):
        torch.testing.assert_close(logsumexp(scores, dim), torch.logsumexp(scores, dim))


def rows_with_gaps(free: Tensor) -> Tensor:
    """Six free scores among -inf entries; the last row has none."""
    gap = free.new_full((), -INF)
    rows = [[free[0], gap, free[1]], [gap, free[2], gap], [free[3], free[4], free[5]], [gap, gap, gap]]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.mark.parametrize("dim", [-1, -2])
def test_logsumexp_has_exact_first_and_second_derivatives_beside_minus_infinity(dim: int) -> None:
    free = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def finite_totals(scores: Tensor) -> Tensor:
        total = logsumexp(rows_with_gaps(scores), dim)
        return total[total > -INF]

    assert gradcheck(finite_totals, free)
    assert gradgradcheck(finite_totals, free)


def test_logsumexp_passes_no_nan_to_the_second_derivative() -> None:
    scores = torch.tensor([[-INF, -INF], [0.0, -INF]], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(logsumexp(scores, dim=-1).sum(), scores, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), scores)
    assert second.tolist() == [[0.0, 0.0], [0.0, 0.0]]
