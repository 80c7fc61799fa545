"""Every derivation of a row, by trying all rules on all splits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from trelliswork.structures.grammar.grammar import Grammar

Nodes = tuple[tuple[int, int, int], ...]
"""(start, end, symbol), end exclusive, parents before children and left before right."""


def derivations(grammar: Grammar, symbol: int, start: int, end: int) -> Iterator[Nodes]:
    """All derivations of tokens start..end-1 from a symbol, whatever the words are."""
    root = (start, end, symbol)
    if end - start == 1:
        if symbol >= grammar.first_lexical:
            yield (root,)
        return
    for parent, left, right in grammar.rules:
        if parent == symbol:
            for split in range(start + 1, end):
                lefts = list(derivations(grammar, left, start, split))
                if lefts:
                    for one, other in product(lefts, derivations(grammar, right, split, end)):
                        yield (root, *one, *other)


def rules_of(nodes: Nodes) -> list[tuple[int, int, tuple[int, int, int]]]:
    """(start, end, (parent, left, right)) of each binary node."""
    found = []
    for at, (start, end, symbol) in enumerate(nodes):
        if end - start > 1:
            _, split, left = nodes[at + 1]
            right = next(node[2] for node in nodes[at + 2 :] if node[:2] == (split, end))
            found.append((start, end, (symbol, left, right)))
    return found
