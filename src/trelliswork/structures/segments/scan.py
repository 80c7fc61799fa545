"""Segmentations in few steps: blocks of positions at once, then products of what they do, in place of one long loop.

What a boundary i needs of the past are γ_i, ..., γ_{i-k+1}, a state of k c elements, and each position is a function
from states to states, linear over the semiring. The functions of blocks of a few positions are found by the loop, for
all blocks at once, from each unit state; their products are taken as in `chain.scan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings import KBest, Semiring
from trelliswork.structures.chain import scan

if TYPE_CHECKING:
    from trelliswork.structures.segments.structure import Segments

BLOCKS = 2, 4
"""Positions that the loop does, where the memory is enough: each adds its launches, and doubling them halves the memory
of the first products."""


def applies(parts: Segments, semiring: Semiring) -> bool:
    """Return whether products take less time than the loop over positions, and fit in memory."""
    kind = scan.kind_of(parts.start.device)
    if kind in ("always", "never"):
        return kind == "always" and parts.n > 1
    work, most = _work(parts, semiring) / BLOCKS[-1], scan.MOST_WORK[kind]
    enough = parts.n >= 2 * BLOCKS[-1] and parts.k <= parts.n
    return enough and work <= 4 * most and 8 * work * parts.n <= scan.MOST_BYTES


def _work(parts: Segments, semiring: Semiring) -> int:
    """Multiplications of one product of functions, in all rows."""
    payload = semiring.k**2 if isinstance(semiring, KBest) else 1
    return payload * len(parts.lengths) * (parts.k * parts.c) ** 3


def _block(parts: Segments, semiring: Semiring) -> int:
    """Return the positions of a block: as few as fit in memory."""
    fits = 8 * _work(parts, semiring) / BLOCKS[0] * parts.n <= scan.MOST_BYTES
    return BLOCKS[0] if fits else BLOCKS[-1]


def total(parts: Segments, semiring: Semiring) -> Tensor:
    """⊕ over all segmentations of ⊗ of their parts [rows]."""
    size = parts.k * parts.c
    arriving = parts.arriving()
    arcs = parts.transitions if parts.transitions is not None else parts.start.new_zeros(parts.c, parts.c)
    blocks = _functions(
        parts,
        semiring,
        semiring.lift(_in_blocks(arriving, _block(parts, semiring))),
        semiring.lift(arcs.expand(1, 1, 1, 1, -1, -1)),
    )
    product = scan.products(blocks.flatten(-4, -3).flatten(-2), semiring)
    first = torch.where(torch.arange(size, device=arcs.device) < parts.c, parts.start.repeat(parts.k), -INF)
    ones = semiring.one((len(parts.lengths), 1, 1, size), parts.segments)
    entering = semiring.times(semiring.lift(first[None, None, None]), ones)
    last = semiring.matmul(entering, product).squeeze(-2).squeeze(-2)  # γ_{L-1}, ..., γ_{L-k} of each row
    at_end = _at(arriving, parts.lengths) + parts.end
    return semiring.sum(semiring.times(last, semiring.lift(at_end.flatten(-2))), dim=-1)


def _at(arriving: Tensor, lengths: Tensor) -> Tensor:
    """[b, d-1, y]: the segments that end each row."""
    return arriving[torch.arange(len(lengths), device=lengths.device), lengths - 1]


def _in_blocks(arriving: Tensor, block: int) -> Tensor:
    """Segments that arrive at boundaries 1..n, as blocks [batch, blocks, positions, k, c]; the last may be padded."""
    missing = -arriving.shape[1] % block
    if missing:
        arriving = torch.cat([arriving, arriving.new_full((len(arriving), missing, *arriving.shape[2:]), -INF)], 1)
    return arriving.unflatten(1, (-1, block))


def _functions(parts: Segments, semiring: Semiring, arriving: Tensor, arcs: Tensor) -> Tensor:
    """The state that each block makes of each unit state [..., batch, blocks, k, c, k, c]; from L - 1 on the same."""
    n_blocks, block, k, c, device = *arriving.shape[-4:-2], parts.k, parts.c, arcs.device
    units = torch.eye(k * c, dtype=torch.bool, device=device).reshape(k, c, k, c)
    shape = len(parts.lengths), n_blocks, k, c, k, c
    states = torch.where(units, semiring.one(shape, parts.segments), semiring.zero(shape, parts.segments))
    boundary = 1 + torch.arange(n_blocks * block, device=device).reshape(n_blocks, block)
    within = (boundary < parts.lengths[:, None, None])[..., None, None, None, None]
    for t, arrived in enumerate(arriving.unbind(-3)):
        if t == 0:  # of a unit state only one segment and one label have any weight
            gamma = semiring.times(arrived[..., None], arcs.squeeze(-3))
        else:
            alpha = semiring.sum(semiring.times(states, arrived[..., None, None, :, :]), dim=-2)
            gamma = semiring.sum(semiring.times(alpha[..., None], arcs), dim=-2)
        moved = torch.cat([gamma[..., None, :], states[..., :-1, :]], -2)
        states = torch.where(within[:, :, t], moved, states)
    return states
