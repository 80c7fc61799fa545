"""The closure W* = I ⊕ W ⊕ W² ⊕ ... of a matrix: all paths between all pairs of states."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float
from trelliswork.runtime.bridge import out_of_reach
from trelliswork.semirings import Log, Max, Semiring
from trelliswork.structures.automata import kernels

DIVERGES = (
    "the sum over paths does not converge: going round a cycle does not lose weight (spectral radius >= 1, or a best "
    "path that gains with every round); lower the weights on cycles, or remove them"
)


def lehmann(matrix: Tensor, semiring: Semiring) -> Tensor:
    """Return W* [..., m, m] over any closed semiring: Lehmann's algorithm.

    W_ij ← W_ij ⊕ W_ik ⊗ (W_kk)* ⊗ W_kj for each k in turn, then I is added; an error if some cycle does not converge.
    """  # [S2, Floyd-Warshall]
    if _suits_kernel(matrix, semiring):
        closed = matrix.detach().clone()
        if not kernels.close(closed.numpy(), type(semiring) is Log):
            raise ScoreError(DIVERGES)
        return closed
    m = matrix.shape[-1]
    for k in range(m):
        around = semiring.star(matrix[..., k, k])
        _require_convergence(around, semiring)
        onwards = semiring.times(around[..., None], matrix[..., k, :])
        detour = semiring.times(matrix[..., :, k].unsqueeze(-1), onwards.unsqueeze(-2))
        matrix = semiring.plus(matrix, detour)
    empty, one = semiring.zero((m, m), matrix), semiring.one((m, m), matrix)
    return semiring.plus(matrix, torch.where(torch.eye(m, dtype=torch.bool), one, empty))


def _suits_kernel(matrix: Tensor, semiring: Semiring) -> bool:
    """Return whether no derivative is wanted, of log weights that numba can read."""
    wanted = torch.is_grad_enabled() and matrix.requires_grad
    readable = matrix.dim() == 2 and matrix.dtype == torch.float64 and matrix.device.type == "cpu"
    return readable and not wanted and not out_of_reach() and type(semiring) in (Log, Max)


def _require_convergence(around: Tensor, semiring: Semiring) -> None:
    nothing = semiring.zero((), around).to(around.device)
    infinite = around.isinf() & (around != nothing) if around.is_floating_point() else torch.tensor(False)
    if bool(infinite.any()):
        raise ScoreError(DIVERGES)


def real_closure(weights: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    """Return W* = (I - W)^-1 in the real semiring, differentiable.

    The series converges if and only if the spectral radius of W is below 1; otherwise the inverse, if there is one, is
    something else, and that is an error.
    """  # [S2, matrix closure]
    if weights.dim() != 2 or weights.shape[0] != weights.shape[1] or not weights.is_floating_point():
        raise ScoreError(f"a closure needs a square matrix of floats; got {weights.dtype} {tuple(weights.shape)}")
    if not bool(weights.isfinite().all()):
        raise ScoreError("a closure needs finite weights; got NaN or inf; real weights are exp of log scores")
    radius = torch.linalg.eigvals(weights.detach().double()).abs().max().item() if len(weights) else 0.0
    if radius >= 1:
        raise ScoreError(
            f"W* needs a spectral radius below 1; got {radius:.6g}, so the sum over paths grows without bound; "
            "lower the weights on cycles"
        )
    one = torch.eye(len(weights), dtype=weights.dtype, device=weights.device)
    return torch.linalg.inv(one - weights)
