"""Grammars and scores to try, and every derivation of a row with its score."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tests.contract.base import INF, Instance, Plain
from tests.oracles import grammar as oracle
from trelliswork.structures.grammar.grammar import Grammar

SPARSE = Grammar.from_rules("""
    S -> S S 1 | A S 2 | A B 1
    A -> 'a' 1 | B B 1
    B -> 'b' 1 | 'a' 1
""")
GRAMMARS = (Grammar.dense(2, 2), SPARSE, Grammar.dense(1, 1))


def grammar_of(instance: Instance) -> Grammar:
    return GRAMMARS[int(instance.options["grammar"])]


def lengths(instance: Instance) -> list[int]:
    batch, n, _ = instance.scores["lexical"].shape
    return instance.options["lengths"].tolist() if "lengths" in instance.options else [n] * batch


def read(instance: Instance, name: str) -> Tensor:
    """True at the scores that are read, for those that have tokens."""
    marks = torch.zeros(instance.scores[name].shape, dtype=torch.bool)
    for row, length in enumerate(lengths(instance)):
        if name == "lexical":
            marks[row, :length] = True
        else:
            for i in range(length):
                marks[row, i, i:length] = True
                if name == "rules":
                    marks[row, i, i] = False
    return marks


@lru_cache(maxsize=4096)
def support(instance: Instance, row: int) -> dict[Plain, float]:
    """Every derivation of a row with a score above -inf, and that score."""
    grammar, n = grammar_of(instance), lengths(instance)[row]
    scores = {name: part.double() for name, part in instance.scores.items()}
    root = scores["root"] if scores["root"].dim() == 1 else scores["root"][row]
    rules = scores["rules"] if scores["rules"].dim() == 1 else scores["rules"][row]
    lexical, extra = scores["lexical"][row].tolist(), scores["nodes"][row].tolist()
    found: dict[Plain, float] = {}
    for symbol in range(len(grammar.symbols)):
        for nodes in oracle.derivations(grammar, symbol, 0, n):
            score = float(root[symbol])
            for start, end, label in nodes:
                score += extra[start][end - 1][label]
                if end - start == 1:
                    score += lexical[start][label - grammar.first_lexical]
            for start, end, rule in oracle.rules_of(nodes):
                index = grammar.rule_index[rule]
                score += float(rules[index] if rules.dim() == 1 else rules[start, end - 1, index])
            if score > -INF:
                found[nodes] = score
    return found


def scored(
    seed: int,
    which: int = 0,
    batch: int = 2,
    n: int = 3,
    *,
    rules_by: str = "shared",
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
    forbidden: dict[str, list[tuple[int, ...]]] | None = None,
    **options: Tensor,
) -> Instance:
    generator, grammar = torch.Generator().manual_seed(seed), GRAMMARS[which]
    size = len(grammar.symbols)
    lead = {"shared": (), "row": (batch,), "span": (batch, n, n)}[rules_by]
    shapes = {
        "rules": (*lead, grammar.n_rules),
        "lexical": (batch, n, grammar.n_lexical),
        "root": (batch, size) if rules_by == "row" else (size,),
        "nodes": (batch, n, n, size),
    }
    scores = {name: scale * torch.randn(s, generator=generator, dtype=torch.float64) for name, s in shapes.items()}
    for name, places in (forbidden or {}).items():
        for place in places:
            scores[name][place] = -INF
    return Instance(
        {name: part.to(dtype) for name, part in scores.items()}, {"grammar": torch.tensor(which), **options}
    )


RAGGED = torch.tensor([3, 1])


def many() -> dict[str, Instance]:
    return {
        "dense": scored(0),
        "dense, ragged, by row": scored(1, rules_by="row", lengths=RAGGED),
        "dense, by span": scored(2, rules_by="span", lengths=torch.tensor([3, 2])),
        "sparse": scored(3, 1, n=4, lengths=torch.tensor([4, 2])),
        "sparse, by span": scored(4, 1, n=4, rules_by="span", lengths=torch.tensor([3, 4])),
        "forbidden": scored(
            5, lengths=RAGGED, forbidden={"rules": [(3,), (18,)], "nodes": [(0, 1, 2, 0)], "lexical": [(0, 0, 1)]}
        ),
        "ties": scored(6, 1, n=3).mapped(lambda part: part.round()),
        "wide": scored(7, scale=300.0, lengths=RAGGED),
        "float32": scored(8, dtype=torch.float32, lengths=RAGGED),
    }


def small() -> dict[str, Instance]:
    return {
        "dense": scored(30, 2, batch=1, n=3, forbidden={"nodes": [(0, 0, 1, 0)]}),
        "sparse, by span": scored(31, 1, batch=1, n=2, rules_by="span", forbidden={"rules": [(0, 0, 1, 1)]}),
    }
