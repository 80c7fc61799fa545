"""The gated recursive convolution: the fused pyramid is the loop over cells, in value and in both derivatives."""

from __future__ import annotations

import pytest
import torch
from benchmarks.grconv_cells import by_cells, forward_backward, problem
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.nn import GatedRecursiveConvolution, PyramidScorer
from trelliswork.nn.encoders.grconv import fused_pyramid, plain_pyramid
from trelliswork.nn.kernel_math import can_fuse


def module_and_tokens(n: int, k: int, dtype: torch.dtype = torch.float64) -> tuple[GatedRecursiveConvolution, Tensor]:
    module, tokens = problem(batch=3, n=n, k=k, dim=5)
    return module.to(dtype), (2 * tokens).detach().to(dtype).requires_grad_()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (2, 4), (7, 1), (7, 4), (40, 3)])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_equals_the_loop_over_cells(n: int, k: int, dtype: torch.dtype, close: float) -> None:
    module, tokens = module_and_tokens(n, k, dtype)
    seed = torch.randn(3, n, k, 5, dtype=dtype)
    pyramid, expected = module(tokens), by_cells(module, tokens)
    torch.testing.assert_close(pyramid, expected, rtol=close, atol=close)
    inputs = [tokens, *module.parameters()]
    grads = torch.autograd.grad(pyramid, inputs, seed)
    slow = torch.autograd.grad(expected, inputs, seed, allow_unused=True)
    for one, other in zip(grads, slow, strict=True):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other, rtol=close, atol=close)


def test_scores_of_any_size_are_exact() -> None:
    module, tokens = module_and_tokens(6, 4)
    for scale in (1e-8, 30.0, 1e4):
        torch.testing.assert_close(module(tokens * scale), by_cells(module, tokens * scale), rtol=1e-10, atol=1e-12)
        single, small = module.float(), (tokens * scale).float()
        torch.testing.assert_close(single(small), by_cells(single, small), rtol=1e-4, atol=1e-5)
        module = module.double()


def test_first_and_second_derivatives() -> None:
    torch.manual_seed(2)
    shapes = ((4, 2, 3), (9, 3), (9, 3), (9,))
    inputs = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    assert torch.autograd.gradcheck(lambda *parts: fused_pyramid(*parts, 3), inputs)
    assert torch.autograd.gradgradcheck(lambda *parts: fused_pyramid(*parts, 3), inputs, fast_mode=True)


def test_a_graph_that_is_kept_gives_the_same_gradient_again() -> None:
    module, tokens = module_and_tokens(6, 3)
    total = module(tokens).sin().sum()
    (first,) = torch.autograd.grad(total, tokens, retain_graph=True)
    (again,) = torch.autograd.grad(total, tokens)
    assert torch.equal(first, again)


def test_other_devices_and_types_take_the_plain_way() -> None:
    assert can_fuse(torch.zeros(1), torch.zeros(1))
    assert not can_fuse(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    assert not can_fuse(torch.zeros(1, dtype=torch.bfloat16))
    assert not can_fuse(torch.zeros(1, device="meta"))
    module, tokens = module_and_tokens(6, 3)
    half = module.bfloat16()(tokens.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), module.double()(tokens), rtol=0.1, atol=0.1)


def test_where_torch_chooses_the_precision_it_does_the_work() -> None:
    module, tokens = module_and_tokens(6, 3, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_fuse(tokens)
        pyramid = module(tokens)
    torch.testing.assert_close(pyramid.float(), module(tokens), rtol=0.1, atol=0.1)


def test_forward_mode_and_maps_over_examples_are_served() -> None:
    module, tokens = module_and_tokens(5, 3)
    direction = torch.randn_like(tokens)
    _, tangent = torch.func.jvp(module, (tokens.detach(),), (direction,))
    step = 1e-6
    expected = (module(tokens + step * direction) - module(tokens - step * direction)) / (2 * step)
    torch.testing.assert_close(tangent, expected, rtol=1e-6, atol=1e-7)
    mapped = torch.func.vmap(lambda each: module(each[None])[0])(tokens.detach())
    torch.testing.assert_close(mapped, module(tokens))


def test_segments_inside_a_sentence_never_see_what_stands_behind_it() -> None:
    for make in (lambda: GatedRecursiveConvolution(5, 4), lambda: PyramidScorer(5, 6, 2, 4)):
        torch.manual_seed(3)
        module, sentence = make().double(), torch.randn(1, 4, 5, dtype=torch.float64)
        alone = module(sentence)
        for padding in (0.0, 1e3, -1e3):
            padded = torch.cat([sentence, torch.full((1, 3, 5), padding, dtype=torch.float64)], 1)
            wide = module(padded)
            for start in range(4):
                for length in range(1, 5 - start):
                    torch.testing.assert_close(wide[0, start, length - 1], alone[0, start, length - 1])


def test_the_benchmark_runs_both_ways() -> None:
    module, tokens = problem(batch=2, n=4, k=3, dim=3)
    for cells in (False, True):
        forward_backward(module, tokens, torch.ones(2, 4, 3, 3), cells=cells)


def test_the_plain_pyramid_has_room_for_lengths_that_no_sentence_has() -> None:
    tokens = torch.randn(2, 1, 3)
    pyramid = plain_pyramid(tokens, torch.zeros(9, 3), torch.zeros(9, 3), torch.zeros(9), 5)
    assert pyramid.shape == (5, 2, 1, 3)
    assert not pyramid[2:].any()


def test_bad_tokens_say_what_to_give() -> None:
    with pytest.raises(ScoreError, match=r"tokens must be \[batch, n, 5\] with n >= 1; got \(2, 3, 4\)"):
        GatedRecursiveConvolution(5, 3)(torch.zeros(2, 3, 4))
    with pytest.raises(ScoreError, match="dim and max_length must be at least 1; got 5 and 0"):
        GatedRecursiveConvolution(5, 0)
