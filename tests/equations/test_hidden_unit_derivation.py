"""From the log-likelihood of the hidden-unit CRF to its gradients, step by step, over every tagging."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from tests.equations.test_hidden_unit_errata import Model, T, enumerated, every_sequence, random_model
from tests.hand_gradients.hidden_units import HiddenUnitParameters, hidden_unit_loss_gradient

GOLD = (0, 1, 1)


def sum_of_psi(m: Model, t: int, tags: tuple[int, ...]) -> Tensor:
    """Σ_z ψ_t [S4.158], π and τ at the ends and A from the second position on."""
    inner = m.c[tags[t]] + (m.transitions[tags[t - 1], tags[t]] if t else m.start[tags[t]])
    inner = inner + (m.end[tags[t]] if t == T - 1 else 0)
    return inner.exp() * (1 + (m.b + m.w @ m.x[t] + m.v[:, tags[t]]).exp()).prod()


def log_weight(m: Model, tags: tuple[int, ...]) -> Tensor:
    return torch.stack([sum_of_psi(m, t, tags).log() for t in range(T)]).sum()


def learning(seed: int) -> tuple[Model, dict[str, Tensor]]:
    m = Model(*(part.requires_grad_() for part in random_model(seed)))
    return m, {name: getattr(m, name) for name in HiddenUnitParameters._fields}


def gradients(value: Tensor, by: dict[str, Tensor]) -> dict[str, Tensor]:
    found = torch.autograd.grad(value, list(by.values()), allow_unused=True, materialize_grads=True, retain_graph=True)
    return dict(zip(by, found, strict=True))


def test_the_loss_is_a_sum_over_positions_less_log_z() -> None:
    m = random_model(3)
    log_z = torch.stack([log_weight(m, tags) for tags in every_sequence()]).logsumexp(0)
    for tags, probability in enumerated(m).items():
        assert math.isclose(float(log_weight(m, tags) - log_z), math.log(probability), rel_tol=1e-9)


def test_the_derivative_of_a_position_is_a_sum_over_units() -> None:
    m, by = learning(4)
    for t, tags in itertools.product(range(T), every_sequence()):
        o = m.b + m.w @ m.x[t] + m.v[:, tags[t]]
        found, of_psi = gradients(sum_of_psi(m, t, tags).log(), by), gradients(sum_of_psi(m, t, tags), by)
        for name in ("w", "v", "b"):  # [S4.159-160, 162]: Σ_h σ(o_h) ∂o_h
            expected = gradients((torch.sigmoid(o).detach() * o).sum(), by)[name]
            torch.testing.assert_close(found[name], expected)
            torch.testing.assert_close(of_psi[name], expected * sum_of_psi(m, t, tags))
        for name in ("c", "transitions"):  # [S4.161, 163]
            inner = m.c[tags[t]] + (m.transitions[tags[t - 1], tags[t]] if t else 0)
            torch.testing.assert_close(found[name], gradients(inner, by)[name])
            torch.testing.assert_close(of_psi[name], gradients(inner, by)[name] * sum_of_psi(m, t, tags))


def test_the_derivative_of_log_z_is_a_mean_over_taggings() -> None:
    m, by = learning(5)
    weights = {tags: log_weight(m, tags) for tags in every_sequence()}
    log_z = torch.stack(list(weights.values())).logsumexp(0)
    observed, of_log_z = gradients(weights[GOLD], by), gradients(log_z, by)
    by_hand = hidden_unit_loss_gradient(m.x, HiddenUnitParameters(**by), torch.tensor(GOLD))
    for name in by:
        mean = sum((weights[tags] - log_z).exp() * gradients(weights[tags], by)[name] for tags in weights)
        torch.testing.assert_close(of_log_z[name], mean)  # [S4.165-167, 198-199]
        torch.testing.assert_close(getattr(by_hand, name), -(observed[name] - mean))  # [S4.164, 175-177, 200-202]
    gamma = sum((weights[tags] - log_z).exp() * torch.eye(2, dtype=torch.float64)[list(tags)] for tags in weights)
    gold = torch.eye(2, dtype=torch.float64)[list(GOLD)]
    torch.testing.assert_close(by_hand.start, -(gold - gamma)[0])  # [S4.179]
    torch.testing.assert_close(by_hand.end, -(gold - gamma)[-1])  # [S4.180]
