"""A misprint in the equations of structured attention: the printed form fails, the corrected one is computed."""

from __future__ import annotations

import itertools

import torch

from trelliswork.nn import BernoulliAttention

T = 4
EVERY_Z = list(itertools.product((0, 1), repeat=T))


def random_scores() -> torch.Tensor:
    return torch.randn(T, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_independent_selections_have_a_factor_for_what_is_not_selected() -> None:
    """Erratum 35: Π_t p(z_t = 1) is the same for every z and does not sum to 1; Π_t p(z_t) does."""
    p = random_scores().sigmoid()
    printed = torch.stack([p.prod() for _ in EVERY_Z])
    right = torch.stack([torch.stack([p[t] if z[t] else 1 - p[t] for t in range(T)]).prod() for z in EVERY_Z])
    assert abs(printed.sum() - 1) > 0.1
    torch.testing.assert_close(right.sum(), torch.ones_like(right.sum()))
    marginals = torch.stack([right[[z[t] == 1 for z in EVERY_Z]].sum() for t in range(T)])
    values = torch.eye(T, dtype=torch.float64)[None]
    torch.testing.assert_close(BernoulliAttention()(random_scores()[None], values).weights[0], marginals)


def test_a_sigmoid_of_each_factor_is_no_distribution() -> None:
    """Erratum 35: σ(ψ_t(0)) + σ(ψ_t(1)) is 1 only by chance; σ takes the score of selecting, θ_t."""
    psi = 1 + torch.randn(T, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    printed = torch.stack([torch.stack([psi[t, z[t]] for t in range(T)]).sigmoid().prod() for z in EVERY_Z])
    assert abs(printed.sum() - 1) > 0.1
    theta = psi[:, 1] - psi[:, 0]
    weights = torch.stack([torch.stack([psi[t, z[t]] for t in range(T)]).sum() for z in EVERY_Z]).softmax(0)
    marginals = torch.stack([weights[[z[t] == 1 for z in EVERY_Z]].sum() for t in range(T)])
    torch.testing.assert_close(theta.sigmoid(), marginals)
