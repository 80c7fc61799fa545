"""Misprints in the hidden-unit CRF; see `docs/errata.md`. The truth sums over every tagging and every hidden vector."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

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
