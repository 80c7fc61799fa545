"""The gradient of tree marginals by kernel equals that of the reference, in exp space and beyond it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trelliswork import ProjectiveTree, SpanningTree, SpanTree
from trelliswork.runtime import threads

INF = float("inf")
KINDS = ["span", "projective", "projective, any roots", "spanning", "spanning, any roots"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def trees_of(kind: str, scores: Tensor, lengths: Tensor | None, backend: str = "kernel") -> SpanTree:
    if kind == "span":
        return SpanTree(scores, lengths=lengths, backend=backend)
    family = ProjectiveTree if kind.startswith("projective") else SpanningTree
    return family(scores, lengths=lengths, single_root="any" not in kind, backend=backend)


def random_scores(kind: str, batch: int, n: int, *, scale: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, n, n, 3) if kind == "span" else (batch, n + 1, n + 1)
    return scale * torch.randn(shape, dtype=torch.float64, generator=generator)


def gradient(kind: str, scores: Tensor, lengths: Tensor | None, backend: str, weights: Tensor | None = None) -> Tensor:
    leaf = scores.clone().requires_grad_()
    marginals = trees_of(kind, leaf, lengths, backend).marginals
    if weights is None:
        weights = torch.randn(marginals.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (found,) = torch.autograd.grad(marginals, leaf, weights.to(marginals.dtype))
    return found


def assert_kernel_is_reference(kind: str, scores: Tensor, lengths: Tensor | None = None, **tolerance: float) -> Tensor:
    found = gradient(kind, scores, lengths, "kernel")
    tolerance = tolerance or {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(found, gradient(kind, scores, lengths, "torch"), **tolerance)
    return found


@every_kind
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (2, 2), (11, 5), (3, 17)], ids=str)
def test_kernel_equals_reference(kind: str, batch: int, n: int) -> None:
    lengths = torch.randint(1, n + 1, (batch,), generator=torch.Generator().manual_seed(2))
    lengths[0] = n
    assert_kernel_is_reference(kind, random_scores(kind, batch, n), lengths)
    assert_kernel_is_reference(kind, random_scores(kind, batch, n).float(), lengths, rtol=1e-5, atol=1e-6)


@every_kind
def test_what_is_forbidden_has_gradient_zero(kind: str) -> None:
    scores = random_scores(kind, 4, 6)
    forbidden = torch.rand(scores.shape, generator=torch.Generator().manual_seed(3)) < 0.25
    if kind == "span":
        forbidden[..., 0] = False  # one label of each span stays
    scores[forbidden] = -INF
    found = assert_kernel_is_reference(kind, scores, torch.tensor([6, 4, 1, 6]))
    assert (found[forbidden] == 0).all() and (found[0] != 0).any()


@every_kind
def test_a_row_without_any_tree_has_gradient_zero(kind: str) -> None:
    scores = random_scores(kind, 3, 5)
    scores[1] = -INF
    found = assert_kernel_is_reference(kind, scores)
    assert (found[1] == 0).all() and (found[0] != 0).any() and (found[2] != 0).any()


@every_kind
def test_rows_too_wide_for_exp_space(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are e^800 apart, with ties among them, beside a plain row."""
    scores = random_scores(kind, 3, 6)
    levels = torch.randint(3, scores.shape, generator=torch.Generator().manual_seed(5))
    scores[::2] += 800.0 * levels[::2]
    found = assert_kernel_is_reference(kind, scores, torch.tensor([6, 5, 6]))
    assert (found.flatten(1).abs().amax(1) > 1e-3).all()
    _refuse_the_reference(monkeypatch)
    with pytest.raises(AssertionError, match="the reference was asked"):
        gradient(kind, scores, None, "kernel")


@every_kind
@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_directions_of_any_size(kind: str, size: float) -> None:
    scores = random_scores(kind, 2, 5)
    weights = torch.randn(scores.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    plain = gradient(kind, scores, None, "kernel", weights)
    torch.testing.assert_close(gradient(kind, scores, None, "kernel", size * weights) / size, plain)
    assert (gradient(kind, scores, None, "kernel", 0 * weights) == 0).all()


@every_kind
def test_nan_in_the_incoming_gradient_is_kept(kind: str) -> None:
    scores = random_scores(kind, 2, 5)
    weights = torch.zeros_like(scores)
    weights[0, 1, 3] = math.nan
    found = gradient(kind, scores, None, "kernel", weights)
    assert found[0].isnan().any() and (found[1] == 0).all()


@every_kind
def test_first_and_second_derivatives(kind: str) -> None:
    scores, lengths = random_scores(kind, 2, 4), torch.tensor([4, 2])
    if kind != "span":
        scores[0, 2, 3] = -5.0
    leaf = scores.requires_grad_()
    assert gradcheck(lambda each: trees_of(kind, each, lengths).marginals, leaf)
    assert gradgradcheck(lambda each: trees_of(kind, each, lengths).marginals, leaf, fast_mode=True)


@every_kind
def test_threads_share_the_rows(kind: str, worth_splitting: None) -> None:
    assert len(threads.row_ranges(20, 20 * 6**3)) == 2
    assert_kernel_is_reference(kind, random_scores(kind, 20, 5))


@every_kind
def test_the_reference_is_not_asked_about_plain_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _refuse_the_reference(monkeypatch)
    assert gradient(kind, random_scores(kind, 3, 20), None, "kernel").isfinite().all()


def _refuse_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the reference was asked")

    for name in ("constituency", "projective", "spanning"):
        monkeypatch.setattr(f"trelliswork.structures.{name}.structure.marginals", refuse)
