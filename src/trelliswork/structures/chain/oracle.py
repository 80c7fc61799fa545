"""Every tag sequence of a chain, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from trelliswork.structures.chain.structure import Chain


def sequences(chain: Chain, row: int) -> list[tuple[int, ...]]:
    """All c^length tag sequences of a row, in lexicographic order."""
    return list(itertools.product(range(chain.c), repeat=int(chain.lengths[row])))


def score(chain: Chain, row: int, tags: tuple[int, ...]) -> Tensor:
    """start + emissions + transitions + end, added up part by part."""
    value = chain.start[tags[0]] + chain.end[tags[-1]]
    for t, tag in enumerate(tags):
        value = value + chain.emissions[row, t, tag]
        if t > 0:
            arcs = chain.transitions if chain.transitions.dim() == 2 else chain.transitions[row, t - 1]
            value = value + arcs[tags[t - 1], tag]
    return value


def scores(chain: Chain, row: int) -> Tensor:
    """The score of every sequence of `sequences`, in the same order."""
    return torch.stack([score(chain, row, tags) for tags in sequences(chain, row)])
