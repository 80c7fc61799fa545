"""The gated recursive convolution: module = recursion by hand, hand gradients = autograd, and errata 6 and 7."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.hand_gradients.grconv import (
    GrConvWeights,
    Step,
    below_gradient,
    grconv_gradient,
    grconv_pyramid,
)
from trelliswork.distributions import SemiMarkov
from trelliswork.nn import GatedRecursiveConvolution

N, K, DIM, C = 6, 4, 3, 2


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def problem(seed: int = 0) -> tuple[Tensor, GrConvWeights]:
    shapes = ((DIM, DIM), (DIM, DIM), (DIM,), (3 * DIM, DIM), (3 * DIM, DIM), (3 * DIM,))
    weights = GrConvWeights(*(draw(seed + index, *shape) for index, shape in enumerate(shapes, 1)))
    return draw(seed, N, DIM), weights


def levels_of(tokens: Tensor, weights: GrConvWeights) -> list[Tensor]:
    return [tokens, *(step.output for step in grconv_pyramid(tokens, weights, K))]


def log_likelihood(levels: list[Tensor]) -> Tensor:
    """A grSemi-CRF: F(s) = V0 z(s), the likelihood of the segmentation of its first row."""
    features = torch.stack([torch.nn.functional.pad(each, (0, 0, 0, N - len(each))) for each in levels], 1)
    segments = (features @ draw(50, DIM, C))[None]
    dist = SemiMarkov(segments, draw(51, C, C), draw(52, C))
    return dist.log_prob([[(0, 2, 1), (2, 5, 0), (5, 6, 1)]]).sum()


def by_autograd(seed: int = 0) -> tuple[list[Tensor], Tensor, GrConvWeights, list[Tensor]]:
    """V0^T dL/dF of each level; then dL/dz^(1), dL/dweights and the whole dL/dz^(d) of each level."""
    tokens, weights = problem(seed)
    apart = [level.detach().requires_grad_() for level in levels_of(tokens, weights)]
    own = list(torch.autograd.grad(log_likelihood(apart), apart))
    leaf = tokens.clone().requires_grad_()
    leaves = GrConvWeights(*(part.clone().requires_grad_() for part in weights))
    levels = levels_of(leaf, leaves)
    found = torch.autograd.grad(log_likelihood(levels), [leaf, *leaves, *levels[1:]])
    return own, found[0], GrConvWeights(*found[1:7]), [found[0], *found[7:]]


def test_the_module_is_the_recursion() -> None:
    tokens, weights = problem()
    module = GatedRecursiveConvolution(DIM, K + 3).double()
    for layer, weight, bias in (
        (module.left, weights.w_left, weights.w_bias), (module.right, weights.w_right, None),
        (module.gate_left, weights.g_left, weights.g_bias), (module.gate_right, weights.g_right, None),
    ):  # fmt: skip
        layer.weight.data = weight
        if bias is not None:
            layer.bias.data = bias
    found = module(tokens[None])
    assert found.shape == (1, N, K + 3, DIM)
    for d, level in enumerate(levels_of(tokens, weights), 1):
        torch.testing.assert_close(found[0, : N - d + 1, d - 1], level)
        assert not found[0, N - d + 1 :, d - 1].any()
    assert not found[0, :, N:].any()


def test_a_level_is_a_mixture_of_its_sources() -> None:
    """Gates are positive and sum to 1 in every dimension, so each output lies between its three sources."""
    for step in grconv_pyramid(*problem(), K):
        torch.testing.assert_close(step.gates.sum(0), torch.ones_like(step.output))
        assert (step.output <= step.sources.amax(0)).all() and (step.output >= step.sources.amin(0)).all()


def test_the_complete_gradient_is_that_of_autograd() -> None:
    """Erratum 6: transposed Jacobians and the terms of the gates make dL/dz right at every level."""
    for seed in (0, 100):
        tokens, weights = problem(seed)
        own, by_tokens, by_weights, _ = by_autograd(seed)
        found_tokens, found_weights = grconv_gradient(tokens, weights, own)
        torch.testing.assert_close(found_tokens, by_tokens, rtol=1e-9, atol=1e-10)
        for found, wanted in zip(found_weights, by_weights, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-10)


def printed_below(grad: Tensor, step: Step, weights: GrConvWeights, *, transposed: bool, gates: bool) -> Tensor:
    """[S0.11-12] as printed: the Jacobians times the gradient, without the gates' own dependence on z."""
    slope = step.gates[2] * (1 - step.sources[2] ** 2)
    found = torch.zeros(len(grad) + 1, DIM, dtype=torch.float64)
    for side, weight in ((0, weights.w_left), (1, weights.w_right)):
        for k in range(len(grad)):
            jacobian = torch.diag(step.gates[side, k]) + torch.diag(slope[k]) @ weight
            if gates:
                for m in range(3):
                    change = step.gates[m, k] * (step.sources[m, k] - step.output[k])
                    own = (weights.g_left, weights.g_right)[side][m * DIM : (m + 1) * DIM]
                    jacobian = jacobian + torch.diag(change) @ own
            found[k + side] += (jacobian.T if transposed else jacobian) @ grad[k]
    return found


