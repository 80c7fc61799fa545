"""Misprints about the joint inference of events; see `docs/errata.md`."""

from __future__ import annotations

import itertools
import math

import torch

from trelliswork.nn.event_factors import DocumentFactors, WithinEvent

INF = float("inf")


def test_each_pair_of_events_counts_once() -> None:
    """Erratum 33: log p(t_1, t_2) twice outweighs what the events say themselves.

    Both triggers are of type 1 with probability 0.7, and the two types differ with probability 0.78.
    """
    alone = torch.tensor([[0.3, 0.7], [0.3, 0.7]], dtype=torch.float64).log()
    relation = torch.tensor([[0.11, 0.39], [0.39, 0.11]], dtype=torch.float64).log()
    relation[1, 1] = math.log(0.2)

    def best(times: int) -> tuple[int, ...]:
        scores = {
            t: alone[0, t[0]] + alone[1, t[1]] + times * relation[t] for t in itertools.product(range(2), repeat=2)
        }
        return max(scores, key=lambda t: float(scores[t]))

    assert best(1) == (1, 1)
    assert best(2) in {(0, 1), (1, 0)}  # as printed: (1, 2) and (2, 1)
    nobody = WithinEvent(
        alone, torch.zeros(2, 0, 1).double(), torch.zeros(2, 1).double(), torch.zeros(2, 0, 1).double(),
        torch.zeros(1, 1).double(),
    )  # fmt: skip
    document = DocumentFactors([nobody], [(0, 1)], relation[None], [torch.zeros(0, 1).double()])
    assert document.best()[0].types == [[1, 1]]


def test_marginals_forget_which_roles_a_type_has() -> None:
    """Erratum 33: the best type and the best role by themselves are together impossible under 282."""
    joint = torch.tensor([[0.0, 0.3], [0.4, 0.0], [0.0, 0.3]], dtype=torch.float64)  # p(type, role)
    given = WithinEvent(
        torch.zeros(1, 3).double(), torch.zeros(1, 1, 2).double(), joint.log(), torch.zeros(1, 1, 1).double(),
        torch.zeros(2, 1).double(),
    )  # fmt: skip
    zero = torch.zeros(1, 1, dtype=torch.long)
    every = {
        (t, r): given.log_prob(torch.tensor([t]), torch.tensor([[r]]), zero).exp().item()
        for t in range(3)
        for r in range(2)
    }
    for (t, r), share in every.items():
        assert math.isclose(share, joint[t, r].item(), abs_tol=1e-12)
    types, roles = joint.sum(1), joint.sum(0)
    printed = max(every, key=lambda y: math.log(types[y[0]]) + 2 * math.log(roles[y[1]]))  # p(r) and p(r, a), one a
    assert printed == (1, 1) and every[printed] == 0.0
    document = DocumentFactors([given], [], torch.zeros(0, 3, 3).double(), [torch.zeros(1, 1).double()])
    found, _ = document.best()
    assert (found.types, found.roles) == ([[1]], [[[0]]])
