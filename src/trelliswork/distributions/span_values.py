"""Labelled trees as values: lists of (start, end, label) for people, nodes [..., 2n-1, 3] for tensors, their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trelliswork.distributions.segment_values import Nested, flattened
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.constituency.kernels import first_not_a_tree

_NO_EMPTY = ", and the label {} on tokens and right children only"
Node = tuple[int, int, int]
"""(start, end, label), end exclusive."""


def to_lists(nodes: Int[Tensor, "rows nodes 3"], lengths: list[int]) -> list[list[Node]]:
    """Return each row's nodes, parents before children and left before right."""
    n_most, numbers = nodes.shape[1], iter(nodes.numpy(force=True).ravel().tolist())  # quicker than torch
    triples = list(zip(numbers, numbers, numbers, strict=True))
    return [triples[row * n_most : row * n_most + 2 * n - 1] for row, n in enumerate(lengths)]


def from_lists(value: Nested, batch_shape: torch.Size, n_nodes: int, device: torch.device) -> Int[Tensor, "..."]:
    """Return lists [*samples, *batch] of nodes, in any order, as a tensor [*samples, *batch, nodes, 3].

    Args:
        value: lists nested like the samples and the batch; each innermost one has the nodes (start, end, label) of a
            tree.
        batch_shape: the batch axes.
        n_nodes: the number of nodes of the largest tree, 2n - 1.
        device: where the result lies.

    Returns:
        Nodes as whole numbers, padded to `n_nodes`.
    """
    rows, shape = flattened(value, batch_shape)
    if len(shape) < len(batch_shape) or shape[len(shape) - len(batch_shape) :] != tuple(batch_shape):
        raise ScoreError(
            f"values must be one list of (start, end, label) for each of the rows {tuple(batch_shape)}; got {shape}"
        )
    filled = []
    for index, row in enumerate(rows):
        if len(row) > n_nodes:
            raise ScoreError(f"a binary tree has at most {n_nodes} nodes here; got {len(row)} in value {index}")
        for node in row:
            _check_node(node, index)
        ordered = sorted(row, key=lambda node: (node[0], -node[1]))
        filled.append([*ordered, *[(-1, -1, -1)] * (n_nodes - len(row))])
    return torch.tensor(filled, dtype=torch.long, device=device).reshape(*shape, n_nodes, 3)


def _check_node(node: Any, row: int, *, unlabelled: bool = False) -> Any:
    """Check that a node is three whole numbers; where that is allowed, the label may be None."""
    fine = isinstance(node, Sequence) and len(node) == 3 and all(isinstance(each, int) for each in node[:2])
    if not fine or not (isinstance(node[2], int) or (unlabelled and node[2] is None)):
        raise ScoreError(
            f"nodes must be (start, end, label), whole numbers; got {node!r:.60} at row {row}; give labels as indices"
        )
    return node


def check_nodes(
    nodes: Int[Tensor, "samples rows nodes 3"], lengths: Int[Tensor, "rows"], c: int, empty: int | None
) -> None:
    """Check that every row is a binary tree over its tokens, the label `empty` in its place.

    Args:
        nodes: (start, end, label) of each node.
        lengths: the number of tokens of each row.
        c: the number of labels.
        empty: the label of nodes that only make a tree binary; None if there is none.
    """
    array, limits = as_array(nodes), as_array(lengths)
    for sample in array:
        row = first_not_a_tree(sample, limits, c, -1 if empty is None else empty)
        if row >= 0:
            tree = [tuple(node) for node in sample[row].tolist() if node[0] >= 0]
            raise ScoreError(
                f"a value must be a binary tree over tokens 0..{limits[row] - 1}: {2 * limits[row] - 1} nodes "
                f"(start, end, label), end exclusive, labels in 0..{c - 1}, "
                "each of two or more tokens split into two others"
                f"{_NO_EMPTY.format(empty) if empty is not None else ''}; "
                f"got {tree} at row {row}; binarise wider nodes and give every token a node"
            )


def allowed_by_nodes(
    known: Sequence[Sequence[tuple[int, int, int | None]]], lengths: list[int], n: int, c: int, device: torch.device
) -> Bool[Tensor, "rows n n c"]:
    """Return nodes that cross none of the known ones and have their label; a label of None is unknown.

    Args:
        known: for each row the nodes (start, end, label) that are known.
        lengths: the number of tokens of each row.
        n: the number of tokens of a row, padding included.
        c: the number of labels.
        device: where the result lies.

    Returns:
        True where a node of a label is allowed, indexed by first and last token.
    """
    allowed = torch.ones(len(known), n, n, c, dtype=torch.bool, device=device)
    first = torch.arange(n, device=device)[:, None]
    last = torch.arange(n, device=device) + 1
    for row, nodes in enumerate(known):
        for node in nodes:
            i, j, label = _check_node(node, row, unlabelled=True)
            if not 0 <= i < j <= lengths[row] or (label is not None and not 0 <= label < c):
                raise ScoreError(
                    f"known nodes must be (start, end, label) within 0..{lengths[row]}, labelled 0..{c - 1} or None; "
                    f"got {(i, j, label)} at row {row}"
                )
            crosses = ((first < i) & (i < last) & (last < j)) | ((i < first) & (first < j) & (j < last))
            allowed[row] &= ~crosses[..., None]
            if label is not None:
                allowed[row, i, j - 1] &= torch.arange(c, device=device) == label
    return allowed
