"""Every dependency tree of a row, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from trelliswork.structures.arcs import Arcs

Heads = tuple[int, ...]


def trees(n: int, single_root: bool) -> list[Heads]:
    """All trees over n words: n^(n-1) with one root word, (n+1)^(n-1) otherwise; heads in lexicographic order."""
    every = itertools.product(range(n + 1), repeat=n)
    return [heads for heads in every if reaches_root(heads) and (not single_root or heads.count(0) == 1)]


def reaches_root(heads: Heads) -> bool:
    """Whether following heads from any word ends at the root; heads[m - 1] is the head of word m."""
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


def score(arcs: Arcs, row: int, heads: Heads) -> Tensor:
    """The arcs' scores, added up one by one."""
    value = arcs.arcs.new_zeros(())
    for word, head in enumerate(heads, 1):
        value = value + arcs.arcs[row, head, word]
    return value


def scores(arcs: Arcs, row: int) -> Tensor:
    """The score of every tree of `trees`, in the same order."""
    every = trees(int(arcs.lengths[row]), arcs.single_root)
    return torch.stack([score(arcs, row, heads) for heads in every])
