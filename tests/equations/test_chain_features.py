"""A linear-chain CRF written with feature functions is the chain of scores that the library takes.

θ·f(y_t, y_{t-1}, x_t) with node and edge observations [S4.80-82] becomes emissions and per-position transitions; the
distribution, the likelihood and its gradient are compared with sums over every tag sequence.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import LinearChain
from trelliswork.nn.scorers import LinearScorer

N, C, M = 4, 3, 2  # positions, tags, observation functions
both_backends = pytest.mark.parametrize("backend", ["kernel", "torch"])


class FeatureModel:
    """Weights θ of node observations [c, m] and of edge observations [c, c, m], and observations q(x_t) [n, m]."""

    def __init__(self, seed: int):
        generator = torch.Generator().manual_seed(seed)
        self.q = torch.randn(N, M, dtype=torch.float64, generator=generator)
        self.node = torch.randn(C, M, dtype=torch.float64, generator=generator).requires_grad_()
        self.edge = torch.randn(C, C, M, dtype=torch.float64, generator=generator).requires_grad_()

    def counts(self, tags: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Σ_t f(y_t, y_{t-1}, x_t): q_m(x_t) 1[y_t = y] and q_m(x_t) 1[y_{t-1} = y', y_t = y]."""
        node, edge = torch.zeros(C, M, dtype=torch.float64), torch.zeros(C, C, M, dtype=torch.float64)
        for t, tag in enumerate(tags):
            node[tag] += self.q[t]
            if t > 0:
                edge[tags[t - 1], tag] += self.q[t]
        return node, edge

    def log_probs(self) -> dict[tuple[int, ...], float]:
        """[S4.58, 73-75] literally: exp of θ·f for each sequence, over the sum of all."""
        scores = {}
        for tags in itertools.product(range(C), repeat=N):
            node, edge = self.counts(tags)
            scores[tags] = ((self.node * node).sum() + (self.edge * edge).sum()).item()
        log_z = torch.logsumexp(torch.tensor(list(scores.values()), dtype=torch.float64), 0).item()
        return {tags: score - log_z for tags, score in scores.items()}

    def expected_counts(self) -> tuple[Tensor, Tensor]:
        node, edge = torch.zeros(C, M, dtype=torch.float64), torch.zeros(C, C, M, dtype=torch.float64)
        for tags, log_p in self.log_probs().items():
            of_node, of_edge = self.counts(tags)
            p = torch.tensor(log_p, dtype=torch.float64).exp()
            node, edge = node + p * of_node, edge + p * of_edge
        return node, edge

    def chain(self, backend: str) -> LinearChain:
        """The same θ·f as scores: emissions [1, n, c] and the arcs into positions 2..n, [1, n-1, c, c]."""
        emissions = self.q @ self.node.T
        transitions = torch.einsum("tm,ijm->tij", self.q[1:], self.edge)
        return LinearChain(emissions[None], transitions[None], backend=backend)  # type: ignore[arg-type]


@both_backends
@pytest.mark.parametrize("seed", range(5))
def test_edge_observations_are_transitions_by_position(backend: str, seed: int) -> None:
    model = FeatureModel(seed)
    chain = model.chain(backend)
    for tags, log_p in model.log_probs().items():
        assert chain.log_prob(torch.tensor([tags])).item() == pytest.approx(log_p, abs=1e-10)


@both_backends
def test_without_edge_observations_the_transitions_are_shared(backend: str) -> None:
    """[S4.82]: 1[y_t = y, y_{t-1} = y'] alone is one weight an arc, at every position."""
    model = FeatureModel(0)
    shared = model.edge[:, :, 0].detach()
    emissions = (model.q @ model.node.T).detach()[None]
    short = LinearChain(emissions, shared, backend=backend)  # type: ignore[arg-type]
    long = LinearChain(emissions, shared.expand(1, N - 1, C, C), backend=backend)  # type: ignore[arg-type]
    scores = {
        tags: sum(emissions[0, t, tag].item() for t, tag in enumerate(tags))
        + sum(shared[before, after].item() for before, after in itertools.pairwise(tags))
        for tags in itertools.product(range(C), repeat=N)
    }
    log_z = torch.logsumexp(torch.tensor(list(scores.values()), dtype=torch.float64), 0).item()
    for tags, score in scores.items():
        for chain in (short, long):
            assert chain.log_prob(torch.tensor([tags])).item() == pytest.approx(score - log_z, abs=1e-10)


@both_backends
@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_observed_minus_expected_features_minus_the_prior(backend: str, seed: int) -> None:
    """[S4.113-115]: ℓ = log p(y | x) - |θ|² / 2σ²."""
    model, gold, variance = FeatureModel(seed), (1, 0, 2, 2), 0.7
    prior = (model.node.square().sum() + model.edge.square().sum()) / (2 * variance)
    likelihood = model.chain(backend).log_prob(torch.tensor([gold])).squeeze() - prior
    gradients = torch.autograd.grad(likelihood, (model.node, model.edge))
    parts = zip(gradients, model.counts(gold), model.expected_counts(), (model.node, model.edge), strict=True)
    for gradient, observed, expected, theta in parts:
        torch.testing.assert_close(gradient, observed - expected - theta.detach() / variance, rtol=0, atol=1e-10)


def test_a_linear_scorer_weighs_observations_by_tag() -> None:
    """[S3.13; S4.80]: score(y) = Σ_m W_ym q_m(x_t) + b_y, written out."""
    torch.manual_seed(0)
    scorer, x = LinearScorer(M, num_tags=C).double(), FeatureModel(0).q
    with torch.no_grad():
        scorer.linear.bias.copy_(torch.tensor([0.5, -1.0, 2.0]))
    weight, bias = scorer.linear.weight.tolist(), scorer.linear.bias.tolist()
    wanted = [
        [sum(w * q for w, q in zip(weight[y], row, strict=True)) + bias[y] for y in range(C)] for row in x.tolist()
    ]
    torch.testing.assert_close(scorer(x[None])[0].detach(), torch.tensor(wanted, dtype=torch.float64))
