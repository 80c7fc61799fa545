"""Chains in log n steps: products of matrices over a semiring, two neighbours at a time, in place of a loop.

    W_1(i, j) = start_j ⊗ e_1(j);   W_t(i, j) = a_t(i, j) ⊗ e_t(j);   the identity behind a row's end
    α_t = (W_1 W_2 ... W_t)(0, ·);   β_t = W_{t+1} ... W_n end

⊗ of matrices is associative, so that products of neighbours are taken in parallel, then products of these. On a GPU a
chain of 128 positions is then 7 steps of large operations, not 127 of small ones. Each step does c times the loop's
arithmetic: `applies` weighs one against the other, and bounds the memory.

Blelloch (1990), Prefix sums and their applications; Rush (2020), Torch-Struct: deep structured prediction library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Float, Int
from trelliswork.runtime.device_costs import COSTS
from trelliswork.semirings import Expectation, KBest, Semiring

if TYPE_CHECKING:
    from trelliswork.structures.chain.structure import Chain

SHORTEST = 4  # positions
MOST_BYTES = 1 << 29
"""Of the largest sums, batch · n · c³ numbers of float64; autograd keeps two such."""
MOST_WORK = {"cpu": 1e4, "other": COSTS["scan_work"]}
"""Of one position, batch · c³: below, the loop's operations take longer to start than the products to compute."""
_KIND: ContextVar[str | None] = ContextVar("kind", default=None)


@contextmanager
def chosen_as_on(kind: str) -> Iterator[None]:
    """Inside, choose as on the "cpu", on an "other" device, or "always" or "never" the scan: for tests and counts."""
    token = _KIND.set(kind)
    try:
        yield
    finally:
        _KIND.reset(token)


def kind_of(device: torch.device) -> str:
    """Return how to choose on a device: as on the "cpu" or an "other" one, or as `chosen_as_on` says."""
    return _KIND.get() or ("cpu" if device.type == "cpu" else "other")


def products(matrices: Tensor, semiring: Semiring) -> Tensor:
    """Return the product of matrices [..., n, m, m] in their order, as [..., 1, m, m]."""
    return _tree(matrices, semiring)[-1]


def applies(chain: Chain, semiring: Semiring) -> bool:
    """Return whether products of matrices take less time than the loop over positions, and fit in memory."""
    kind = kind_of(chain.emissions.device)
    if kind in ("always", "never"):
        return kind == "always" and chain.n > 1
    payload = semiring.k**2 if isinstance(semiring, KBest) else 2 if isinstance(semiring, Expectation) else 1
    work = payload * len(chain.emissions) * chain.c**3
    return chain.n >= SHORTEST and work <= MOST_WORK[kind] and 8 * work * chain.n <= MOST_BYTES


def total(chain: Chain, semiring: Semiring, costs: Chain | None = None) -> Tensor:
    """Return ⊕ over all tag sequences of ⊗ of their parts [rows].

    Args:
        chain: the scores.
        semiring: the semiring of ⊕ and ⊗.
        costs: costs for semirings that carry them, such as expectations; None for none.

    Returns:
        One value of the semiring for each row.
    """
    product = products(_matrices(chain, semiring, costs), semiring)
    ends = _lift(semiring, chain.end[None], None if costs is None else costs.end[None])
    return semiring.sum(semiring.times(product[..., 0, 0, :], ends), dim=-1)


def alphas(chain: Chain, semiring: Semiring, costs: Chain | None = None) -> Tensor:
    """Return α_1..α_n [..., batch, n, c]; a finished row keeps its last α.

    Args:
        chain: the scores.
        semiring: the semiring of ⊕ and ⊗.
        costs: costs for semirings that carry them; None for none.

    Returns:
        Values of the semiring.
    """
    levels = _tree(_matrices(chain, semiring, costs), semiring)
    shape = len(chain.lengths), 1, 1, chain.c
    units = torch.arange(chain.c, device=chain.emissions.device) == 0
    entering = torch.where(units, semiring.one(shape, chain.emissions), semiring.zero(shape, chain.emissions))
    for level in reversed(levels[:-1]):
        lefts = level[..., 0::2, :, :][..., : entering.shape[-3], :, :]
        passed = semiring.matmul(entering, lefts)
        entering = torch.stack([entering, passed], -3).flatten(-4, -3)[..., : level.shape[-3], :, :]
    return semiring.matmul(entering, levels[0]).squeeze(-2)


