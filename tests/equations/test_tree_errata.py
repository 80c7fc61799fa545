"""Misprints in the equations of dependency trees: the printed form fails, the corrected form is what we compute.

The truth is always enumeration: every tree, its arcs' weights multiplied, nothing shared with a determinant.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.oracles import dependencies as oracle
from trelliswork.distributions import SpanningTree
from trelliswork.structures.spanning import structure

N = 4
SEEDS = range(20)


def random_weights(seed: int, n: int = N) -> Tensor:
    """exp(arcs) [n+1, n+1] with 0 from a word to itself; row 0 are the root scores ρ."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(n + 1, n + 1, dtype=torch.float64, generator=generator).exp()
    return weights * (1 - torch.eye(n + 1, dtype=torch.float64))


def enumerated_z(weights: Tensor, single_root: bool) -> float:
    n = len(weights) - 1
    return math.fsum(
        math.prod(float(weights[head, word]) for word, head in enumerate(heads, 1))
        for heads in oracle.trees(n, single_root)
    )


# --- 12: the matrix-tree theorem of [S2] ---------------------------------------------------------------------


def printed_laplacian(weights: Tensor, entry: Callable[[Tensor, int, int], Tensor]) -> Tensor:
    """L_ij = ρ_j if i = 1, Σ_{k≠i} `entry` if j = 1, -A_ij otherwise."""
    n, arcs = len(weights) - 1, weights[1:, 1:]
    matrix = -arcs.clone()
    for i in range(1, n):
        matrix[i, 0] = torch.stack([entry(arcs, i, k) for k in range(n) if k != i]).sum()
    matrix[0] = weights[0, 1:]
    return matrix


# A_ijk has an index too many: read as the arcs out of word i, or those into it.
READINGS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "A_ik": lambda arcs, i, k: arcs[i, k],
    "A_ki": lambda arcs, i, k: arcs[k, i],
}


@pytest.mark.parametrize("reading", list(READINGS))
def test_the_printed_laplacian_gives_another_z(reading: str) -> None:
    """Erratum 12: with sums in the first column the determinant is no sum over trees, single- or multi-root."""
    for seed in SEEDS:
        weights = random_weights(seed)
        printed = abs(float(printed_laplacian(weights, READINGS[reading]).det()))
        for single_root in (True, False):
            assert not math.isclose(printed, enumerated_z(weights, single_root), rel_tol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_corrected_laplacian_sums_over_single_root_trees(n: int) -> None:
    """Erratum 12: root scores in the first row, sums of columns on the diagonal."""
    for seed in SEEDS:
        weights = random_weights(seed, n)
        z = enumerated_z(weights, single_root=True)
        assert math.isclose(float(structure.laplacian(weights).det()), z, rel_tol=1e-9)
        assert math.isclose(float(SpanningTree(weights.log()[None]).log_partition.exp()), z, rel_tol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_multi_root_laplacian(n: int) -> None:
    """Erratum 12: det(diag(ρ + column sums) - A) sums over trees with any number of root words."""
    for seed in SEEDS:
        weights = random_weights(seed, n)
        z = enumerated_z(weights, single_root=False)
        laplacian = torch.diag(weights.sum(0)[1:]) - weights[1:, 1:]
        assert math.isclose(float(laplacian.det()), z, rel_tol=1e-9)
        trees = SpanningTree(weights.log()[None], single_root=False)
        assert math.isclose(float(trees.log_partition.exp()), z, rel_tol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_number_of_trees(n: int) -> None:
    """Erratum 12: n^(n-1) trees have one root word, not (n-1)^(n-2)."""
    assert len(oracle.trees(n, single_root=True)) == n ** (n - 1) != (n - 1) ** (n - 2)
    assert len(oracle.trees(n, single_root=False)) == (n + 1) ** (n - 1)
    assert SpanningTree(torch.zeros(1, n + 1, n + 1)).count.item() == n ** (n - 1)
