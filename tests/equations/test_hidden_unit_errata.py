"""Misprints in the hidden-unit CRF; see `docs/errata.md`. The truth sums over every tagging and every hidden vector."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.hand_gradients.hidden_units import HiddenUnitParameters, hidden_unit_loss_gradient
from trelliswork.distributions import LinearChain
from trelliswork.nn.scorers import HiddenUnitScorer
from trelliswork.semirings import Real
from trelliswork.structures.chain import structure

T, Y, H, D = 3, 2, 2, 2


class Model(NamedTuple):
    x: Tensor
    transitions: Tensor  # A
    w: Tensor  # [h, d]
    v: Tensor  # [h, y]
    b: Tensor
    c: Tensor
    start: Tensor  # π
    end: Tensor  # τ


def random_model(seed: int) -> Model:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((T, D), (Y, Y), (H, D), (H, Y), (H,), (Y,), (Y,), (Y,))
    return Model(*(torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes))


def energy(m: Model, tags: tuple[int, ...], units: tuple[tuple[int, ...], ...]) -> float:
    """E(x, z, y), term by term: A from the second position on, π at the first and τ at the last."""
    total = float(m.start[tags[0]] + m.end[tags[-1]])
    for t, tag in enumerate(tags):
        total += float(m.c[tag]) + (float(m.transitions[tags[t - 1], tag]) if t > 0 else 0.0)
        total += sum(float(m.w[h] @ m.x[t] + m.v[h, tag] + m.b[h]) for h in range(H) if units[t][h])
    return total


def every_sequence() -> list[tuple[int, ...]]:
    return list(itertools.product(range(Y), repeat=T))


def enumerated(m: Model) -> dict[tuple[int, ...], float]:
    """p(y | x), the units of each position summed out one by one."""
    states = list(itertools.product((0, 1), repeat=H))
    weights = {
        tags: math.fsum(math.exp(energy(m, tags, units)) for units in itertools.product(states, repeat=T))
        for tags in every_sequence()
    }
    return {tags: weight / math.fsum(weights.values()) for tags, weight in weights.items()}


def product_form(m: Model, *, first_c: bool, before: int | None) -> dict[tuple[int, ...], float]:
    """e^{π + τ} Π_t e^{c + A} Π_h (1 + e^{o_h}); `before`: the y_0 of a term A at t = 1, None for no such term."""
    weights = {}
    for tags in every_sequence():
        weight = math.exp(float(m.start[tags[0]] + m.end[tags[-1]]))
        for t, tag in enumerate(tags):
            if t > 0 or first_c:
                weight *= math.exp(float(m.c[tag]))
            arrives_from = tags[t - 1] if t > 0 else before
            if arrives_from is not None:
                weight *= math.exp(float(m.transitions[arrives_from, tag]))
            for h in range(H):
                weight *= 1 + math.exp(float(m.b[h] + m.w[h] @ m.x[t] + m.v[h, tag]))
        weights[tags] = weight
    return {tags: weight / math.fsum(weights.values()) for tags, weight in weights.items()}


def scorer_of(m: Model) -> HiddenUnitScorer:
    scorer = HiddenUnitScorer(D, num_tags=Y, n_hidden=H).double()
    with torch.no_grad():
        scorer.linear.weight.copy_(m.w)
        scorer.linear.bias.copy_(m.b)
        scorer.by_tag.copy_(m.v)
        scorer.bias.copy_(m.c)
    return scorer


def chain_of(m: Model) -> LinearChain:
    return LinearChain(scorer_of(m)(m.x[None]).detach(), m.transitions, m.start, m.end)


def gap(found: dict[tuple[int, ...], float], wanted: dict[tuple[int, ...], float]) -> float:
    return max(abs(found[tags] - wanted[tags]) for tags in wanted)


def test_transitions_begin_at_the_second_position_and_biases_at_the_first() -> None:
    """Erratum 24: the A term belongs to t >= 2, and c·y_1 stays; any y_0, or leaving out both, is another model."""
    worst = [0.0, 0.0, 0.0]
    for m in map(random_model, range(5)):
        wanted = enumerated(m)
        assert gap(product_form(m, first_c=True, before=None), wanted) < 1e-12
        printed = [product_form(m, first_c=True, before=before) for before in range(Y)]
        shortened = product_form(m, first_c=False, before=None)
        worst = [max(*pair) for pair in zip(worst, (gap(each, wanted) for each in (*printed, shortened)), strict=True)]
        chain = chain_of(m)
        for tags, p in wanted.items():
            assert chain.log_prob(torch.tensor([tags])).exp().item() == pytest.approx(p, rel=1e-10)
    assert min(worst) > 0.02


def test_the_recursions_begin_with_the_boundary_terms() -> None:
    """Erratum 24: α_1 = e^π ψ_1 and β_T = e^τ give Z; from α_0 = 1 and β_T = 1 it comes out otherwise."""
    m = random_model(5)
    chain = chain_of(m)
    states = list(itertools.product((0, 1), repeat=H))
    z = math.fsum(
        math.exp(energy(m, tags, units)) for tags in every_sequence() for units in itertools.product(states, repeat=T)
    )
    assert chain.log_partition.exp().item() == pytest.approx(z, rel=1e-10)
    psi = chain.emissions[0].exp()  # Π_h (1 + e^{o_h}) e^c at [t, y]
    arcs = m.transitions.exp()
    alpha = m.start.exp() * psi[0]
    torch.testing.assert_close(structure.forward(chain._chain, Real())[0][0], alpha)
    torch.testing.assert_close(structure.backward(chain._chain, Real())[-1][0], m.end.exp())
    literal = torch.ones(Y, dtype=torch.float64)
    for t in range(T):
        alpha = alpha if t == 0 else (alpha @ arcs) * psi[t]
        literal = (literal @ arcs) * psi[t]
    assert float(alpha @ m.end.exp()) == pytest.approx(z, rel=1e-10)
    assert abs(float(literal.sum()) / z - 1) > 0.01


def test_hidden_units_take_part_in_learning() -> None:
    """Tags by parity of two inputs: no linear score tells them apart, hidden units do."""
    torch.manual_seed(1)
    x = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]])
    tags = torch.tensor([[0, 1, 1, 0]])
    scorer = HiddenUnitScorer(2, num_tags=2, n_hidden=8)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.1)
    for _ in range(400):
        loss = -LinearChain(scorer(x), torch.zeros(2, 2)).log_prob(tags).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


# Gradients -----------------------------------------------------------------------------------------

TAGS = torch.tensor([1, 0, 1])


def parameters_of(m: Model) -> HiddenUnitParameters:
    return HiddenUnitParameters(m.w, m.v, m.b, m.c, m.transitions, m.start, m.end)


def slope(m: Model, name: str) -> Tensor:
    """∂(-log p(TAGS | x)) by one parameter: central differences of the enumerated probability."""
    value = getattr(m, name)
    found = torch.zeros_like(value)
    for place in itertools.product(*map(range, value.shape)):
        losses = []
        for step in (1e-5, -1e-5):
            moved = value.clone()
            moved[place] += step
            losses.append(-math.log(enumerated(m._replace(**{name: moved}))[tuple(TAGS.tolist())]))
        found[place] = (losses[0] - losses[1]) / 2e-5
    return found


def pieces(m: Model) -> tuple[Tensor, Tensor, Tensor]:
    """1[y_t = y] - γ_t(y) [n, y]; o(h, y) [n, h, y]; posteriors of pairs [n-1, y, y]."""
    chain = chain_of(m)
    o = (m.x @ m.w.T + m.b)[:, :, None] + m.v
    return torch.eye(Y)[TAGS].double() - chain.marginals[0], o, chain.pairwise_marginals[0]


@pytest.mark.parametrize("seed", range(2))
def test_hand_gradients_are_those_of_the_enumerated_loss(seed: int) -> None:
    m = random_model(seed)
    found = hidden_unit_loss_gradient(m.x, parameters_of(m), TAGS)
    for name, value in found._asdict().items():
        torch.testing.assert_close(value, slope(m, name), atol=1e-8, rtol=1e-6)


def test_hand_gradients_are_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    n, d, h, c = 6, 4, 5, 3
    shapes = ((h, d), (h, c), (h,), (c,), (c, c), (c,), (c,))
    model = HiddenUnitParameters(*(torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes))
    x, tags = torch.randn(n, d, dtype=torch.float64, generator=generator), torch.tensor([0, 2, 1, 1, 0, 2])
    leaves = HiddenUnitParameters(*(each.clone().requires_grad_() for each in model))
    scorer = HiddenUnitScorer(d, num_tags=c, n_hidden=h).double()
    weights = {
        "linear.weight": leaves.w, "linear.bias": leaves.b, "by_tag": leaves.v, "bias": leaves.c,
    }  # fmt: skip
    scores = torch.func.functional_call(scorer, weights, (x[None],))
    loss = -LinearChain(scores, leaves.transitions, leaves.start, leaves.end).log_prob(tags[None]).sum()
    wanted = torch.autograd.grad(loss, list(leaves))
    for found, value in zip(hidden_unit_loss_gradient(x, model, tags), wanted, strict=True):
        torch.testing.assert_close(found, value, atol=1e-10, rtol=1e-10)


def test_the_bias_of_a_label_is_outside_its_units() -> None:
    """Erratum 25: c_y stands beside the units, not in o(h, y); its gradient has no sum over units."""
    m = random_model(3)
    surplus, o, _ = pieces(m)
    torch.testing.assert_close(-surplus.sum(0), slope(m, "c"), atol=1e-8, rtol=1e-6)
    printed = -(surplus * torch.sigmoid(o).sum(1)).sum(0)
    assert (printed - slope(m, "c")).abs().max() > 0.05
    wanted = slope(m, "v")
    torch.testing.assert_close(-(surplus[:, None] * torch.sigmoid(o)).sum(0), wanted, atol=1e-8, rtol=1e-6)
    inside = -(surplus[:, None] * torch.sigmoid(o + m.c)).sum(0)
    assert (inside - wanted).abs().max() > 0.02


def test_the_units_of_the_summed_label_take_part() -> None:
    """Erratum 26: with o(h, y_t) under the sum over y, the differences cancel and every gradient is 0."""
    m = random_model(4)
    surplus, o, _ = pieces(m)
    wanted = slope(m, "b")
    torch.testing.assert_close(-(surplus[:, None] * torch.sigmoid(o)).sum((0, 2)), wanted, atol=1e-8, rtol=1e-6)
    gold_only = o[torch.arange(T), :, TAGS]  # o(h, y_t)
    printed = -(surplus.sum(1, keepdim=True) * torch.sigmoid(gold_only)).sum(0)
    assert printed.abs().max() < 1e-12
    assert wanted.abs().max() > 0.05


def test_the_gradient_of_transitions_needs_pairs() -> None:
    """Erratum 27: for A the posteriors of single labels are not enough; those of pairs, from t = 2 on, are."""
    m = random_model(2)
    surplus, _, xi = pieces(m)
    gold = torch.eye(Y)[TAGS].double()
    wanted = slope(m, "transitions")
    corrected = -(gold[:-1, :, None] * gold[1:, None, :] - xi).sum(0)
    torch.testing.assert_close(corrected, wanted, atol=1e-8, rtol=1e-6)
    printed = -(gold[:-1, :, None] * surplus[1:, None, :]).sum(0)
    assert (printed - wanted).abs().max() > 0.05
