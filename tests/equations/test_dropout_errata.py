"""Dropout as variational inference; see `docs/errata.md`."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from trelliswork.nn.inputs import VariationalDropout


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_the_divergence_has_minus_the_expected_log_likelihood() -> None:
    """Erratum 40: the sum of expected log-likelihoods is printed without its minus."""
    prior, log_likelihoods = draw(3, seed=0).softmax(0), draw(4, 3, seed=1)  # three values of ω, four data
    joint = prior.log() + log_likelihoods.sum(0)
    posterior, log_evidence = joint.softmax(0), joint.logsumexp(0)
    wrong = (prior.log() - log_likelihoods.sum(0)).softmax(0)  # prefers what explains the data worst
    right, printed = [], []
    for q in (posterior, wrong, *(draw(3, seed=seed).softmax(0) for seed in range(2, 30))):
        expected, to_prior = (q * log_likelihoods.sum(0)).sum(), (q * (q / prior).log()).sum()
        right.append(-expected + to_prior)
        printed.append(expected + to_prior)
        torch.testing.assert_close(right[-1], (q * (q / posterior).log()).sum() - log_evidence)
    assert torch.stack(right).argmin() == 0
    assert torch.stack(printed).argmin() == 1


def test_the_loss_under_a_draw_is_unbiased() -> None:
    torch.manual_seed(0)
    share, tokens, gold = 0.25, draw(1, 5, 3, seed=4), torch.tensor([0, 1, 1, 0, 1])
    read, dropout = nn.Linear(3, 2).double(), VariationalDropout(share)

    def loss(vectors: Tensor) -> Tensor:
        scores = read(vectors).log_softmax(-1)
        return -scores.gather(-1, gold.expand(len(vectors), -1).unsqueeze(-1)).sum((1, 2))

    exact = torch.zeros((), dtype=torch.float64)
    for kept in itertools.product((0.0, 1.0), repeat=3):
        n_kept = int(sum(kept))
        exact += (1 - share) ** n_kept * share ** (3 - n_kept) * loss(tokens * torch.tensor(kept) / (1 - share))[0]
    sampled = loss(dropout(tokens.expand(20_000, -1, -1)))
    assert abs(sampled.mean() - exact) < 4 * sampled.std() / len(sampled) ** 0.5
