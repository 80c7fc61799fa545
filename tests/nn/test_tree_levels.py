"""Sequences read side by side: the fused step against operations of torch, with gradients of two orders."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork.nn.decoders.tree import Sequences, read_sequences

WIDTHS = [(1,), (3,), (1, 1, 1), (4, 3, 3, 1), (2, 2, 1)]


def given(widths: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(len(widths))
    shapes = (sum(widths), 12), (3, 12), (widths[0], 3), (widths[0], 3)
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fused_step_is_the_plain_one(widths: tuple[int, ...], dtype: torch.dtype) -> None:
    gates, *others = given(widths, dtype)
    states, expected = read_sequences(gates, widths, *others), Sequences(widths).reference(gates, *others)
    assert states[0].grad_fn.name() == states[1].grad_fn.name() == "_FusedBackward"  # type: ignore[union-attr]
    torch.testing.assert_close(states, expected)
    seeds = [torch.randn_like(each) for each in expected]
    grads = [torch.autograd.grad(each, (gates, *others), seeds) for each in (states, expected)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("widths", WIDTHS[2:])
def test_gradients(widths: tuple[int, ...]) -> None:
    def states(gates: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        return read_sequences(gates, widths, *others)

    assert torch.autograd.gradcheck(states, given(widths))
    assert torch.autograd.gradgradcheck(states, given(widths))


def test_a_state_that_nobody_asks_for_has_no_gradient() -> None:
    gates, *others = given((2, 1))
    states, _ = read_sequences(gates, (2, 1), *others)
    (by_gates,) = torch.autograd.grad(states[0].sum(), gates)
    assert by_gates[0].abs().min() > 0 and not by_gates[1:].any()


def test_where_gradients_are_not_wanted_nothing_is_fused() -> None:
    gates, *others = given((2, 1))
    with torch.no_grad():
        torch.testing.assert_close(read_sequences(gates, (2, 1), *others), Sequences((2, 1)).reference(gates, *others))
