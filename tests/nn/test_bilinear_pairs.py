"""Bilinear scores of pairs in chunks are those of torch, in value and in both derivatives."""

from __future__ import annotations

import pytest
import torch

from trelliswork.nn.scorers import biaffine
from trelliswork.nn.scorers.biaffine import pair_scores, plain_pair_scores


def problem(pairs: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(pairs)
    shapes = (pairs, 3), (pairs, 3), (4 * 3, 3)
    return tuple(torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes)


@pytest.mark.parametrize("pairs", [0, 1, 2, 5])
def test_equals_plain_torch(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(biaffine, "PAIRS", 2)  # chunks that do not come out even
    given = problem(pairs)
    scores, expected = pair_scores(*given), plain_pair_scores(*given)
    torch.testing.assert_close(scores, expected)
    back = torch.randn(scores.shape, dtype=scores.dtype)
    for a, b in zip(torch.autograd.grad(scores, given, back), torch.autograd.grad(expected, given, back), strict=True):
        torch.testing.assert_close(a, b)


def test_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(biaffine, "PAIRS", 2)
    assert torch.autograd.gradcheck(pair_scores, problem(5))
    assert torch.autograd.gradgradcheck(pair_scores, problem(3))
    left, right, weight = problem(3)
    assert torch.autograd.gradgradcheck(lambda weight: pair_scores(left.detach(), right.detach(), weight), (weight,))


def test_where_torch_chooses_the_precision() -> None:
    left, right, weight = problem(3, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        scores = pair_scores(left.bfloat16(), right.bfloat16(), weight)
    torch.testing.assert_close(scores.float(), plain_pair_scores(left, right, weight), atol=0.3, rtol=0.1)
