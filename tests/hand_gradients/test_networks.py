"""The hand-derived gradients of [S3] and [S1] equal autograd; the misprinted forms do not."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.hand_gradients import networks as hand

TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def close(actual: Tensor, expected: Tensor) -> bool:
    return torch.allclose(actual, expected, rtol=0, atol=TOLERANCE)


def gradients(loss: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, inputs)


# Layers of [S3]


def test_lookup_backward_sums_over_the_positions_of_a_word() -> None:
    table, words, top = leaf(6, 4), torch.tensor([5, 0, 5, 2]), torch.randn(4, 4, dtype=torch.float64)
    (expected,) = gradients((hand.lookup(table, words) * top).sum(), table)
    assert close(hand.lookup_backward(top, words, 6), expected)


def test_lookup_backward_as_printed_takes_the_wrong_columns() -> None:
    """Erratum 18: the sum over t of column i depends on the word's number, not on where it stands."""
    table, words, top = leaf(4, 3), torch.tensor([3, 0, 3, 2]), torch.randn(4, 3, dtype=torch.float64)
    (expected,) = gradients((hand.lookup(table, words) * top).sum(), table)
    printed = torch.stack([(words == i).sum() * top[i] for i in range(4)])
    assert not torch.allclose(printed, expected, atol=0.1)


def test_linear_backward() -> None:
    inputs, weight, bias, top = leaf(5, 3), leaf(2, 3), leaf(2), torch.randn(5, 2, dtype=torch.float64)
    expected = gradients((F.linear(inputs, weight, bias) * top).sum(), inputs, weight, bias)
    assert close(hand.linear(inputs, weight, bias), F.linear(inputs, weight, bias))
    assert all(map(close, hand.linear_backward(top, inputs, weight), expected))


def test_max_over_time_backward() -> None:
    inputs, top = leaf(5, 3), torch.randn(3, dtype=torch.float64)
    values, positions = hand.max_over_time(inputs)
    (expected,) = gradients((inputs.amax(0) * top).sum(), inputs)
    assert close(values, inputs.amax(0))
    assert close(hand.max_over_time_backward(top, positions, 5), expected)


def test_max_over_anything_but_positions_is_another_layer() -> None:
    """Erratum 18: the argmax printed over t ranges over m, the positions; over features it differs."""
    inputs = torch.tensor([[1.0, 9.0], [2.0, 3.0], [0.0, 4.0]], dtype=torch.float64)
    _, positions = hand.max_over_time(inputs)
    assert positions.tolist() == [1, 0]
    assert inputs.argmax(dim=1).tolist() != positions.tolist()


def test_hardtanh_backward_both_sides_and_between() -> None:
    inputs = (torch.linspace(-3, 3, 12, dtype=torch.float64).reshape(4, 3)).requires_grad_()
    top = torch.randn(4, 3, dtype=torch.float64)
    (expected,) = gradients((F.hardtanh(inputs) * top).sum(), inputs)
    assert close(hand.hardtanh(inputs), F.hardtanh(inputs))
    assert close(hand.hardtanh_backward(top, inputs), expected)


# Sentence-level log-likelihood


def enumerated_cost(f: Tensor, transitions: Tensor, start: Tensor, tags: Tensor) -> Tensor:
    every = [
        hand.sentence_score(f, transitions, start, torch.tensor(path))
        for path in itertools.product(range(f.shape[1]), repeat=len(f))
    ]
    return torch.logsumexp(torch.stack(every), 0) - hand.sentence_score(f, transitions, start, tags)


@pytest.mark.parametrize("tags", [[1], [0, 2], [2, 2, 0, 1, 1]])
def test_sentence_cost_gradient_equals_enumeration_and_autograd(tags: list[int]) -> None:
    f, transitions, start, gold = leaf(len(tags), 3), leaf(3, 3), leaf(3), torch.tensor(tags)
    cost = enumerated_cost(f, transitions, start, gold)
    assert close(hand.sentence_cost(f, transitions, start, gold), cost)
    expected = torch.autograd.grad(cost, (f, transitions, start), allow_unused=True, materialize_grads=True)
    with torch.no_grad():
        actual = hand.sentence_cost_gradient(f, transitions, start, gold)
    assert all(map(close, actual, expected))


def test_the_printed_gold_accumulators_have_the_wrong_sign() -> None:
    """Erratum 16: +1 moves each gold entry by 2, so rows of dC/df sum to 2 instead of 0."""
    f, transitions, start, gold = leaf(4, 3), leaf(3, 3), leaf(3), torch.tensor([0, 1, 1, 2])
    (expected,) = gradients(hand.sentence_cost(f, transitions, start, gold), f)
    with torch.no_grad():
        printed = hand.sentence_cost_gradient(f, transitions, start, gold, gold_accumulator=1.0)
    assert close(expected.sum(1), torch.zeros(4, dtype=torch.float64))
    assert close(printed.f.sum(1), torch.full((4,), 2.0, dtype=torch.float64))