def betas(chain: Chain, semiring: Semiring) -> Tensor:
    """β_1..β_n [..., batch, n, c]; β = end from the last position on."""
    levels = _tree(_matrices(chain, semiring, None), semiring)
    ones = semiring.one((len(chain.lengths), 1, chain.c, 1), chain.emissions)
    leaving = semiring.times(semiring.lift(chain.end[None, None, :, None]), ones)
    for level in reversed(levels[:-1]):
        rights = level[..., 1::2, :, :]
        whole = leaving[..., : rights.shape[-3], :, :]  # blocks with a right half
        passed = semiring.matmul(rights, whole)
        pairs = torch.stack([passed, whole], -3).flatten(-4, -3)
        leaving = torch.cat([pairs, leaving[..., rights.shape[-3] :, :, :]], -3) if level.shape[-3] % 2 else pairs
    return leaving.squeeze(-1)


def backtrack(chain: Chain, deltas: Float[Tensor, "batch n c"], last: Int[Tensor, "batch"]) -> Int[Tensor, "batch n"]:
    """Return the tags that lead to the last one by best predecessors; among ties the lowest.

    Padding holds the last tag.

    Predecessors are functions from tags to tags; they are composed by doubling.

    Args:
        chain: the scores.
        deltas: best score of the ways to each tag of each position.
        last: best last tag of each row.

    Returns:
        The best tags.
    """
    arcs = chain.transitions[None, None] if chain.transitions.dim() == 2 else chain.transitions
    before = (deltas[:, :-1, :, None] + arcs).argmax(-2)  # [batch, n-1, c]: of each tag at t the best one at t-1
    same = torch.arange(chain.c, device=before.device)
    before = torch.where(chain.token_mask[:, 1:, None], before, same)
    reach = 1
    while reach < chain.n - 1:
        further = before[:, :-reach].gather(2, before[:, reach:])
        before = torch.cat([further, before[:, -reach:]], 1)
        reach *= 2
    tags = before.gather(2, last[:, None, None].expand(-1, chain.n - 1, 1)).squeeze(2)
    return torch.cat([tags, last[:, None]], 1)


def _matrices(chain: Chain, semiring: Semiring, costs: Chain | None) -> Tensor:
    """W_1..W_n [..., batch, n, c, c]."""
    same = torch.eye(chain.c, dtype=torch.bool, device=chain.emissions.device)
    nothing = torch.where(same, 0.0, -INF).to(chain.emissions.dtype)
    real = chain.token_mask[..., None, None]
    scores = torch.where(real, _arrivals(chain), nothing)
    return _lift(semiring, scores, None if costs is None else torch.where(real, _arrivals(costs), 0.0))


def _arrivals(chain: Chain) -> Float[Tensor, "batch n c c"]:
    """Scores of the arc into each position and of the tag there; at the first, of the start."""
    start = chain.start.expand(chain.c, chain.c)
    if chain.transitions.dim() == 2:
        arcs = torch.cat([start[None], chain.transitions.expand(chain.n - 1, -1, -1)])
    else:
        arcs = torch.cat([start.expand(len(chain.lengths), 1, -1, -1), chain.transitions], 1)
    return arcs + chain.emissions[:, :, None]


def _lift(semiring: Semiring, scores: Tensor, values: Tensor | None) -> Tensor:
    return semiring.lift(scores, values) if isinstance(semiring, Expectation) else semiring.lift(scores)


def _tree(matrices: Tensor, semiring: Semiring) -> list[Tensor]:
    """The matrices [..., n, c, c], products of neighbours [..., ⌈n / 2⌉, c, c], and so on; the last is of all."""
    levels = [matrices]
    while (n := levels[-1].shape[-3]) > 1:
        level = levels[-1]
        pairs = level[..., : n - n % 2, :, :].unflatten(-3, (n // 2, 2))
        left, right = pairs.unbind(-3)
        products = semiring.matmul(left, right)
        levels.append(torch.cat([products, level[..., -1:, :, :]], -3) if n % 2 else products)
    return levels
