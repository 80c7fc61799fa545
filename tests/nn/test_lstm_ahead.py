"""The fused LSTM of one direction is `nn.LSTM`, in value and in both derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from trelliswork.nn.encoders.lstm_fused import ForwardLSTM, Packing, plain_forward_lstm, read_forwards
from trelliswork.runtime.autograd import fused

DIM, HIDDEN = 4, 3
MASKS = {
    "ragged": torch.arange(6) < torch.tensor([6, 2, 1, 4, 5])[:, None],
    "one token": torch.ones(3, 1, dtype=torch.bool),
    "room behind the longest": torch.arange(7) < torch.tensor([3, 2, 1])[:, None],
}


def problem(mask: Tensor, dtype: torch.dtype = torch.float64) -> tuple[nn.LSTM, Tensor]:
    torch.manual_seed(len(mask))
    reader = nn.LSTM(DIM, HIDDEN, batch_first=True).to(dtype)
    return reader, torch.randn(*mask.shape, DIM, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_equals_the_lstm_of_torch(mask: Tensor, dtype: torch.dtype, close: float) -> None:
    reader, tokens = problem(mask, dtype)
    weights = torch.randn(*mask.shape, HIDDEN, dtype=dtype)
    states, expected = read_forwards(reader, tokens, mask), reader(tokens)[0] * mask.unsqueeze(-1)
    assert torch.allclose(states, expected, atol=close)
    inputs = [tokens, *reader.parameters()]
    by_kernel = torch.autograd.grad((states * weights).sum(), inputs)
    by_torch = torch.autograd.grad((expected * weights).sum(), inputs)
    for one, other in zip(by_kernel, by_torch, strict=True):
        assert torch.allclose(one, other, atol=10 * close)


def test_no_gradient_and_no_token() -> None:
    mask = MASKS["ragged"]
    reader, tokens = problem(mask)
    with torch.no_grad():
        assert torch.allclose(read_forwards(reader, tokens, mask), reader(tokens)[0] * mask.unsqueeze(-1))
    assert not read_forwards(reader, tokens, torch.zeros_like(mask)).any()


def test_second_derivatives() -> None:
    mask = torch.arange(3) < torch.tensor([3, 1])[:, None]
    reader, tokens = problem(mask)
    packing = Packing.of(mask)
    weights = [each.detach().clone().requires_grad_() for each in reader.all_weights[0][:3]]

    def states(tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor) -> Tensor:
        return fused(ForwardLSTM(packing), tokens.flatten(0, 1), w_in.T, w_on.T, bias)

    assert torch.autograd.gradcheck(states, (tokens, *weights))
    assert torch.autograd.gradgradcheck(states, (tokens, *weights))
    given = tokens.flatten(0, 1), weights[0].T, weights[1].T, weights[2]
    assert torch.allclose(fused(ForwardLSTM(packing), *given), plain_forward_lstm(*given, packing))
