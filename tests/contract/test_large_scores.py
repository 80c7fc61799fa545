"""Scores that a large amount is added to, the same for every structure: entropies and marginals stay what they were.

The scores are whole numbers, so that float32 holds them exactly beside the amount.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.contract.base import BACKENDS
from tests.contract.extremes import CYCLE, SPARSE
from trelliswork.distributions import (
    CliqueTemplate,
    CTCAlignment,
    EditAlignment,
    FactorGraph,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    WeightedCFG,
)
from trelliswork.fst import Acceptor
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.grammar.grammar import Grammar

LARGE = 2.0**22
Scores = Callable[..., Tensor]


def whole_numbers(dtype: torch.dtype) -> Scores:
    def scores(*shape: int) -> Tensor:
        return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)

    return scores


def durations(k: int) -> Tensor:
    return torch.arange(1, k + 1)[:, None]


def cfg(grammar: Grammar, s: Scores, x: float, **options: Any) -> WeightedCFG:
    size = len(grammar.symbols)
    parts = {"lexical": s(2, 4, grammar.n_lexical) + x, "rules": s(grammar.n_rules) + x, "root": s(size) + x}
    return WeightedCFG(grammar, **parts, nodes=s(2, 4, 4, size) + x, **options)


def acceptor(s: Scores, x: float, **options: Any) -> Acceptor:
    source, target, labels = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 2, 2, 3, 3, 4]), np.arange(1, 7)
    weights, place = s(6) + x * torch.from_numpy(target - source), torch.arange(5)
    return Acceptor.from_machine(
        Machine(source, target, labels, labels, weights, s(5) + x * place, s(5) + x * (4 - place)), **options
    )


BUILDERS: dict[str, Callable[..., Any]] = {
    "chain": lambda s, x, **o: LinearChain(s(2, 4, 3) + x, s(3, 3) + x, s(3) + x, s(3) - x, **o),
    "segments": lambda s, x, **o: SemiMarkov(s(2, 5, 3, 2) + x * durations(3), s(2, 2), s(2) + x, s(2) + x, **o),
    "segments without transitions": lambda s, x, **o: SemiMarkov(s(2, 5, 3, 2) + x * durations(3), **o),
    "factored segments": lambda s, x, **o: SemiMarkov.factored(s(2, 5, 2) + x, s(3, 2), s(2, 5, 2), **o),
    "span trees": lambda s, x, **o: SpanTree(s(2, 4, 4, 2) + x, **o),
    "projective trees": lambda s, x, **o: ProjectiveTree(s(2, 5, 5) + x, **o),
    "labelled projective trees": lambda s, x, **o: ProjectiveTree(s(2, 5, 5) + x, s(2, 5, 5, 2) + x, **o),
    "spanning trees": lambda s, x, **o: SpanningTree(s(2, 5, 5) + x, **o),
    "labelled spanning trees": lambda s, x, **o: SpanningTree(s(2, 5, 5) + x, s(2, 5, 5, 2) + x, **o),
    "ctc alignment": lambda s, x, **o: CTCAlignment(s(2, 6, 3) + x, torch.tensor([[1, 2, 1], [2, 2, 1]]), **o),
    "edit alignment": lambda s, x, **o: EditAlignment(s(2, 4, 5, 3) + x * torch.tensor([2, 1, 1]), **o),
    "factor graph": lambda s, x, **o: FactorGraph(s(2, 4, 3) + x, [CliqueTemplate(CYCLE, s(3, 3) + x)], **o),
    "dense grammar": lambda s, x, **o: cfg(Grammar.dense(2, 2), s, x, **o),
    "sparse grammar": lambda s, x, **o: cfg(SPARSE, s, x, **o),
    "acceptor": acceptor,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("structure", BUILDERS)
def test_entropy_and_marginals_do_not_depend_on_what_all_share(
    structure: str, backend: str, dtype: torch.dtype
) -> None:
    small, large = (BUILDERS[structure](whole_numbers(dtype), x, backend=backend) for x in (0.0, LARGE))
    assert large.entropy().dtype == large.marginals.dtype == dtype
    torch.testing.assert_close(large.entropy(), small.entropy(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(large.marginals, small.marginals, rtol=1e-6, atol=1e-6)
