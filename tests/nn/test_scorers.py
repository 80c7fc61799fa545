"""Scorers: neural tensors and hidden units against their equations, with first and second derivatives."""

from __future__ import annotations

import itertools

import pytest
import torch

from trelliswork.errors import ScoreError
from trelliswork.nn.scorers import HiddenUnitScorer, NeuralTensor, TensorScorer
from trelliswork.nn.scorers.hidden_units import plain_softplus_sum, softplus_sum


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_neural_tensor_is_the_equation() -> None:
    torch.manual_seed(0)
    network, x, y = NeuralTensor(3, 2, 4, slices=5).double(), draw(6, 3), draw(6, 2, seed=1)
    v, scores = torch.cat([network.of_first.weight, network.of_second.weight], 1), network(x, y)
    for row in range(6):
        slices = torch.stack([x[row] @ network.tensor[k] @ y[row] for k in range(5)])  # x^T T_k y
        inner = slices + v @ torch.cat([x[row], y[row]]) + network.of_first.bias
        torch.testing.assert_close(scores[row], network.output.weight @ inner.tanh())


def test_a_table_is_scored_row_by_row() -> None:
    torch.manual_seed(0)
    network, x, table = NeuralTensor(3, 2, 4, slices=5).double(), draw(2, 6, 3), draw(7, 2, seed=1)
    expected = network(x.unsqueeze(2).expand(-1, -1, 7, -1), table.expand(2, 6, -1, -1))
    torch.testing.assert_close(network.against(x, table), expected)


def test_gradient_of_the_tensor_scorer() -> None:
    torch.manual_seed(0)
    scorer = TensorScorer(3, 4, slices=2, tag_dim=2).double()
    names = [name for name, _ in scorer.named_parameters()]

    def scores(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(scorer, dict(zip(names, weights, strict=True)), (x,))

    weights = [parameter.detach().requires_grad_() for parameter in scorer.parameters()]
    assert torch.autograd.gradcheck(scores, (draw(2, 3, 3).requires_grad_(), *weights))


def test_bad_sizes_of_a_tensor() -> None:
    with pytest.raises(ScoreError, match="sizes must be at least 1; got dims 3 and 2, 1 outputs, 0 slices"):
        NeuralTensor(3, 2, slices=0)


def test_hidden_units_are_summed_out() -> None:
    torch.manual_seed(0)
    scorer, x = HiddenUnitScorer(3, num_tags=2, n_hidden=4).double(), draw(5, 3)
    inputs = scorer.linear(x)
    for t, tag in itertools.product(range(5), range(2)):
        energies = [
            sum((inputs[t, h] + scorer.by_tag[h, tag]) * on for h, on in enumerate(units))
            for units in itertools.product((0, 1), repeat=4)
        ]
        expected = scorer.bias[tag] + torch.logsumexp(torch.stack([torch.as_tensor(e) for e in energies]).double(), 0)
        torch.testing.assert_close(scorer(x[None])[0, t, tag], expected)


@pytest.mark.parametrize(("n_hidden", "scale"), [(1, 1.0), (7, 1.0), (1203, 1.0), (30, 1e-6), (30, 500.0)])
def test_the_kernel_is_the_plain_sum(n_hidden: int, scale: float) -> None:
    inputs = (scale * draw(2, 3, n_hidden)).requires_grad_()
    by_tag, seed = draw(n_hidden, 5, seed=1).requires_grad_(), draw(2, 3, 5, seed=2)
    sums, expected = softplus_sum(inputs, by_tag), plain_softplus_sum(inputs, by_tag)
    torch.testing.assert_close(sums, expected, rtol=1e-12, atol=1e-12)
    fast = torch.autograd.grad(sums, [inputs, by_tag], seed)
    slow = torch.autograd.grad(expected, [inputs, by_tag], seed)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)
    single = softplus_sum(inputs.float(), by_tag.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), expected, rtol=1e-5, atol=1e-5)


def test_first_and_second_derivatives_of_the_sum() -> None:
    parts = (draw(3, 4).requires_grad_(), draw(4, 2, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(softplus_sum, parts)
    assert torch.autograd.gradgradcheck(softplus_sum, parts)


def test_maps_over_examples_take_the_plain_way() -> None:
    inputs, by_tag = draw(3, 2, 4), draw(4, 2, seed=1)
    mapped = torch.func.vmap(lambda each: softplus_sum(each, by_tag))(inputs)
    torch.testing.assert_close(mapped, softplus_sum(inputs, by_tag))
