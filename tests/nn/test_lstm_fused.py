"""The fused LSTM is `nn.LSTM` from either end, in value and in both derivatives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from trelliswork.nn.encoders import RecurrentEncoder, recurrent
from trelliswork.nn.encoders.lstm_fused import BiLSTM, Packing, plain_bilstm, read_bidirectional
from trelliswork.runtime.autograd import fused

DIM, HIDDEN = 5, 3
HOLES = torch.tensor([[True, False, True, True, False, True], [False] * 6, [False, False, True, False, False, False]])
MASKS = {
    "ragged": torch.arange(6) < torch.tensor([6, 2, 1, 4, 4, 5, 3, 6, 2])[:, None],
    "holes and a row without tokens": torch.cat([HOLES] * 3),
    "one token": torch.ones(8, 1, dtype=torch.bool),
    "nothing behind the last token": torch.ones(8, 4, dtype=torch.bool),
    "room behind the longest": torch.arange(7) < torch.tensor([3, 2, 1, 1, 2, 3, 3, 1])[:, None],
}


def problem(mask: Tensor, layers: int = 1, dtype: torch.dtype = torch.float64) -> tuple[RecurrentEncoder, Tensor]:
    torch.manual_seed(len(mask))
    encoder = RecurrentEncoder(DIM, hidden=HIDDEN, layers=layers).to(dtype)
    return encoder, torch.randn(*mask.shape, DIM, dtype=dtype).requires_grad_()


def by_torch(encoder: RecurrentEncoder, tokens: Tensor, mask: Tensor) -> Tensor:
    """Run `nn.LSTM` in both directions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent, "MANY", len(mask) + 1)
        return encoder(tokens, mask)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[Packing]:
    """Record the arguments of the kernels, once for each layer."""
    seen: list[Packing] = []

    def read(forwards: Any, backwards: Any, tokens: Tensor, packing: Packing) -> Tensor:
        seen.append(packing)
        return read_bidirectional(forwards, backwards, tokens, packing)

    monkeypatch.setattr(recurrent, "read_bidirectional", read)
    return seen


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_equals_the_lstms_of_torch(
    packed: list[Packing], mask: Tensor, layers: int, dtype: torch.dtype, close: float
) -> None:
    encoder, tokens = problem(mask, layers, dtype)
    states, expected = encoder(tokens, mask), by_torch(encoder, tokens, mask)
    assert len(packed) == layers
    torch.testing.assert_close(states, expected, rtol=close, atol=close)
    assert not states[~mask].any()
    inputs, seed = [tokens, *encoder.parameters()], torch.randn_like(states)
    grads, slow = torch.autograd.grad(states, inputs, seed), torch.autograd.grad(expected, inputs, seed)
    for one, other in zip(grads, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=close, atol=close)


@pytest.mark.parametrize("scale", [1e-8, 30.0, 1e4])
def test_scores_of_any_size_are_exact(scale: float) -> None:
    mask = MASKS["ragged"]
    encoder, tokens = problem(mask)
    torch.testing.assert_close(encoder(tokens * scale, mask), by_torch(encoder, tokens * scale, mask))


def test_first_and_second_derivatives() -> None:
    torch.manual_seed(2)
    packing = Packing.of(HOLES)
    shapes = ((HOLES.numel(), 2), (2, 2, 8), (2, 2, 8), (2, 8))
    inputs = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    torch.testing.assert_close(fused(BiLSTM(packing), *inputs), plain_bilstm(*inputs, packing))
    assert torch.autograd.gradcheck(lambda *parts: fused(BiLSTM(packing), *parts), inputs)
    assert torch.autograd.gradgradcheck(lambda *parts: fused(BiLSTM(packing), *parts), inputs)


def test_a_graph_that_is_kept_gives_the_same_gradient_again() -> None:
    mask = MASKS["ragged"]
    encoder, tokens = problem(mask)
    total = encoder(tokens, mask).sin().sum()
    (first,) = torch.autograd.grad(total, tokens, retain_graph=True)
    (again,) = torch.autograd.grad(total, tokens)
    assert torch.equal(first, again)


def test_second_derivatives_where_only_the_weights_learn() -> None:
    mask = MASKS["ragged"]
    encoder, tokens = problem(mask)
    weight = encoder.forwards[0].weight_hh_l0
    (grad,) = torch.autograd.grad(encoder(tokens.detach(), mask).sum(), weight, create_graph=True)
    (twice,) = torch.autograd.grad(grad.square().sum(), weight)
    assert torch.isfinite(twice).all()
    assert twice.any()


@contextlib.contextmanager
def where_torch_can() -> Iterator[None]:
    """On some processors torch's oneDNN has no LSTM in bfloat16; that is not ours to test."""
    try:
        yield
    except RuntimeError as error:
        if "primitive descriptor" not in str(error):
            raise


def test_torch_reads_few_sentences_and_what_kernels_cannot(packed: list[Packing]) -> None:
    mask = MASKS["ragged"]
    encoder, tokens = problem(mask, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16), where_torch_can():
        encoder(tokens, mask)
    encoder(tokens[:2], mask[:2])
    assert not encoder(tokens, torch.zeros_like(mask)).any()
    with where_torch_can():
        encoder.bfloat16()(tokens.bfloat16(), mask)
    encoder.to("meta")(tokens.bfloat16().to("meta"), mask.to("meta"))
    assert not packed


def test_forward_mode_and_compilers_are_served(packed: list[Packing]) -> None:
    mask = MASKS["ragged"]
    encoder, tokens = problem(mask)
    expected = encoder(tokens, mask)
    assert len(packed) == 1
    compiled = torch.compile(lambda tokens: encoder(tokens, mask), backend="eager")
    torch.testing.assert_close(compiled(tokens), expected)
    direction = torch.randn_like(tokens)
    (grad,) = torch.autograd.grad(expected.sum(), tokens)
    (vjp,) = torch.func.vjp(lambda x: encoder(x, mask).sum(), tokens.detach())[1](torch.ones((), dtype=torch.float64))
    torch.testing.assert_close((vjp * direction).sum(), (grad * direction).sum())
    assert len(packed) == 1


def test_the_names_of_saved_weights_are_those_of_torch() -> None:
    kinds = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    expected = {f"{side}.{layer}.{kind}" for side in ("forwards", "backwards") for layer in (0, 1) for kind in kinds}
    assert set(RecurrentEncoder(DIM, layers=2).state_dict()) == expected
