"""log Z, log p and posteriors of arcs, for every family of dependency trees.

Values and first derivatives come from a family's kernels; everything beyond that is differentiated through its
reference, so derivatives of every order are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.arc_kernels import expected_gradient, likelihood_gradient, tree_scores
from trelliswork.structures.arc_rows import ArcArrays, ArcRows, Array
from trelliswork.structures.arcs import tree_score


class Family(NamedTuple):
    """How a family of trees computes: sums(arrays, with_marginals) gives (log Z, marginals or an empty array)."""

    sums: Callable[[ArcArrays, bool], tuple[Array, Array]]
    reference: ModuleType  # log_partition and marginals of `Arcs`
    projective: bool


def log_partition(family: Family, rows: ArcRows) -> Tensor:
    """log Z [batch] in float64."""
    log_z, posteriors = family.sums(rows.arrays, torch.is_grad_enabled() and rows.scores.requires_grad)
    gradient_of = _like(rows.scores)

    def vjp(grad: Array) -> tuple[Array]:
        gradient = gradient_of()
        expected_gradient(grad, posteriors, gradient)
        return (gradient,)

    return differentiable(
        torch.from_numpy(log_z),
        (rows.scores,),
        vjp,
        lambda scores: family.reference.log_partition(rows.with_scores(scores).trees),
    )


def log_likelihood(family: Family, rows: ArcRows, heads: Tensor) -> Tensor | None:
    """log p(heads) [batch]: sums, score and all that the gradient needs in two kernels; None if heads are no trees."""
    arrays, found = rows.arrays, as_array(heads)
    scores = np.empty(len(found))
    if not tree_scores(arrays.scores, arrays.lengths, arrays.single_root, family.projective, found, scores):
        return None
    log_z, posteriors = family.sums(arrays, torch.is_grad_enabled() and rows.scores.requires_grad)
    possible = scores > -np.inf
    log_probs = np.where(possible, np.minimum(scores - np.where(possible, log_z, 0.0), 0.0), -np.inf)
    gradient_of = _like(rows.scores)

    def vjp(grad: Array) -> tuple[Array]:
        gradient = gradient_of()
        likelihood_gradient(grad, found, arrays.lengths, log_probs, posteriors, gradient)
        return (gradient,)

    def reference(scores: Tensor) -> Tensor:
        trees = rows.with_scores(scores).trees
        return log_ratio(tree_score(trees, heads), family.reference.log_partition(trees))

    return differentiable(torch.from_numpy(log_probs.copy()), (rows.scores,), vjp, reference)


def marginals(family: Family, rows: ArcRows) -> Tensor:
    """p(arc | x) [batch, n+1, n+1] in float64."""
    return differentiable(
        torch.from_numpy(family.sums(rows.arrays, True)[1]),
        (rows.scores,),
        None,
        lambda scores: family.reference.marginals(rows.with_scores(scores).trees),
    )


def _like(scores: Tensor) -> Callable[[], Array]:
    """What makes an array for the gradient of scores, without keeping them."""
    shape, dtype = tuple(scores.shape), scores.dtype
    return lambda: np.empty(shape, np.float64 if dtype == torch.float64 else np.float32)
