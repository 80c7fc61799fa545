"""Fan-in initialization and learning rates [S3]."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trelliswork.errors import TrellisworkError
from trelliswork.nn.initialization import fan_in, fan_in_parameter_groups, initialize_fan_in


def saturation(scheme: str, fan: int) -> float:
    """Share of HardTanh units outside [-1, 1] when the inputs have unit variance."""
    torch.manual_seed(0)
    layer = nn.Linear(fan, 2000)
    initialize_fan_in(layer, scheme)  # type: ignore[arg-type]
    return (layer(torch.randn(50, fan)).abs() > 1).float().mean().item()


@pytest.mark.parametrize(
    ("scheme", "fan", "expected"),
    [
        ("uniform", 250, 0.083),
        ("uniform", 1500, 0.083),
        ("normal", 250, 0.317),
        ("normal", 1500, 0.317),
        ("literal", 50, 0.707),
        ("literal", 1500, 0.872),
    ],
)
def test_saturation_of_hardtanh_by_scheme(scheme: str, fan: int, expected: float) -> None:
    """Erratum 17: the printed variance fan^(-1/2) leaves most units without a gradient."""
    assert saturation(scheme, fan) == pytest.approx(expected, abs=0.02)


def test_fan_in_of_each_layer() -> None:
    assert fan_in(nn.Linear(400, 3)) == 400
    assert fan_in(nn.Embedding(1000, 50)) == 1
    assert fan_in(nn.Conv1d(6, 8, kernel_size=5)) == 30
    assert fan_in(nn.Hardtanh()) == 1


def test_unknown_scheme_names_the_choices() -> None:
    with pytest.raises(TrellisworkError, match="uniform, normal, literal; got 'xavier'"):
        initialize_fan_in(nn.Linear(2, 2), "xavier")  # type: ignore[arg-type]


def test_groups_divide_the_learning_rate_and_cover_each_parameter_once() -> None:
    network = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 4), nn.Linear(4, 2))
    network.register_parameter("transitions", nn.Parameter(torch.zeros(2, 2)))
    groups = fan_in_parameter_groups(network, lr=0.8)
    assert {group["fan_in"]: group["lr"] for group in groups} == {1: 0.8, 8: 0.1, 4: 0.2}
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(grouped) == sorted(id(parameter) for parameter in network.parameters())
