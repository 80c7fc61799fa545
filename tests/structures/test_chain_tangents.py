"""The gradient of marginals by kernel equals that of the reference, in exp space and in log space."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork import LinearChain
from trelliswork.structures.chain import solver, structure

INF = float("inf")
SHAPES = [(3, 5, 3), (2, 1, 3), (2, 2, 1), (1, 2, 2), (2, 12, 9)]


def random_scores(batch: int, n: int, c: int, *, by_position: bool, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n * c)

    def normal(*shape: int) -> Tensor:
        return scale * torch.randn(shape, dtype=torch.float64, generator=generator)

    return [normal(batch, n, c), normal(batch, n - 1, c, c) if by_position else normal(c, c), normal(c), normal(c)]


def gradients(scores: list[Tensor], lengths: Tensor, query: str, backend: str) -> list[Tensor]:
    inputs = [each.clone().requires_grad_() for each in scores]
    chain = LinearChain(*inputs, lengths=lengths, backend=backend)
    generator = torch.Generator().manual_seed(1)
    answer = chain.entropy() if query == "entropy" else getattr(chain, query)
    weights = torch.randn(answer.shape, dtype=torch.float64, generator=generator)
    # A single position has no arcs: nothing depends on the transitions then.
    found = torch.autograd.grad((answer * weights).sum(), inputs, allow_unused=True)
    return [torch.zeros_like(given) if each is None else each for each, given in zip(found, inputs, strict=True)]


def assert_kernel_is_reference(scores: list[Tensor], lengths: Tensor, query: str) -> list[Tensor]:
    by_kernel = gradients(scores, lengths, query, "kernel")
    torch.testing.assert_close(by_kernel, gradients(scores, lengths, query, "torch"), rtol=1e-8, atol=1e-10)
    return by_kernel


@pytest.mark.parametrize("query", ["marginals", "pairwise_marginals", "entropy"])
@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_kernel_equals_reference(shape: tuple[int, int, int], by_position: bool, query: str) -> None:
    batch, n, _ = shape
    if query == "pairwise_marginals" and n == 1:
        pytest.skip("one position has no pairs")
    lengths = torch.tensor([n, max(1, n - 2), n][:batch])
    assert_kernel_is_reference(random_scores(*shape, by_position=by_position), lengths, query)


@pytest.mark.parametrize("query", ["marginals", "entropy"])
def test_rows_too_wide_for_exp_space(query: str) -> None:
    """A row whose likely tags are a dead end, and a plain one beside it."""
    scores = random_scores(2, 8, 4, by_position=False)
    scores[0][0, :, :2] -= 100.0
    scores[1][2:, :2] = -INF  # only tags 0 and 1 lead to tags 0 and 1,
    scores[3][2:] = -INF  # and one of these must be the last
    lengths = torch.tensor([8, 3])
    run = solver.run_forward(solver.ChainArrays.of(structure.Chain(*scores, lengths)))
    assert run.wide_rows.tolist() == [0], "one row must go to log space"
    found = assert_kernel_is_reference(scores, lengths, query)
    assert (found[0][0, :, :2].abs() > 1e-3).any(1).all()


def test_what_is_forbidden_has_gradient_zero() -> None:
    scores = random_scores(2, 5, 3, by_position=False)
    scores[0][0, 2, 1] = scores[1][0, 2] = scores[2][1] = -INF
    found = assert_kernel_is_reference(scores, torch.tensor([5, 4]), "marginals")
    assert found[0][0, 2, 1] == found[1][0, 2] == found[2][1] == 0
    assert all(each.isfinite().all() for each in found)


def test_a_row_without_any_path_has_gradient_zero() -> None:
    scores = random_scores(2, 4, 2, by_position=False)
    scores[0][0, 1] = -INF
    found = gradients(scores, torch.tensor([4, 4]), "marginals", "kernel")
    assert (found[0][0] == 0).all() and (found[0][1] != 0).any()


def test_a_gradient_that_is_no_number_stays_none() -> None:
    scores = [each.requires_grad_() for each in random_scores(1, 4, 2, by_position=False)]
    weights = torch.ones(1, 4, 2, dtype=torch.float64)
    weights[0, 1, 1] = float("nan")
    (found,) = torch.autograd.grad((LinearChain(*scores, backend="kernel").marginals * weights).sum(), scores[:1])
    assert found.isnan().any()
