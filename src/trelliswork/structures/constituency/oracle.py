"""Every labelled binary tree of a row. Tests only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from trelliswork.structures.constituency.structure import Spans

Node = tuple[int, int, int]
Nodes = tuple[Node, ...]
"""(start, end, label), end exclusive, parents before children and left before right."""


def trees(start: int, end: int, c: int) -> Iterator[Nodes]:
    """All trees over tokens start..end-1 with labels 0..c-1."""
    for label in range(c):
        root = (start, end, label)
        if end - start == 1:
            yield (root,)
        for split in range(start + 1, end):
            for left, right in product(trees(start, split, c), trees(split, end, c)):
                yield (root, *left, *right)


def score(parts: Spans, row: int, nodes: Nodes) -> Tensor:
    return torch.stack([parts.spans[row, start, end - 1, label] for start, end, label in nodes]).sum()


def scores(parts: Spans, row: int) -> dict[Nodes, float]:
    """The score of every tree."""
    every = trees(0, int(parts.lengths[row]), parts.spans.shape[-1])
    return {nodes: float(score(parts, row, nodes)) for nodes in every}