def test_a_square_matrix_without_a_start_row_cannot_score_the_first_tag() -> None:
    """Erratum 18: reading t_0 as one of the tags lends the first word a tag nobody gave it."""
    f, transitions, start, gold = leaf(3, 3), leaf(3, 3), leaf(3), torch.tensor([2, 0, 1])
    with_start_row = hand.sentence_cost(f, transitions, start, gold)
    for borrowed in range(3):
        assert abs(with_start_row - hand.sentence_cost(f, transitions, transitions[borrowed], gold)) > 1e-3


def test_whole_window_network_layer_by_layer() -> None:
    network = hand.WindowNetwork(leaf(9, 4), leaf(6, 12), leaf(6), leaf(3, 6), leaf(3), leaf(3, 3), leaf(3))
    words, tags = torch.tensor([5, 8, 5, 1, 3]), torch.tensor([0, 1, 1, 2, 0])
    tokens = network.table[hand.window_words(words, 3)].reshape(5, 12)
    hidden = F.hardtanh(F.linear(tokens, network.hidden_weight, network.hidden_bias))
    f = F.linear(hidden, network.score_weight, network.score_bias)
    expected = gradients(enumerated_cost(f, network.transitions, network.start, tags), *network)
    with torch.no_grad():
        actual = hand.window_network_gradient(network, words, tags)
    assert all(map(close, actual, expected))
    assert actual.table[0].abs().sum() > 0, "the padding outside the sentence is trained too"
    assert actual.table[7].abs().sum() == 0, "a word that does not occur gets no gradient"


# The context-window CRF of [S1]


def context_case(n: int) -> tuple[Tensor, hand.ContextWeights, Tensor, Tensor]:
    weights = hand.ContextWeights(leaf(3), leaf(3, 4), leaf(3, 4), leaf(3, 4))
    return torch.randn(n, 4, dtype=torch.float64), weights, leaf(3, 3), torch.randint(3, (n,))


def context_cost(unary: Tensor, pairwise: Tensor, tags: Tensor) -> Tensor:
    return enumerated_cost(unary, pairwise, torch.zeros(3, dtype=torch.float64), tags)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_unary_pairwise_and_weight_gradients(n: int) -> None:
    x, weights, pairwise, tags = context_case(n)
    unary = hand.context_scores(x, weights)
    expected = torch.autograd.grad(
        context_cost(unary, pairwise, tags),
        (unary, pairwise, *weights),
        allow_unused=True,
        materialize_grads=True,
    )
    with torch.no_grad():
        p_unary, p_pair = hand.chain_marginals(unary, pairwise)
        grad_unary = hand.unary_gradient(p_unary, tags)
        grad_pair = hand.pairwise_gradient(p_pair, tags).sum(0)
        grad_weights = hand.context_gradient(grad_unary, x)
    assert all(map(close, (grad_unary, grad_pair, *grad_weights), expected))


def test_the_middle_forms_pair_the_gradient_with_the_wrong_neighbour() -> None:
    """Erratum 9: a(-1)(x_k) feeds position k+1, so its gradient against x_(k-1) is off by two positions."""
    x, weights, pairwise, tags = context_case(5)
    unary = hand.context_scores(x, weights)
    expected, expected_next = gradients(context_cost(unary, pairwise, tags), weights.previous, weights.following)
    with torch.no_grad():
        g = hand.unary_gradient(hand.chain_marginals(unary, pairwise)[0], tags)
        at_previous_factor = torch.cat([g[1:], torch.zeros_like(g[:1])])  # of a(-1)(x_k): used at k + 1
        at_following_factor = torch.cat([torch.zeros_like(g[:1]), g[:-1]])  # of a(+1)(x_k): used at k - 1
        printed = at_previous_factor[1:].T @ x[:-1]
        printed_next = at_following_factor[:-1].T @ x[1:]
        corrected = at_previous_factor[:-1].T @ x[:-1]  # a(-1)(x_(k-1)) with x_(k-1)
    assert close(corrected, expected)
    assert not torch.allclose(printed, expected, atol=0.1)
    assert not torch.allclose(printed_next, expected_next, atol=0.1)


def test_sgd_step_equals_torch_with_weight_decay() -> None:
    parameter = leaf(4)
    before = parameter.detach().clone()
    loss_gradient = torch.randn(4, dtype=torch.float64)
    stepped = hand.sgd_step(before, loss_gradient, before, lr=0.1, strength=0.5)  # Omega = |theta|^2 / 2
    parameter.grad = loss_gradient
    torch.optim.SGD([parameter], lr=0.1, weight_decay=0.5).step()
    assert close(stepped, parameter.detach())
