"""Every query in plain torch, from one recursion over any semiring and its gradients.

The gradient of the log-sum marks each part with its posterior; that of `Max`, `KBest` and `Sampling` is 1 at the parts
of the value that was chosen, and 0 elsewhere. A structure says how to read a value off these marks (`decode`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.runtime.autograd import recording
from trelliswork.runtime.bridge import require_numbers
from trelliswork.semirings import Counting, KBest, Max, Sampling, Semiring
from trelliswork.structures.record import CountingSolver, Decoded


class Reference(CountingSolver):
    """By the functions of a structure's `structure.py`.

    `total(*parts, semiring)` is the recursion, `decode(marks, parts)` the way from marks, shaped like
    `parts.part_scores`, to values; `parts.detached()` makes `parts.part_scores` a leaf. The rest is `log_partition`,
    `marginals`, `path_score`.
    """

    def __init__(self, module: ModuleType, *parts: Any) -> None:
        self._module, self._parts = module, parts

    def total(self, semiring: Semiring) -> Tensor:
        """Return ⊕ over all values of the ⊗ of their parts [rows]."""
        total: Tensor = self._module.total(*self._parts, semiring)
        return total

    def count(self) -> Tensor:
        return self.total(Counting())

    def log_partition(self) -> Tensor:
        log_z: Tensor = self._module.log_partition(*self._parts)
        return log_z

    def marginals(self) -> Any:
        return self._module.marginals(*self._parts)

    def score(self, values: Tensor) -> Tensor:
        score: Tensor = self._module.path_score(self._parts[0], values)
        return score

    def best(self) -> Decoded:
        values, scores = self._chosen(Max(), 1)
        return values[0], scores > -INF

    def top_k(self, k: int) -> Decoded:
        return self._chosen(KBest(k), k)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        return self._chosen(Sampling(generator), n_samples)[0]

    def _chosen(self, semiring: Semiring, n_values: int) -> Decoded:
        """Return values [n_values, rows, *event] that the gradients of a total mark, and the total."""
        with recording(*self._parts) as (parts, *others):
            leaf = parts.detached()
            total = self._module.total(leaf, *others, semiring)
            totals = total if isinstance(semiring, KBest) else [total] * n_values
            marks = [part_gradient(each, leaf.part_scores) for each in totals]
        values = [self._module.decode(each, leaf) for each in marks]
        if not values:
            return self._module.decode(torch.zeros_like(leaf.part_scores), leaf)[None][:0], total.detach()
        return torch.stack(values), total.detach()


def part_gradient(total: Tensor, scores: Tensor) -> Tensor:
    """Return the gradient of a total by the scores, which it does not depend on if the only value has no part."""
    if not total.requires_grad:
        return torch.zeros_like(scores)
    (marks,) = torch.autograd.grad(total.sum(), scores, retain_graph=True)
    return marks


def posteriors(log_partition: Callable[..., Tensor], parts: Any) -> Tensor:
    """p(part | x) as the derivative of log Z by `parts.part_scores`; with a graph to differentiate again if one is
    recorded."""
    again = torch.is_grad_enabled() and parts.part_scores.requires_grad
    if not again:
        require_numbers("what is summed up backwards, such as marginals and entropy,")
    with recording(parts) as (parts,):
        leaf = parts if again else parts.detached()
        log_z = log_partition(leaf)
        if not log_z.requires_grad:
            return torch.zeros_like(parts.part_scores)
        (gradient,) = torch.autograd.grad(log_z.sum(), leaf.part_scores, create_graph=again)
    return gradient if again else gradient.detach()
