"""Learning rates, layer groups, averages: against the formulas written out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trelliswork.training.averaging import WeightAverage, averages_in
from trelliswork.training.config import TrainingConfig
from trelliswork.training.schedules import (
    GradualUnfreezing,
    layer_groups,
    make_optimizer,
    make_schedule,
    noam,
    slanted_triangle,
)

RATE = 0.1


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scorer = nn.Linear(3, 2)
        self.encoder = nn.Linear(4, 3)
        self.inputs = nn.Embedding(5, 4)
        self.fixed = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scorer(self.encoder(self.inputs(tokens)))


def rates(n_steps: int, **settings: Any) -> list[float]:
    config = TrainingConfig(lr=RATE, **settings)
    optimizer = make_optimizer(nn.Linear(1, 1), config)
    schedule = make_schedule(optimizer, config, n_steps)
    found = []
    for _ in range(n_steps + 1):
        found.append(optimizer.param_groups[0]["lr"] / RATE)
        schedule.step()
    return found


def test_linear_and_cosine_reach_zero_and_constant_stays() -> None:
    assert rates(4, decay="linear") == pytest.approx([1, 0.75, 0.5, 0.25, 0])
    assert rates(4, decay="cosine") == pytest.approx([(1 + math.cos(math.pi * i / 4)) / 2 for i in range(5)])
    assert rates(4, decay="constant") == [1.0] * 5


def test_warm_up_rises_to_the_full_rate_and_then_decays() -> None:
    assert rates(10, decay="linear", warmup=0.4) == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0]
    )
    assert rates(4, decay="constant", warmup=0.5) == pytest.approx([1 / 3, 2 / 3, 1, 1, 1])


def test_inverse_falls_once_an_epoch() -> None:
    found = rates(6, decay="inverse", epochs=3, decay_rate=0.5)
    assert found[:6] == pytest.approx([1, 1, 1 / 1.5, 1 / 1.5, 1 / 2, 1 / 2])


@pytest.mark.parametrize(("n_steps", "rise"), [(100, 0.1), (40, 0.25)])
def test_the_slanted_triangle_is_the_printed_one_where_its_cut_is_whole(n_steps: int, rise: float) -> None:
    cut = math.floor(n_steps * rise)
    for t in range(n_steps + 1):
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / rise - 1))
        assert slanted_triangle(t, n_steps, rise) == pytest.approx((1 + p * (32 - 1)) / 32)
    assert rates(n_steps, decay="triangular", warmup=rise)[cut] == pytest.approx(1)


def test_the_printed_slanted_triangle_goes_below_zero_where_its_cut_is_not_whole() -> None:
    """Erratum 38."""
    t, cut = 19, math.floor(19 * 0.1)
    printed = (1 + (1 - (t - cut) / (cut * (1 / 0.1 - 1))) * 31) / 32
    assert printed < 0
    assert slanted_triangle(19, 19) == pytest.approx(1 / 32)
    assert all(0 < slanted_triangle(step, n) <= 1 for n in range(1, 30) for step in range(n + 1))


def algorithm_2(theta: Tensor, gradients: list[Tensor], rate: float, decay: float, *, in_line_6: bool) -> Tensor:
    """AdamW by hand; the decay is scaled by the rate, as in torch."""
    (beta_1, beta_2), m, v = (0.9, 0.99), torch.zeros_like(theta), torch.zeros_like(theta)
    for t, gradient in enumerate(gradients, 1):
        g = gradient + decay * theta if in_line_6 else gradient
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
        m_hat, v_hat = m / (1 - beta_1**t), v / (1 - beta_2**t)
        theta = theta - rate * (m_hat / (v_hat.sqrt() + 1e-8) + decay * theta)
    return theta


def stepped(optimizer: Any, layer: nn.Linear, gradients: list[Tensor], decay: float) -> Tensor:
    steps = make_optimizer(layer, TrainingConfig(optimizer=optimizer, lr=0.01, l2=decay, decay="constant"))
    for gradient in gradients:
        layer.weight.grad = gradient.clone()
        steps.step()
    return layer.weight.detach()


def some_gradients(n: int, scale: float = 1.0) -> tuple[nn.Linear, Tensor, list[Tensor]]:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2, bias=False).double()
    return layer, layer.weight.detach().clone(), [scale * torch.randn(2, 3).double() for _ in range(n)]


def test_adamw_is_algorithm_2() -> None:
    layer, theta, gradients = some_gradients(5)
    found = stepped("adamw", layer, gradients, decay=0.1)
    torch.testing.assert_close(found, algorithm_2(theta, gradients, 0.01, 0.1, in_line_6=False))


def test_algorithm_2_as_printed_decays_twice() -> None:
    """Erratum 39: where there is nothing to learn, AdamW only shrinks each weight by its share."""
    layer, theta, gradients = some_gradients(5, scale=0.0)
    found = stepped("adamw", layer, gradients, decay=0.1)
    torch.testing.assert_close(found, theta * (1 - 0.01 * 0.1) ** 5)
    printed = algorithm_2(theta, gradients, 0.01, 0.1, in_line_6=True)
    assert (printed.abs() < found.abs()).all() and not torch.allclose(printed, found, rtol=1e-2)


def test_weight_decay_is_l2_for_sgd_but_not_for_adam() -> None:
    layer, theta, gradients = some_gradients(4)
    decay, rate = 0.1, 0.5
    decayed = theta
    for gradient in gradients:
        decayed = (1 - rate * decay) * decayed - rate * gradient  # weight decay of λ = α λ'
    sgd = make_optimizer(layer, TrainingConfig(optimizer="momentum", momentum=0.0, lr=rate, l2=decay))
    for gradient in gradients:
        layer.weight.grad = gradient.clone()
        sgd.step()
    torch.testing.assert_close(layer.weight.detach(), decayed)
    by_adam = [stepped(name, some_gradients(4)[0], gradients, decay) for name in ("adam", "adamw")]
    assert not torch.allclose(*by_adam)


def test_momentum_is_heavy_ball() -> None:
    layer = nn.Linear(1, 1, bias=False)
    theta, speed = layer.weight.item(), 0.0
    optimizer = make_optimizer(layer, TrainingConfig(optimizer="momentum", lr=0.1, momentum=0.5))
    for gradient in (1.0, -2.0, 0.5):
        layer.weight.grad = torch.full((1, 1), gradient)
        optimizer.step()
        speed = 0.5 * speed + gradient
        theta -= 0.1 * speed
        assert layer.weight.item() == pytest.approx(theta)


def test_nesterov_adagrad_and_rmsprop_are_their_formulas() -> None:
    rate, decay, gradients = 0.1, 0.8, (1.0, -2.0, 0.5)
    for name, settings in (("nesterov", {"momentum": 0.5}), ("adagrad", {}), ("rmsprop", {"beta2": decay})):
        layer = nn.Linear(1, 1, bias=False)
        theta, speed, squares = layer.weight.item(), 0.0, 0.0
        optimizer = make_optimizer(layer, TrainingConfig(optimizer=name, lr=rate, **settings))  # type: ignore[arg-type]
        for gradient in gradients:
            layer.weight.grad = torch.full((1, 1), gradient)
            optimizer.step()
            if name == "nesterov":
                speed = 0.5 * speed + gradient
                theta -= rate * (gradient + 0.5 * speed)
            else:
                kept, new = (decay, 1 - decay) if name == "rmsprop" else (1.0, 1.0)
                squares = kept * squares + new * gradient**2
                theta -= rate * gradient / squares**0.5
            assert layer.weight.item() == pytest.approx(theta, rel=1e-5)


def test_layer_groups_in_order_of_depth() -> None:
    network = Network()
    groups = layer_groups(network)
    assert [len(group) for group in groups] == [1, 2, 2]
    assert groups[0][0] is network.inputs.weight and groups[2][0] is network.scorer.weight


@pytest.mark.parametrize("optimizer", ["adamw", "momentum"])
def test_each_layer_group_below_the_top_has_a_smaller_rate(optimizer: Any) -> None:
    network = Network()
    config = TrainingConfig(optimizer=optimizer, lr=1.0, layer_decay=2.6)
    found = make_optimizer(network, config).param_groups
    assert [group["lr"] for group in found] == pytest.approx([1 / 2.6**2, 1 / 2.6, 1])
    assert sum(len(group["params"]) for group in found) == 5


def test_layer_rates_multiply_those_of_the_fan_in() -> None:
    network = Network()
    groups = make_optimizer(network, TrainingConfig(optimizer="sgd", lr=1.0, layer_decay=2.0)).param_groups
    found = {id(parameter): group["lr"] for group in groups for parameter in group["params"]}
    weights = (network.inputs.weight, network.encoder.weight, network.scorer.weight)
    assert [found[id(weight)] for weight in weights] == pytest.approx([1 / 4, 1 / 4 / 2, 1 / 3])


def test_gradual_unfreezing_trains_one_group_more_in_each_epoch() -> None:
    network = Network()
    unfreezing = GradualUnfreezing(network)
    optimizer = make_optimizer(network, TrainingConfig(optimizer="adamw", lr=0.1, l2=0.1))
    names = ("inputs", "encoder", "scorer")
    moved = []
    for epoch in (1, 2, 3, 4):
        before = {name: getattr(network, name).weight.detach().clone() for name in names}
        unfreezing.begin_epoch(epoch)
        optimizer.zero_grad()
        network(torch.arange(5)).square().sum().backward()
        optimizer.step()
        moved.append([name for name in names if not torch.equal(before[name], getattr(network, name).weight)])
    assert moved == [["scorer"], ["encoder", "scorer"], [*names], [*names]]
    assert not network.fixed.requires_grad
    unfreezing.begin_epoch(1)
    unfreezing.end()
    assert all(parameter.requires_grad for group in layer_groups(network) for parameter in group)
    assert len(layer_groups(network)) == 3


def averaged(decay: float | None, values: list[float]) -> float:
    layer = nn.Linear(1, 1, bias=False).double()
    average = WeightAverage(layer, decay)
    for value in values:
        nn.init.constant_(layer.weight, value)
        average.update()
    with average.applied():
        found = layer.weight.item()
    assert layer.weight.item() == values[-1], "the model goes on with its own weights"
    return found


def test_the_plain_average_is_the_mean() -> None:
    assert averaged(None, [1.0, 5.0, 6.0, 0.0]) == pytest.approx(3.0)


def test_the_moving_average_forgets_its_first_steps_sooner() -> None:
    values, mean = [3.0, 1.0, 4.0, 1.0, 5.0], 3.0
    for t, value in enumerate(values, 1):
        decay = min(0.35, (1 + t) / (10 + t))
        mean = decay * mean + (1 - decay) * value
    assert averaged(0.35, values) == pytest.approx(mean)


def test_before_the_first_update_the_weights_stay() -> None:
    layer = nn.Linear(1, 1)
    before = layer.weight.item()
    with WeightAverage(layer, None).applied():
        assert layer.weight.item() == before


def test_swa_begins_after_its_share_of_the_epochs() -> None:
    config = TrainingConfig(average="swa", swa_start=0.5, epochs=6)
    assert [averages_in(epoch, config) for epoch in range(1, 7)] == [False, False, False, True, True, True]
    assert not averages_in(1, TrainingConfig()) and averages_in(1, TrainingConfig(average="ema"))


def test_noam_is_the_printed_rate_over_its_highest() -> None:
    """d^(-1/2) min(s^(-1/2), s w^(-3/2)) for steps s counted from 1; the highest is reached at s = w."""
    d, w = 256, 8
    printed = [d**-0.5 * min(s**-0.5, s * w**-1.5) for s in range(1, 41)]
    assert max(printed) == printed[w - 1]
    assert [noam(step, w) for step in range(40)] == pytest.approx([each / max(printed) for each in printed])
    assert rates(39, decay="noam", warmup=0.21, epochs=3) == pytest.approx([each / max(printed) for each in printed])