def test_the_printed_recursion_misses_the_transpose_and_the_gates() -> None:
    """Erratum 6: as printed off by more than 0.1, with one of the two repairs still wrong, with both exact."""
    tokens, weights = problem()
    steps = grconv_pyramid(tokens, weights, K)
    *_, whole = by_autograd()
    own = by_autograd()[0]
    for d in range(K - 1, 0, -1):
        step, above = steps[d - 1], whole[d]
        wanted = whole[d - 1] - own[d - 1]
        gaps = {
            (transposed, gates): float(
                (printed_below(above, step, weights, transposed=transposed, gates=gates) - wanted).abs().max()
            )
            for transposed in (False, True)
            for gates in (False, True)
        }
        assert gaps[True, True] < 1e-10
        assert min(gaps[False, False], gaps[True, False], gaps[False, True]) > 0.1 * float(wanted.abs().max())
        torch.testing.assert_close(below_gradient(above, step, weights), wanted, rtol=1e-9, atol=1e-10)
    tokens_gap = printed_below(whole[1], steps[0], weights, transposed=False, gates=False) + own[0] - whole[0]
    assert float(tokens_gap.abs().max()) > 0.1


def test_the_printed_gradients_of_weights_are_right_given_the_right_gradients_of_z() -> None:
    """Erratum 7: 13-17 entry by entry; the sums start at d = 2: the embeddings are z^(1), there is no z^(0)."""
    tokens, weights = problem()
    steps = grconv_pyramid(tokens, weights, K)
    *_, by_weights, whole = by_autograd()
    w_left, g_left = torch.zeros(DIM, DIM, dtype=torch.float64), torch.zeros(3 * DIM, DIM, dtype=torch.float64)
    for d in range(2, K + 1):
        step, grad = steps[d - 2], whole[d - 1]
        gates, (below, _, new) = step.gates, step.sources
        for k in range(N - d + 1):
            for i in range(DIM):
                for j in range(DIM):
                    w_left[i, j] += gates[2, k, i] * (1 - new[k, i] ** 2) * below[k, j] * grad[k, i]  # 13-14
                    for which in range(3):
                        local = sum(
                            step.sources[m, k, i]
                            * gates[m, k, i]
                            * below[k, j]
                            * (float(which == m) - gates[which, k, i])
                            for m in range(3)
                        )  # 15-16
                        g_left[DIM * which + i, j] += grad[k, i] * local  # 17
    torch.testing.assert_close(w_left, by_weights.w_left, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(g_left, by_weights.g_left, rtol=1e-9, atol=1e-10)
    assert len(steps) == K - 1  # with z^(1) the embeddings, d = 1 has no weights in it
