"""The Markov property of the chain: given its neighbours, a tag does not depend on the rest."""

from __future__ import annotations

import itertools

import torch

from trelliswork.distributions import LinearChain

N, C = 5, 3


def test_a_tag_depends_on_its_neighbours_only() -> None:
    """[S4.57]: p(y_t | all others) by the product is p(y_t | y_{t-1}, y_{t+1}), whatever the others are."""
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(1, N, C, dtype=torch.float64, generator=generator)
    chain = LinearChain(emissions, torch.randn(1, N - 1, C, C, dtype=torch.float64, generator=generator))
    for t in range(N):
        near = [s for s in (t - 1, t + 1) if 0 <= s < N]
        for others in itertools.product(range(C), repeat=N - 1):
            tags = torch.tensor([[*others[:t], -100, *others[t:]]])
            neighbours = torch.full((1, N), -100)
            neighbours[0, near] = tags[0, near]
            given_all = chain.constrain(tags).marginals[0, t]
            torch.testing.assert_close(given_all, chain.constrain(neighbours).marginals[0, t])
    apart = torch.full((1, N), -100)
    apart[0, 4] = 1
    assert (chain.constrain(apart).marginals[0, 2] - chain.marginals[0, 2]).abs().max() > 1e-3  # not independent
