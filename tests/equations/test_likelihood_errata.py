"""Misprints in gradients of likelihoods, in the MEMM and in Bayesian prediction; see `docs/errata.md`.

The truth is enumeration of every tag sequence (and every latent sequence), differentiated automatically.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from tests.hand_gradients.likelihood import latent_gradient, penalised_gradient
from trelliswork.distributions import LinearChain, average_argmax, average_log_prob
from trelliswork.errors import ScoreError
from trelliswork.structures.beam import ChainScorer, Tagging, local_log_prob

N, C, M = 3, 2, 2  # positions, tags, observation functions


def every(n: int, c: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(c), repeat=n))


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# --- 22: the gradient in the form of expectations ------------------------------------------------------------


def features(tags: tuple[int, ...], q: Tensor) -> Tensor:
    """Node features q_m(x_t) 1[y_t = y], then arc features 1[y_{t-1} = y', y_t = y], summed over t and laid flat."""
    node, arc = torch.zeros(C, M, dtype=torch.float64), torch.zeros(C, C, dtype=torch.float64)
    for t, tag in enumerate(tags):
        node[tag] += q[t]
        if t > 0:
            arc[tags[t - 1], tag] += 1
    return torch.cat([node.flatten(), arc.flatten()])


def expected_features(theta: Tensor, q: Tensor) -> Tensor:
    table = torch.stack([features(tags, q) for tags in every(len(q), C)])
    return torch.softmax(table @ theta, 0) @ table


def penalised_likelihood(theta: Tensor, data: list[tuple[Tensor, tuple[int, ...]]], variance: float) -> Tensor:
    total = -theta.square().sum() / (2 * variance)
    for q, gold in data:
        table = torch.stack([features(tags, q) for tags in every(len(q), C)])
        total = total + features(gold, q) @ theta - (table @ theta).logsumexp(0)
    return total


def test_expectations_need_the_size_of_the_data_and_the_prior() -> None:
    """Erratum 22: the printed difference of expectations is the gradient divided by N, without the prior's share."""
    theta, variance = random(0, C * M + C * C).requires_grad_(), 0.7
    data = [(random(seed, N, M), gold) for seed, gold in ((1, (0, 1, 1)), (2, (1, 1, 0)), (3, (0, 0, 1)))]
    (wanted,) = torch.autograd.grad(penalised_likelihood(theta, data, variance), theta)
    theta = theta.detach()
    observed = torch.stack([features(gold, q) for q, gold in data])
    expected = torch.stack([expected_features(theta, q) for q, _ in data])
    torch.testing.assert_close(penalised_gradient(observed, expected, theta, variance), wanted)
    printed = observed.mean(0) - expected.mean(0)
    assert (printed - wanted).abs().max() > 0.1
    torch.testing.assert_close(len(data) * printed - theta / variance, wanted)


def test_arc_posteriors_are_given_the_whole_input() -> None:
    """Erratum 22: with p(y, y' | x_t) in place of p(y, y' | x) expected features are others; the chain's are right."""
    theta, q = random(4, C * M + C * C), random(5, N, M)
    node, arc = theta[: C * M].view(C, M), theta[C * M :].view(C, C)
    wanted = expected_features(theta, q)[C * M :].view(C, C)
    chain = LinearChain((q @ node.T)[None], arc)
    torch.testing.assert_close(chain.pairwise_marginals[0].sum(0), wanted)
    printed = torch.zeros(C, C, dtype=torch.float64)
    for t in range(1, N):
        only = torch.zeros_like(q)
        only[t] = q[t]
        printed += LinearChain((only @ node.T)[None], arc).pairwise_marginals[0, t - 1]
    assert (printed - wanted).abs().max() > 0.05


# --- 23: latent variables, the MEMM, Bayesian prediction -----------------------------------------------------


Z = 2  # values of the latent variable beside each tag


def latent_model(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights [y, z, m] and [y', y], and observations [n, m]."""
    return random(seed, C, Z, M).requires_grad_(), random(seed + 1, C, C).requires_grad_(), random(seed + 2, N, M)


def latent_score(node: Tensor, arc: Tensor, q: Tensor, tags: tuple[int, ...], hidden: tuple[int, ...]) -> Tensor:
    score = torch.zeros((), dtype=torch.float64)
    for t, (tag, z) in enumerate(zip(tags, hidden, strict=True)):
        score = score + node[tag, z] @ q[t]
        if t > 0:
            score = score + arc[tags[t - 1], tag]
    return score


def pair_chain(node: Tensor, arc: Tensor, q: Tensor) -> LinearChain:
    """States are pairs (y, z), numbered y Z + z; arcs look at y only."""
    emissions = torch.einsum("yzm,tm->tyz", node, q).reshape(1, N, C * Z)
    return LinearChain(emissions, arc.repeat_interleave(Z, 0).repeat_interleave(Z, 1))


def allow_latent(gold: tuple[int, ...]) -> Tensor:
    allowed = torch.zeros(1, N, C, Z, dtype=torch.bool)
    for t, tag in enumerate(gold):
        allowed[0, t, tag] = True
    return allowed.reshape(1, N, C * Z)


@pytest.mark.parametrize("gold", [(0, 1, 1), (1, 0, 1)])
def test_expected_latent_features_are_of_the_summed_tags(gold: tuple[int, ...]) -> None:
    """Erratum 23: the second term has f(y, y', z_t, x_t) and p(z_t, y, y' | x); with the gold tags it is wrong."""
    node, arc, q = latent_model(10)
    scores = {
        (tags, hidden): latent_score(node, arc, q, tags, hidden) for tags in every(N, C) for hidden in every(N, Z)
    }
    log_z = torch.stack(list(scores.values())).logsumexp(0)
    log_known = torch.stack([score for (tags, _), score in scores.items() if tags == gold]).logsumexp(0)
    wanted_node, wanted_arc = torch.autograd.grad(log_known - log_z, (node, arc))

    chain = pair_chain(node, arc, q)
    torch.testing.assert_close(chain.log_prob_of_set(allow_latent(gold))[0], log_known - log_z)
    found = torch.autograd.grad(chain.log_prob_of_set(allow_latent(gold)).sum(), (node, arc))
    torch.testing.assert_close(found, (wanted_node, wanted_arc))

    by_emission, by_arc = latent_gradient(chain, allow_latent(gold))
    by_pair = by_emission[0].detach().view(N, C, Z)
    torch.testing.assert_close(torch.einsum("tyz,tm->yzm", by_pair, q), wanted_node)
    torch.testing.assert_close(by_arc[0].detach().sum(0).view(C, Z, C, Z).sum((1, 3)), wanted_arc)

    given = chain.constrain(allow_latent(gold)).marginals[0].detach().view(N, C, Z).sum(1)
    free = chain.marginals[0].detach().view(N, C, Z).sum(1)  # Σ over y, y' of p(z_t, y, y' | x)
    printed = torch.zeros_like(wanted_node)
    for t, tag in enumerate(gold):
        printed[tag] += (given[t] - free[t])[:, None] * q[t]
    assert (printed - wanted_node).abs().max() > 0.1


def test_the_local_normaliser_sums_over_the_tag_that_follows() -> None:
    """Erratum 23: Z_t sums exp θ·f(y', y_{t-1}) over y'; with f(y_t, y_{t-1}) inside, all tags are equally likely."""
    emissions, transitions, start = random(20, 1, N, C), random(21, C, C), random(22, C)
    system = Tagging(torch.tensor([N]), C)
    scorer = ChainScorer(system, emissions, transitions, start)
    total = 0.0
    for tags in every(N, C):
        corrected = printed = 1.0
        for t, tag in enumerate(tags):
            weights = (emissions[0, t] + (transitions[tags[t - 1]] if t else start)).exp().tolist()
            corrected *= weights[tag] / math.fsum(weights)
            printed *= weights[tag] / math.fsum(weights[tag] for _ in range(C))
        total += corrected
        found = local_log_prob(system, scorer, torch.tensor([tags])).exp().item()
        assert found == pytest.approx(corrected, rel=1e-12)
        assert printed == pytest.approx(C**-N)
    assert total == pytest.approx(1.0)


def grid_of_models() -> list[tuple[Tensor, Tensor]]:
    return [(random(30 + seed, C, M), 2 * random(60 + seed, C, C)) for seed in range(12)]


def chains_for(q: Tensor) -> list[LinearChain]:
    return [LinearChain((q @ node.T)[None], arc) for node, arc in grid_of_models()]


def test_the_posterior_of_parameters_is_given_the_data() -> None:
    """Erratum 23: θ ~ p(θ | data). Given only the new x, θ has its prior, and the average is not p(y | x, data)."""
    data = [(random(90 + seed, N, M), gold) for seed, gold in enumerate([(0, 1, 0), (0, 1, 0), (1, 1, 0), (0, 1, 0)])]
    x = random(99, N, M)
    log_likelihoods = torch.zeros(len(grid_of_models()), dtype=torch.float64)
    for q, gold in data:
        log_likelihoods += torch.stack([chain.log_prob(torch.tensor([gold]))[0] for chain in chains_for(q)])
    weights = log_likelihoods.exp().tolist()  # a uniform prior
    members, truth, printed = chains_for(x), {}, {}
    for tags in every(N, C):
        chances = [chain.log_prob(torch.tensor([tags])).exp().item() for chain in members]
        joint = math.fsum(weight * chance for weight, chance in zip(weights, chances, strict=True))
        truth[tags] = joint / math.fsum(weights)  # p(y, data | x) / p(data)
        printed[tags] = math.fsum(chances) / len(chances)  # E under p(θ | x) = p(θ)
        found = average_log_prob(members, torch.tensor([tags]), log_likelihoods).exp().item()
        assert found == pytest.approx(truth[tags], rel=1e-10)
    assert max(abs(truth[tags] - printed[tags]) for tags in truth) > 0.1
    best = max(truth, key=lambda tags: truth[tags])
    assert best != max(printed, key=lambda tags: printed[tags])
    mode = average_argmax(members, log_likelihoods)
    assert tuple(mode.tags[0].tolist()) == best
    assert mode.proven.all()
    assert mode.log_prob.exp().item() == pytest.approx(truth[best])


@pytest.mark.parametrize("seed", range(5))
def test_the_average_of_chains_has_its_own_best_sequence(seed: int) -> None:
    """Batched, weighted or not: the proven mode is the best of all sequences, though no member may rank it first."""
    members = [LinearChain(random(seed * 10 + k, 4, 3, 3), random(seed * 10 + k, 3, 3)) for k in range(3)]
    values = torch.tensor(every(3, 3))[:, None].expand(-1, 4, -1)
    for log_weights in (None, random(seed, 3)):
        wanted = average_log_prob(members, values, log_weights)
        torch.testing.assert_close(wanted.logsumexp(0), torch.zeros(4, dtype=torch.float64))
        mode = average_argmax(members, log_weights)
        assert mode.proven.all()
        torch.testing.assert_close(mode.log_prob, wanted.max(0).values)
        assert mode.tags.equal(values[wanted.argmax(0), torch.arange(4)])


def test_an_average_needs_members_and_weights_for_each() -> None:
    chain = LinearChain(torch.zeros(1, 2, 2), torch.zeros(2, 2))
    with pytest.raises(ScoreError, match="at least one distribution; got none"):
        average_argmax([])
    with pytest.raises(ScoreError, match="log_weights must be 1 numbers"):
        average_log_prob([chain], torch.tensor([[0, 1]]), torch.zeros(2))
