"""The equations of factor graphs, written out with features, sums and products of plain numbers."""

from __future__ import annotations

import itertools
import math

import torch

from trelliswork.distributions import CliqueTemplate, FactorGraph

TRIPLES = [(0, 1, 2), (1, 2, 3)]
PAIRS = [(0, 3), (1, 3), (0, 2)]


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_product_of_factors_over_its_sum() -> None:
    """[S4.65-66, 76]: p(y) = 1/Z Π ψ_a(y_a), with factors that are not exponentials of anything in particular."""
    psi = [normal(2, 2, 2, seed=0).abs(), normal(2, 2, seed=1).abs()]
    psi[0][1, 0, 1] = 0.0
    graph = FactorGraph(torch.zeros(4, 2, dtype=torch.float64), [((0, 1, 2), psi[0].log()), ((3, 1), psi[1].log())])
    products = {y: float(psi[0][y[:3]] * psi[1][y[3], y[1]]) for y in itertools.product(range(2), repeat=4)}
    z = math.fsum(products.values())
    assert math.isclose(graph.log_partition.item(), math.log(z), rel_tol=1e-12)
    for y, product in products.items():
        assert math.isclose(graph.log_prob(torch.tensor(y)).exp().item(), product / z, rel_tol=1e-12)


def test_a_log_linear_graph_with_templates() -> None:
    """[S4.77-79]: two templates, each with features and parameters that all its factors share; the gradient of the
    log-likelihood is observed less expected features."""
    features = [normal(5, 2, 2, 2, seed=2), normal(3, 2, 2, seed=3)]
    theta = [normal(5, seed=4).requires_grad_(), normal(3, seed=5).requires_grad_()]
    tables = [torch.tensordot(w, f, 1) for w, f in zip(theta, features, strict=True)]
    graph = FactorGraph(
        torch.zeros(4, 2, dtype=torch.float64), [CliqueTemplate(TRIPLES, tables[0]), CliqueTemplate(PAIRS, tables[1])]
    )
    gold = (1, 0, 1, 1)

    def count(y: tuple[int, ...], k: int) -> torch.Tensor:
        """Σ_c f_{p,k}(y_c) over the cliques of template k."""
        cliques = (TRIPLES, PAIRS)[k]
        return torch.stack([features[k][(slice(None), *(y[v] for v in clique))] for clique in cliques]).sum(0)

    everything = list(itertools.product(range(2), repeat=4))
    scores = torch.stack([sum(theta[k].detach() @ count(y, k) for k in range(2)) for y in everything])
    probabilities = torch.softmax(scores, 0)
    log_prob = graph.log_prob(torch.tensor(gold))
    torch.testing.assert_close(log_prob.exp().detach(), probabilities[everything.index(gold)])
    log_prob.backward()
    for k in range(2):
        expected = sum(p * count(y, k) for p, y in zip(probabilities, everything, strict=True))
        torch.testing.assert_close(theta[k].grad, count(gold, k) - expected)


def test_events_and_entities_of_a_document_are_found_together() -> None:
    """[S4.286]: within-event scores E, relations of events R and entities D share variables, and are maximised as one.

    Two triggers with types t_i, two entities a_j, and roles r_ij; each component alone would choose otherwise.
    """
    triggers, entities, types, roles, kinds = range(2), range(2), 3, 2, 3
    trigger = {i: i for i in triggers}
    entity = {j: 2 + j for j in entities}
    role = {(i, j): 4 + 2 * i + j for i in triggers for j in entities}
    unary = torch.full((8, 3), 0.0, dtype=torch.float64)
    unary[:4] = 0.5 * normal(4, 3, seed=6)  # log p(t_i) and D(a_j)
    unary[4:, :roles] = normal(4, roles, seed=7)
    given = {pair: 3 * normal(roles, kinds, seed=20 + v) for pair, v in role.items()}
    relation = 3 * normal(types, types, seed=9)
    factors = [((v, entity[pair[1]]), given[pair]) for pair, v in role.items()]
    graph = FactorGraph(unary, [*factors, ((trigger[0], trigger[1]), relation)], sizes=[3, 3, 3, 3, 2, 2, 2, 2])

    def objective(y: tuple[int, ...]) -> float:
        within = sum(float(unary[trigger[i], y[trigger[i]]]) for i in triggers)
        within += sum(float(unary[v, y[v]] + given[pair][y[v], y[entity[pair[1]]]]) for pair, v in role.items())
        between = float(relation[y[trigger[0]], y[trigger[1]]])
        return within + between + sum(float(unary[entity[j], y[entity[j]]]) for j in entities)

    best = max(itertools.product(*map(range, graph.sizes)), key=objective)
    found = graph.ad3()
    assert found.value is not None and found.bound is not None
    assert tuple(found.value.tolist()) == best
    assert found.certified
    assert math.isclose(found.bound.item(), objective(best), rel_tol=1e-6)
    assert tuple(graph.unary.argmax(-1).tolist()) != best
