"""The factor graph of events against sums and maxima over all assignments."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from trelliswork.distributions import FactorGraph
from trelliswork.nn.event_factors import DocumentFactors, WithinEvent

INF = float("inf")
T, R, A = 3, 2, 3


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def within(m: int, k: int, seed: int = 0) -> WithinEvent:
    type_roles, role_kinds = 2 * draw(T, R, seed=seed + 2), 2 * draw(R, A, seed=seed + 4)
    type_roles[0, 1:] = -INF  # no trigger has no roles
    role_kinds[1:, 0] = -INF
    kinds = draw(1, k, A, seed=seed + 3).expand(m, k, A)
    return WithinEvent(draw(m, T, seed=seed), draw(m, k, R, seed=seed + 1), type_roles, kinds, role_kinds)


def exponent(given: WithinEvent, i: int, type_: int, roles: tuple[int, ...], kinds: tuple[int, ...]) -> float:
    """θ1 f1(t) + Σ_j [θ2 f2(r_j) + θ3 f3(t, r_j) + θ4 f4(a_j) + θ5 f5(r_j, a_j)]."""
    total = float(given.types[i, type_])
    for j, (role, kind) in enumerate(zip(roles, kinds, strict=True)):
        total += float(given.roles[i, j, role] + given.type_roles[type_, role])
        total += float(given.kinds[i, j, kind] + given.role_kinds[role, kind])
    return total


def test_the_within_event_model_sums_to_one_and_is_a_tree_of_factors() -> None:
    """[S4.281-282, 284]"""
    given = within(1, 2)
    values = list(
        itertools.product(range(T), itertools.product(range(R), repeat=2), itertools.product(range(A), repeat=2))
    )
    scores = [exponent(given, 0, *value) for value in values]
    log_z = math.log(math.fsum(map(math.exp, scores)))
    by_type = [0.0] * T
    for value, score in zip(values, scores, strict=True):
        log_prob = given.log_prob(*(torch.tensor([each]) for each in value))
        assert log_prob.item() == -INF if score == -INF else math.isclose(log_prob.item(), score - log_z, abs_tol=1e-10)
        by_type[value[0]] += math.exp(score - log_z)
    torch.testing.assert_close(given.type_probabilities()[0], torch.tensor(by_type, dtype=torch.float64))


def test_the_gradient_of_the_likelihood() -> None:
    given, gold = within(2, 2), (torch.tensor([1, 0]), torch.tensor([[1, 0], [0, 0]]), torch.tensor([[2, 1], [2, 1]]))
    allowed = given.type_roles > -INF, given.role_kinds > -INF

    def loss(types: Tensor, roles: Tensor, type_roles: Tensor, role_kinds: Tensor) -> Tensor:
        tables = (torch.where(ok, each, -INF) for ok, each in zip(allowed, (type_roles, role_kinds), strict=True))
        first, second = tables
        return WithinEvent(types, roles, first, given.kinds, second).log_prob(*gold).sum()

    parts = (given.types, given.roles, given.type_roles.clamp(min=-9), given.role_kinds.clamp(min=-9))
    assert torch.autograd.gradcheck(loss, tuple(each.clone().requires_grad_() for each in parts), fast_mode=True)


def objective(document: DocumentFactors, y: tuple[int, ...]) -> float:
    """Σ_i E(t_i, r_i, a) + Σ_{i < i'} R(t_i, t_i') + Σ_j D(a_j); -inf for entities that exclude one another."""
    of_types, of_roles, of_kinds = document.split(y)
    everything = list(itertools.chain(*of_types))
    pairs = zip(document.pairs, document.relations, strict=True)
    total = sum(float(table[everything[i], everything[j]]) for (i, j), table in pairs)
    for s, within_event in enumerate(document.within):
        types, roles, kinds = of_types[s], of_roles[s], tuple(of_kinds[s])
        total += sum(exponent(within_event, i, types[i], tuple(roles[i]), kinds) for i in range(len(types)))
        total += sum(float(document.entities[s][j, kind]) for j, kind in enumerate(kinds))
        if any(kinds[i] and kinds[j] for i, j in document.clashes[s]):
            total = -INF
    return total


def check_against_everything(document: DocumentFactors) -> None:
    """All assignments have their scores in the graph, and AD3 finds a best one."""
    graph = document.graph()
    everything = list(itertools.product(*map(range, graph.sizes)))
    scores = [objective(document, y) for y in everything]
    _, result = document.best()
    assert result.value is not None
    assert math.isclose(objective(document, tuple(result.value.tolist())), max(scores), abs_tol=1e-9)
    assert bool(result.certified)
    torch.testing.assert_close(graph.score(torch.tensor(everything)), torch.tensor(scores, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(6))
def test_ad3_finds_the_best_of_all_assignments(seed: int) -> None:
    """[S4.286-289], with event pairs counted once and the coupling of types and roles kept."""
    relations = draw(1, T * T, seed=seed + 90).log_softmax(-1).reshape(1, T, T)
    kinds = draw(2, A, seed=seed + 91).log_softmax(-1)
    check_against_everything(DocumentFactors([within(2, 2, seed=10 * seed)], [(0, 1)], relations, [kinds], [[(0, 1)]]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_events_of_several_sentences_are_decided_together(seed: int) -> None:
    """Pairs join triggers of different sentences; roles do not."""
    parts = [within(1, 2, seed=seed), within(1, 0, seed=seed + 20), within(1, 1, seed=seed + 40)]
    relations = 3 * draw(2, T * T, seed=seed + 90).log_softmax(-1).reshape(2, T, T)
    kinds = [draw(k, A, seed=seed + 91 + k).log_softmax(-1) for k in (2, 0, 1)]
    document = DocumentFactors(parts, [(0, 1), (1, 2)], relations, kinds, [[(0, 1)], [], []])
    assert len(document.graph().sizes) == 3 + 3 + 3 and document.sizes == [(1, 2), (1, 0), (1, 1)]
    check_against_everything(document)


def test_components_agree_on_what_each_alone_would_decide_otherwise() -> None:
    documents = [
        DocumentFactors([within(2, 2, seed=s)], [(0, 1)], 2 * draw(1, T, T, seed=s), [draw(2, A, seed=s + 1)])
        for s in range(8)
    ]
    changed = 0
    for document in documents:
        (types, _, kinds), _ = document.best()
        alone = document.within[0].types.argmax(-1).tolist(), document.entities[0].argmax(-1).tolist()
        changed += (types[0], kinds[0]) != alone
    assert changed > 2


def test_documents_without_triggers_or_without_entities() -> None:
    nobody = DocumentFactors([within(1, 0)], [], torch.zeros(0, T, T).double(), [torch.zeros(0, A).double()])
    best, _ = nobody.best()
    assert best.types == [[int(nobody.within[0].types.argmax())]] and best.roles == [[[]]]
    quiet = DocumentFactors([within(0, 2)], [], torch.zeros(0, T, T).double(), [draw(2, A, seed=5)])
    assert quiet.best()[0].kinds == [quiet.entities[0].argmax(-1).tolist()]
    assert isinstance(quiet.graph(), FactorGraph)
