"""Every projective tree of a row: the trees of the spanning oracle whose arcs do not cross. Tests only."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.structures.arcs import Arcs
from trelliswork.structures.spanning import oracle as spanning

Heads = spanning.Heads


def trees(n: int, single_root: bool) -> list[Heads]:
    """All projective trees over n words, heads in lexicographic order."""
    return [heads for heads in spanning.trees(n, single_root) if no_arcs_cross(heads)]


def no_arcs_cross(heads: Heads) -> bool:
    """Whether no two arcs cross when drawn above the words, the root standing to the left of all."""
    spans = [(min(word, head), max(word, head)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in spans for c, d in spans)


def scores(arcs: Arcs, row: int) -> Tensor:
    """The score of every tree of `trees`, in the same order."""
    every = trees(int(arcs.lengths[row]), arcs.single_root)
    return torch.stack([spanning.score(arcs, row, heads) for heads in every])
