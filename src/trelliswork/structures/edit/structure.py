"""Edit scripts between two sequences: their parts, and the recursion in plain torch, for any semiring.

    score(script) = Σ scores[i, j, operation] over its steps, each arriving at a cell (i, j) of the lattice

Cell (i, j): i symbols of the source are read, j of the target written. A script leads from (0, 0) to (n, m) by
substitutions (i-1, j-1) -> (i, j), deletions (i-1, j) -> (i, j) and insertions (i, j-1) -> (i, j).
This is the reference; `kernels.py` computes the hot queries faster and is tested against it. See `math.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings import Log, Semiring
from trelliswork.structures.reference import posteriors

SUBSTITUTE, DELETE, INSERT = 0, 1, 2
NO_STEP = -1


@dataclass(frozen=True)
class EditLattice:
    """Scores of the steps into each cell in float64; -inf at whatever is no step of the row's lattice."""

    scores: Float[Tensor, "batch n+1 m+1 3"]
    lengths: Int[Tensor, "batch"]
    target_lengths: Int[Tensor, "batch"]

    @staticmethod
    def of(scores: Tensor, lengths: Tensor, target_lengths: Tensor) -> EditLattice:
        """Set -inf at steps from outside and into padding, whatever stands there.

        Args:
            scores: scores of the steps into each cell [batch, n+1, m+1, 3]: substitution, deletion, insertion.
            lengths: length of x of each row [batch].
            target_lengths: length of y of each row [batch].

        Returns:
            The lattice in float64.
        """
        i = torch.arange(scores.shape[1], device=scores.device)[:, None]
        j = torch.arange(scores.shape[2], device=scores.device)
        inside = (i <= lengths[:, None, None]) & (j <= target_lengths[:, None, None])
        reads, writes = (i > 0) & (j >= 0), (j > 0) & (i >= 0)
        steps = torch.stack([reads & writes, reads, writes], -1) & inside[..., None]
        return EditLattice(torch.where(steps, scores.double(), -INF), lengths, target_lengths)

    @property
    def n(self) -> int:
        return self.scores.shape[1] - 1

    @property
    def m(self) -> int:
        return self.scores.shape[2] - 1

    @property
    def part_scores(self) -> Float[Tensor, "batch n+1 m+1 3"]:
        return self.scores

    def with_scores(self, scores: Tensor) -> EditLattice:
        return replace(self, scores=scores)

    def detached(self) -> EditLattice:
        """The same scores cut off from their history: a leaf to differentiate by."""
        return self.with_scores(self.scores.detach().clone().requires_grad_())

    def diagonals(self, table: Tensor, outside: float) -> Tensor:
        """[batch, n+m+1, n+1, 3]: entry (d, i) is cell (i, d - i) of a table like the scores."""
        i = torch.arange(self.n + 1, device=table.device)
        j = torch.arange(self.n + self.m + 1, device=table.device)[:, None] - i
        found = table[:, i, j.clamp(0, self.m)]
        return torch.where(((j >= 0) & (j <= self.m))[..., None], found, outside)


def total(parts: EditLattice, semiring: Semiring) -> Tensor:
    """⊕ over all edit scripts of ⊗ of their steps, one diagonal i + j = d of the lattice after the other.

    α(0, 0) = 1;   α(i, j) = α(i-1, j-1) ⊗ sub(i, j) ⊕ α(i-1, j) ⊗ del(i, j) ⊕ α(i, j-1) ⊗ ins(i, j)
    """
    batch, n = len(parts.lengths), parts.n
    steps = semiring.lift(parts.diagonals(parts.scores, -INF)).unbind(-3)
    nothing = semiring.zero((batch, 1), parts.scores)
    before = semiring.zero((batch, n + 1), parts.scores)
    here = torch.cat([semiring.one((batch, 1), parts.scores), before[..., 1:]], -1)
    length = parts.lengths + parts.target_lengths
    found = _pick(here, parts.lengths)
    for d in range(1, len(steps)):
        after_substitution = torch.cat([nothing, before[..., :-1]], -1)
        after_deletion = torch.cat([nothing, here[..., :-1]], -1)
        arriving = semiring.times(torch.stack([after_substitution, after_deletion, here], -1), steps[d])
        before, here = here, semiring.sum(arriving, dim=-1)
        found = torch.where(length == d, _pick(here, parts.lengths), found)
    return found


def _pick(alpha: Tensor, cell: Int[Tensor, "batch"]) -> Tensor:
    """alpha[..., b, cell[b]]."""
    return alpha.gather(-1, cell.expand(alpha.shape[:-1])[..., None]).squeeze(-1)


def log_partition(parts: EditLattice) -> Float[Tensor, "batch"]:
    return total(parts, Log())


def cells(steps: Int[Tensor, "batch k"]) -> tuple[Tensor, Tensor, Tensor]:
    """Which steps are taken (up to the first NO_STEP), and the cells (i, j) they arrive at."""
    taken = (steps >= 0).long().cumprod(1).bool()
    i = (taken & (steps != INSERT)).cumsum(1)
    j = (taken & (steps != DELETE)).cumsum(1)
    return taken, i, j


def is_script(parts: EditLattice, steps: Int[Tensor, "batch k"]) -> Bool[Tensor, "batch"]:
    """Return whether steps lead from (0, 0) to the row's last cell."""
    _, i, j = cells(steps)
    if steps.shape[1] == 0:
        return (parts.lengths == 0) & (parts.target_lengths == 0)
    return (i[:, -1] == parts.lengths) & (j[:, -1] == parts.target_lengths)


def path_score(parts: EditLattice, steps: Int[Tensor, "batch k"]) -> Float[Tensor, "batch"]:
    """Σ scores of the steps. Gathered, never multiplied: no -inf times 0."""
    taken, i, j = cells(steps)
    row = torch.arange(len(steps), device=steps.device)[:, None]
    picked = parts.scores[row, i, j, torch.where(taken, steps, 0)]
    return torch.where(taken, picked, 0.0).sum(1)


def marginals(parts: EditLattice) -> Float[Tensor, "batch n+1 m+1 3"]:
    """p(step into a cell | x, y)."""
    return posteriors(log_partition, parts)


def decode(marks: Float[Tensor, "batch n+1 m+1 3"], parts: EditLattice) -> Int[Tensor, "batch n+m"]:
    """The steps that are marked, in order: a diagonal has at most one. Among ties the last step is a substitution if
    it can be, then a deletion, and so on backwards."""
    chosen, operation = parts.diagonals(marks, 0.0).amax(2).max(-1)
    steps = torch.where(chosen > 0, operation, NO_STEP)[:, 1:]
    order = (steps < 0).to(torch.uint8).argsort(dim=1, stable=True)
    return steps.gather(1, order)
