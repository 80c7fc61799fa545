"""Small distributions of every structure from given scores, and queries of them: run as a program, it asks them all.

    python -m tests.contract.extremes chain "span trees"

A crash of a kernel ends the process and a loop without end never leaves it, so the tests look at it from outside:
each query is announced before it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions import (
    CTC,
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
from trelliswork.errors import TrellisworkError
from trelliswork.fst import Acceptor
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.grammar.grammar import Grammar

INF = float("inf")
Scores = Callable[..., Tensor]  # of a shape
SPARSE = Grammar.from_rules("S -> S S 1 | A S 2 | A A 1 | 'a' 1\n A -> 'a' 1 | 'b' 1")
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def acceptor(scores: Scores, cyclic: bool = False, **options: Any) -> Acceptor:
    source, target = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 1 if cyclic else 3])
    labels = np.arange(1, 6)
    return Acceptor.from_machine(Machine(source, target, labels, labels, scores(5), scores(4), scores(4)), **options)


BUILDERS: dict[str, Callable[..., Any]] = {
    "chain": lambda s, **o: LinearChain(s(2, 4, 3), s(3, 3), s(3), s(3), **o),
    "chain by position": lambda s, **o: LinearChain(s(2, 4, 3), s(2, 3, 3, 3), **o),
    "chain of many tags": lambda s, **o: LinearChain(s(2, 4, 20), s(20, 20), **o),
    "segments": lambda s, **o: SemiMarkov(s(2, 5, 3, 2), s(2, 2), s(2), s(2), **o),
    "segments without transitions": lambda s, **o: SemiMarkov(s(2, 5, 3, 2), **o),
    "factored segments": lambda s, **o: SemiMarkov.factored(
        s(2, 5, 2), s(3, 2), s(2, 5, 2), s(2, 5, 2), s(2, 2), s(2), s(2), **o
    ),
    "span trees": lambda s, **o: SpanTree(s(2, 4, 4, 2), **o),
    "dense grammar": lambda s, **o: cfg(Grammar.dense(2, 2), s, **o),
    "sparse grammar": lambda s, **o: cfg(SPARSE, s, **o),
    "projective trees": lambda s, **o: ProjectiveTree(s(2, 5, 5), **o),
    "projective trees, many roots": lambda s, **o: ProjectiveTree(s(2, 5, 5), single_root=False, **o),
    "labelled projective trees": lambda s, **o: ProjectiveTree(s(2, 5, 5), s(2, 5, 5, 2), **o),
    "spanning trees": lambda s, **o: SpanningTree(s(2, 5, 5), **o),
    "spanning trees, many roots": lambda s, **o: SpanningTree(s(2, 5, 5), single_root=False, **o),
    "labelled spanning trees": lambda s, **o: SpanningTree(s(2, 5, 5), s(2, 5, 5, 2), **o),
    "ctc": lambda s, **o: CTC(s(2, 5, 3), **o),
    "ctc alignment": lambda s, **o: CTCAlignment(s(2, 6, 3), torch.tensor([[1, 2, 1], [2, 2, 1]]), **o),
    "edit alignment": lambda s, **o: EditAlignment(s(2, 4, 5, 3), **o),
    "acceptor": lambda s, **o: acceptor(s, backend=o["backend"]),
    "acceptor with a cycle": lambda s, **o: acceptor(s, True, backend=o["backend"]),
    "factor graph": lambda s, **o: FactorGraph(s(2, 4, 3), [CliqueTemplate(CYCLE, s(3, 3))], **o),
}


def cfg(grammar: Grammar, scores: Scores, **options: Any) -> WeightedCFG:
    size = len(grammar.symbols)
    parts = {"lexical": scores(2, 4, grammar.n_lexical), "rules": scores(grammar.n_rules), "root": scores(size)}
    return WeightedCFG(grammar, **parts, nodes=scores(2, 4, 4, size), **options)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "log_partition": lambda dist: dist.log_partition,
    "marginals": lambda dist: dist.marginals,
    "entropy": lambda dist: dist.entropy(),
    "argmax": lambda dist: dist.argmax,
    "top_k": lambda dist: dist.top_k(3),
    "sample": lambda dist: dist.sample((20,), generator=torch.Generator().manual_seed(1)),
}


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def one_nan(*shape: int) -> Tensor:
    scores = normal(*shape)
    scores.view(-1)[scores.numel() // 2] = float("nan")
    return scores


def filled(value: float) -> Scores:
    return lambda *shape: torch.full(shape, value, dtype=torch.float64)


FILLS: dict[str, Scores] = {
    "nan": filled(float("nan")),
    "one nan": one_nan,
    "inf": filled(INF),
    "1e308": filled(1e308),
    "-1e308": filled(-1e308),
    "-inf": filled(-INF),
    "both signs of 1e308": lambda *shape: 1e308 * normal(*shape).sign(),
}


def ask_everything(structure: str) -> None:
    for fill, scores in FILLS.items():
        for backend in ("kernel", "torch"):
            for query, ask in QUERIES.items():
                print(f"{structure}, {fill}, {backend}, {query}:", end=" ", flush=True)
                try:
                    ask(BUILDERS[structure](scores, backend=backend, validate_args=False))
                    print("answered")
                except TrellisworkError as error:
                    print(f"refused: {error}")
                except Exception as error:
                    print(f"failed: {type(error).__name__}: {error}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        ask_everything(name)
