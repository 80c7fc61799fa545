"""The gradient of segment marginals by kernel equals that of the reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork import SemiMarkov

INF = float("inf")
SHAPES = ((3, 9, 3, 4), (4, 4), (4,), (4,))


def random_scores(batch: int, n: int, k: int, c: int, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n * k * c)
    shapes = ((batch, n, k, c), (c, c), (c,), (c,))
    return [scale * torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]


def gradients(scores: list[Tensor], lengths: Tensor, query: str, backend: str, *, order: int = 1) -> list[Tensor]:
    inputs = [each.clone().requires_grad_() for each in scores]
    arcs = inputs[1] if order else None
    segmentations = SemiMarkov(inputs[0], arcs, *inputs[2:], lengths=lengths, backend=backend)
    answer = segmentations.entropy() if query == "entropy" else segmentations.marginals
    weights = torch.randn(answer.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad((answer * weights).sum(), inputs, allow_unused=True)
    return [torch.zeros_like(given) if each is None else each for each, given in zip(found, inputs, strict=True)]


def assert_kernel_is_reference(scores: list[Tensor], lengths: Tensor, query: str, order: int = 1) -> list[Tensor]:
    by_kernel = gradients(scores, lengths, query, "kernel", order=order)
    by_reference = gradients(scores, lengths, query, "torch", order=order)
    torch.testing.assert_close(by_kernel, by_reference, rtol=1e-8, atol=1e-10)
    return by_kernel


@pytest.mark.parametrize("query", ["marginals", "entropy"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(3, 6, 3, 2), (2, 1, 2, 3), (2, 4, 1, 1), (1, 3, 5, 2)], ids=str)
def test_kernel_equals_reference(shape: tuple[int, int, int, int], order: int, query: str) -> None:
    batch, n, _, _ = shape
    lengths = torch.tensor([n, max(1, n - 2), n][:batch])
    assert_kernel_is_reference(random_scores(*shape), lengths, query, order)


def test_wide_scores() -> None:
    found = assert_kernel_is_reference(random_scores(2, 6, 3, 3, scale=200.0), torch.tensor([6, 4]), "marginals")
    assert all(each.isfinite().all() for each in found)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_wide_and_narrow_rows_with_parts_that_are_forbidden(scale: float, order: int) -> None:
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        scores = [scale * torch.randn(shape, dtype=torch.float64, generator=generator) for shape in SHAPES]
        scores[0][1] /= scale
        for part in scores:
            part[torch.rand(part.shape, generator=generator) < 0.2] = -INF
        found = assert_kernel_is_reference(scores, torch.tensor([9, 9, 4]), "marginals", order)
        assert all(each.isfinite().all() for each in found)


def test_a_direction_that_is_no_number_stays_none() -> None:
    scores = [each.requires_grad_() for each in random_scores(1, 4, 2, 2)]
    marginals = SemiMarkov(*scores, backend="kernel").marginals
    weights = torch.ones_like(marginals)
    weights[0, 1, 0, 1] = float("nan")
    (found,) = torch.autograd.grad((marginals * weights).sum(), scores[:1])
    assert found.isnan().any()


def test_what_is_forbidden_has_gradient_zero() -> None:
    scores = random_scores(2, 5, 3, 3)
    scores[0][0, 1, 1, 2] = scores[1][0, 2] = scores[2][1] = -INF
    found = assert_kernel_is_reference(scores, torch.tensor([5, 3]), "marginals")
    assert found[0][0, 1, 1, 2] == found[1][0, 2] == found[2][1] == 0
    assert all(each.isfinite().all() for each in found)


def test_a_row_without_any_segmentation_has_gradient_zero() -> None:
    scores = random_scores(2, 4, 2, 2)
    scores[0][0] = -INF
    found = gradients(scores, torch.tensor([4, 4]), "marginals", "kernel")
    assert (found[0][0] == 0).all() and (found[0][1] != 0).any()
