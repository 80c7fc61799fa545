"""Restricted Boltzmann machines: free energy, conditionals and gradient against enumeration; pre-training helps."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn import RBM, PretrainingConfig, pretrain_layers


def every(n: int) -> Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=n)), dtype=torch.float64)


def energy(rbm: RBM, v: Tensor, h: Tensor) -> Tensor:
    """E(v, h) as it is written down."""
    own = -(rbm.visible_bias @ v) if rbm.visible == "binary" else (v - rbm.visible_bias).square().sum() / 2
    return own - rbm.layer.bias @ h - h @ rbm.layer.weight @ v


@pytest.fixture(params=["binary", "gaussian"])
def rbm(request: pytest.FixtureRequest) -> RBM:
    torch.manual_seed(0)
    machine = RBM(nn.Linear(4, 3), request.param).double()
    nn.init.normal_(machine.visible_bias)
    nn.init.normal_(machine.layer.weight)
    return machine


def test_the_free_energy_sums_over_hidden_units(rbm: RBM) -> None:
    v = torch.rand(5, 4, dtype=torch.float64).round() if rbm.visible == "binary" else torch.randn(5, 4).double()
    expected = [-torch.stack([-energy(rbm, row, h) for h in every(3)]).logsumexp(0) for row in v]
    torch.testing.assert_close(rbm.free_energy(v), torch.stack(expected))


def test_hidden_probabilities_are_those_of_the_energy(rbm: RBM) -> None:
    v = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    weights = torch.stack([-energy(rbm, v, h) for h in every(3)]).softmax(0)
    torch.testing.assert_close(rbm.hidden_probabilities(v[None])[0], weights @ every(3))


def test_visible_means_are_those_of_the_energy(rbm: RBM) -> None:
    h = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    means = rbm.visible_means(h[None])[0]
    if rbm.visible == "binary":
        weights = torch.stack([-energy(rbm, v, h) for v in every(4)]).softmax(0)
        torch.testing.assert_close(means, weights @ every(4))
    else:  # the energy is a parabola in v whose lowest point is the mean
        v = means.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(rbm, v, h), v)
        torch.testing.assert_close(slope, torch.zeros(4, dtype=torch.float64))


def test_the_gradient_is_that_of_the_likelihood_when_fantasies_come_from_the_model() -> None:
    """On every v, each drawn as often as the model says, the divergence has the gradient of -log p(data)."""
    torch.manual_seed(1)
    rbm = RBM(nn.Linear(4, 3)).double()
    nn.init.normal_(rbm.visible_bias)
    data = every(4)[[3, 3, 9, 14]]
    parameters = list(rbm.parameters())

    log_z = (-rbm.free_energy(every(4))).logsumexp(0)
    exact = torch.autograd.grad((rbm.free_energy(data) + log_z).mean(), parameters)
    model = (-rbm.free_energy(every(4))).softmax(0).detach()
    positive = torch.autograd.grad(rbm.free_energy(data).mean(), parameters)
    for i, v in enumerate(every(4)):  # divergence is linear in the fantasies: their mean under the model
        share = torch.autograd.grad(rbm.divergence(data, v[None]), parameters)
        if i == 0:
            total = [model[i] * each for each in share]
        else:
            total = [so_far + model[i] * each for so_far, each in zip(total, share, strict=True)]
    for gradient, expected, own in zip(total, exact, positive, strict=True):
        torch.testing.assert_close(gradient, expected)
        assert not torch.allclose(expected, own)


def test_gibbs_sampling_keeps_the_distribution_of_the_model() -> None:
    torch.manual_seed(2)
    rbm = RBM(nn.Linear(3, 2)).double()
    nn.init.normal_(rbm.visible_bias)
    nn.init.normal_(rbm.layer.weight)
    rows, model = every(3), (-rbm.free_energy(every(3))).softmax(0).detach()
    start = rows[torch.multinomial(model, 40_000, replacement=True)]
    after = rbm.gibbs(start, steps=2)
    index = (after @ torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64)).long()
    torch.testing.assert_close(torch.bincount(index, minlength=8).double() / 40_000, model, atol=0.01, rtol=0)


def stripes(n: int) -> Tensor:
    """Rows of two patterns with a little noise."""
    patterns = torch.tensor([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    rows = patterns[torch.arange(n) % 2]
    return torch.where(torch.rand(n, 6) < 0.05, 1 - rows, rows)


def log_likelihood(rbm: RBM, data: Tensor) -> float:
    log_z = (-rbm.free_energy(every(6).float())).logsumexp(0)
    return (-rbm.free_energy(data) - log_z).mean().item()


def test_contrastive_divergence_raises_the_likelihood() -> None:
    torch.manual_seed(3)
    data, rbm = stripes(400), RBM(nn.Linear(6, 3))
    before = log_likelihood(rbm, data)
    optimizer = torch.optim.SGD(rbm.parameters(), lr=0.2)
    for _ in range(300):
        optimizer.zero_grad()
        rbm.divergence(data).backward()
        optimizer.step()
    assert log_likelihood(rbm, data) > before + 0.7


def test_pretrained_layers_bring_their_input_back() -> None:
    torch.manual_seed(4)
    data, layers = stripes(400), [nn.Linear(6, 5), nn.Linear(5, 4)]
    errors = pretrain_layers(layers, data, PretrainingConfig(epochs=30, batch=20))
    blank = RBM(nn.Linear(6, 5)).reconstruction_error(data)
    assert errors[0] < blank / 3 and errors[1] < 0.05


def test_the_seed_decides_alone() -> None:
    torch.manual_seed(4)
    data, config = stripes(40), PretrainingConfig(epochs=2, batch=20)
    errors = [pretrain_layers([nn.Linear(6, 5), nn.Linear(5, 4)], data, config) for _ in range(2)]
    assert errors[0] == errors[1]


def test_gaussian_data_is_learned() -> None:
    torch.manual_seed(5)
    data = 3 * stripes(400) - 1.5
    (error,) = pretrain_layers([nn.Linear(6, 4)], data, PretrainingConfig(epochs=30, lr=0.01), visible="gaussian")
    assert error < data.var().item() / 3


def test_wrong_data_is_explained() -> None:
    layer = nn.Linear(6, 5)
    with pytest.raises(ScoreError, match=r"must be \(rows, 6\)"):
        pretrain_layers([layer], torch.zeros(3, 5))
    with pytest.raises(ScoreError, match="with at least one row"):
        pretrain_layers([layer], torch.zeros(0, 6))
    with pytest.raises(ScoreError, match=r"must lie in 0\.\.1"):
        pretrain_layers([layer], torch.full((3, 6), 2.0))
    with pytest.raises(ScoreError, match="visible must be one of"):
        RBM(layer, "poisson")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="at least 1"):
        PretrainingConfig(epochs=0)
