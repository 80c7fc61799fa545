"""The queries of dependency trees, with or without labels, for every family of them.

Values and gradients come from a family's kernels; when a gradient is itself differentiated, its reference takes over,
so derivatives of every order are exact.

Posteriors are the gradient of log Z, so their Jacobian is its Hessian, which is symmetric: its product with a vector v
is how posteriors change when the scores move along v. The kernels find that by running on dual numbers a + ε b: for
projective trees complex ones with an imaginary part so small that its square is lost in rounding (Squire and Trapp,
1998, Using Complex Variables to Estimate Derivatives of Real Functions), for spanning trees pairs of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array, Bool, Float, Int
from trelliswork.runtime.autograd import differentiable, rows_by_reference
from trelliswork.runtime.bridge import any_seen, as_array, as_tensor
from trelliswork.runtime.compilation import Kernel
from trelliswork.runtime.threads import over_rows
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.arc_kernels import (
    expected_gradient,
    fold_labels,
    label_gradients,
    likelihood_gradient,
    read_arcs,
    tree_scores,
)
from trelliswork.structures.arc_labels import LabelledArcs, add_labels, below, label_log_probs
from trelliswork.structures.arcs import Arcs, tree_score
from trelliswork.structures.derivations import top_of_rows
from trelliswork.structures.kernel_solver import best_by, draw_by, seeds
from trelliswork.structures.record import CountingSolver, Decoded, Example, Scores, Solver, Structure
from trelliswork.structures.reference import Reference

# A batch of arc scores as a caller gives it, in the two forms that are computed on.


class ArcArrays(NamedTuple):
    """The arrays that kernels read: float64 scores [batch, n+1, n+1], -inf where there is no arc; if all are scores."""

    scores: Array
    lengths: Array
    single_root: bool
    are_scores: bool


@dataclass(frozen=True)
class ArcRows:
    """Scores of float32 or float64 on any device; column 0, the diagonal and padding are not read."""

    scores: Float[Tensor, "batch n+1 n+1"]
    lengths: Int[Tensor, "batch"]
    single_root: bool = True

    @property
    def word_mask(self) -> Bool[Tensor, "batch n"]:
        """True at real words."""
        return torch.arange(self.scores.shape[1] - 1, device=self.lengths.device) < self.lengths[:, None]

    @property
    def trees(self) -> Arcs:
        """For the reference, differentiable by the scores; made anew, so that each result has a graph of its own."""
        return Arcs.of(self.scores, self.lengths, self.single_root)

    @cached_property
    def arrays(self) -> ArcArrays:
        """For the kernels, read once; scores that are NaN or +inf are only noted."""
        raw, lengths = as_array(self.scores), as_array(self.lengths)
        arcs = buffers.empty(raw.shape)
        return ArcArrays(arcs, lengths, self.single_root, read_arcs(raw, lengths, arcs))

    def with_scores(self, scores: Tensor) -> ArcRows:
        return replace(self, scores=scores)


NO_MARGINALS = np.empty((0, 0, 0))


TopTrees = Callable[[Array, bool, int], tuple[Array, Array]]
"""(parts [n+1, n+1, l], single_root, k): the k best trees of a row [k, n, (head, label)] and their scores [k]."""


class Family(NamedTuple):
    """The implementation of a family of trees: its reference and its kernels over `ArcArrays`."""

    name: str
    reference: ModuleType
    projective: bool
    sums: Kernel  # log Z [rows] and marginals [rows, n+1, n+1], those not if they have no rows
    changes: Kernel  # of the marginals along directions [rows, n+1, n+1], and whether a row's were found
    best: Kernel  # heads [rows, n] and whether a row has any tree
    top: TopTrees
    draw: Kernel  # heads [samples, rows, n]; the posteriors of root words are given where arcs may cross

    def run_sums(self, trees: ArcArrays, with_marginals: bool) -> tuple[Array, Array]:
        """Return log Z [rows] and, if asked for, marginals [rows, n+1, n+1]."""
        batch, size, _ = trees.scores.shape
        log_z, marginals = np.empty(batch), np.zeros(trees.scores.shape) if with_marginals else NO_MARGINALS
        over_rows(self.sums, batch, batch * size**3, *trees[:3], log_z, marginals)
        return log_z, marginals

    def run_changes(self, rows: ArcRows, log_z: Array, directions: Array) -> Array:
        """Return the changes of marginals along directions [rows, n+1, n+1].

        Args:
            rows: the arcs of the rows, as kernels read them.
            log_z: log Z [rows].
            directions: how the scores move [rows, n+1, n+1].

        Returns:
            How the marginals move [rows, n+1, n+1].
        """
        trees, (batch, size, _) = rows.arrays, directions.shape
        changes, done = np.zeros(directions.shape), np.empty(batch, np.bool_)
        over_rows(self.changes, batch, 2 * batch * size**3, *trees[:3], log_z, directions, changes, done)

        def reference(scores: Tensor, some: Tensor) -> Tensor:
            marginals: Tensor = self.reference.marginals(Arcs.of(scores, rows.lengths[some], rows.single_root))
            return marginals

        rows_by_reference(changes, ~done, rows.scores, directions, reference)
        return changes

    def structure(self) -> Structure:
        return Structure(self.name, partial(ArcReference, self), partial(ArcKernels, self), example)


def example(scores: Scores) -> Example:
    return {"arcs": scores(2, 4, 4), "labels": scores(2, 4, 4, 2)}


class ArcKernels(Solver):
    """By kernel. Values are heads [rows, n], or (head, label) pairs [rows, n, 2].

    Args:
        family: the reference and the kernels of a family of trees.
        given: the scores of arcs.
        labels: the scores of labels on arcs; None for trees without labels.
    """

    validates_values, finds_fewer = True, True

    def __init__(self, family: Family, given: ArcRows, labels: Tensor | None) -> None:
        self._family, self._given, self._labels = family, given, labels

    @property
    def arrays(self) -> ArcArrays | None:
        return self._given.arrays

    # What carries a graph of its own is made for each query: two of them can then be differentiated one after another.

    @property
    def labelled(self) -> LabelledArcs:
        """Arcs with labels; none of them is the same as one that scores 0."""
        scores = self._given.scores
        labels = scores.new_zeros(*scores.shape, 1) if self._labels is None else self._labels
        return LabelledArcs.of(self._given.trees, labels)

    @property
    def rows(self) -> ArcRows:
        """Arcs whose trees are to be summed: over labels it has been done."""
        return self._given if self._labels is None else self._over_all(self._labels)

    def _over_all(self, labels: Tensor) -> ArcRows:
        return sum_over_labels(self._given, labels)

    def _over_best(self, labels: Tensor) -> ArcRows:
        return best_over_labels(self._given, labels)

    def log_partition(self) -> Tensor:
        rows, family = self.rows, self._family
        log_z, posteriors = family.run_sums(rows.arrays, torch.is_grad_enabled() and rows.scores.requires_grad)
        gradient_of = _like(rows.scores)

        def vjp(grad: Array) -> tuple[Array]:
            gradient = gradient_of()
            expected_gradient(grad, posteriors, gradient)
            return (gradient,)

        log_partition: Tensor = differentiable(
            torch.from_numpy(log_z),
            (rows.scores,),
            vjp,
            lambda scores: family.reference.log_partition(rows.with_scores(scores).trees),
        )
        return log_partition

    def marginals(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return posteriors of all arcs, in float32 unless `dtype` is float64.

        A conversion outside of this node takes one of its own.
        """
        rows, family = self.rows, self._family
        log_z, posteriors = family.run_sums(rows.arrays, True)
        marginals: Tensor = differentiable(
            as_tensor(posteriors, dtype),
            (rows.scores,),
            lambda grad: (family.run_changes(rows, log_z, grad),),
            lambda scores: family.reference.marginals(rows.with_scores(scores).trees),
        )
        return marginals

    def _log_likelihood(self, rows: ArcRows, heads: Tensor) -> Tensor | None:
        """Return log p(heads): sums, score and all that the gradient needs in two kernels.

        None if the heads are not those of trees.
        """
        arrays, values, family = rows.arrays, as_array(heads), self._family
        scores = np.empty(len(values))
        if not tree_scores(arrays.scores, arrays.lengths, arrays.single_root, family.projective, values, scores):
            return None
        log_z, posteriors = family.run_sums(arrays, torch.is_grad_enabled() and rows.scores.requires_grad)
        possible = scores > -np.inf
        log_probs = np.where(possible, np.minimum(scores - np.where(possible, log_z, 0.0), 0.0), -np.inf)
        gradient_of = _like(rows.scores)

        def vjp(grad: Array) -> tuple[Array]:
            gradient = gradient_of()
            likelihood_gradient(grad, values, arrays.lengths, log_probs, posteriors, gradient)
            return (gradient,)

        def reference(scores: Tensor) -> Tensor:
            trees = rows.with_scores(scores).trees
            return log_ratio(tree_score(trees, heads), family.reference.log_partition(trees))

        log_prob: Tensor = differentiable(torch.from_numpy(log_probs.copy()), (rows.scores,), vjp, reference)
        return log_prob

    def score(self, values: Tensor) -> Tensor:
        trees = self._given.trees
        if self._labels is None:
            return tree_score(trees, values)
        return self.labelled.score(values[..., 0], values[..., 1], trees.word_mask)

    def log_prob(self, values: Tensor) -> Tensor | None:
        if self._labels is None:
            return self._log_likelihood(self.rows, values)
        real = self._given.word_mask
        heads, labels = (torch.where(real, each, 0) for each in values.unbind(-1))
        if any_seen((labels < 0) | (labels >= self._labels.shape[-1])):
            return None
        rows = self.rows
        of_heads = self._log_likelihood(rows, heads)
        if of_heads is None:
            return None
        of_labels = label_log_probs(self._given.scores, self._labels, rows.scores, heads, labels)
        return add_labels(of_heads, of_labels, real)

    def best(self) -> tuple[Tensor, Tensor]:
        rows = self.rows if self._labels is None else self._over_best(self._labels)
        heads, possible = (each.to(self._given.scores.device) for each in self._best(rows))
        if self._labels is None:
            return heads, possible  # 0 at padding, which the kernel leaves as it is
        return self._values(heads, below(self._labels, heads).argmax(-1)), possible

    def top_k(self, k: int) -> Decoded:
        heads, labels, scores = (each.to(self._given.scores.device) for each in self._top(self.labelled.parts, k))
        return self._values(heads, None if self._labels is None else labels), scores

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        heads = self._draw(self.rows, n_samples, generator).to(self._given.scores.device)
        return self._values(heads, None if self._labels is None else self.labelled.draw_labels(heads, generator))

    def _values(self, heads: Tensor, labels: Tensor | None) -> Tensor:
        """Return heads, or (head, label) pairs; 0 at padding."""
        real = self._given.word_mask
        if labels is None:
            return torch.where(real, heads, 0)
        return torch.where(real[..., None], torch.stack([heads, labels], -1), 0)

    # --- trees without labels --------------------------------------------------------------------------------

    def _best(self, rows: ArcRows) -> Decoded:
        trees = rows.arrays
        batch, size, _ = trees.scores.shape
        work = batch * size**3 if self._family.projective else batch * size**2 * 8
        return best_by(self._family.best, work, np.zeros((batch, size - 1), np.int64), *trees[:3])

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        lengths, scored, single_root = as_array(self._given.lengths), as_array(parts), self._given.single_root
        batch, size = scored.shape[:2]

        def row(b: int) -> tuple[Array, Array]:
            n = lengths[b]
            return self._family.top(np.ascontiguousarray(scored[b, : n + 1, : n + 1]), single_root, k)

        pairs, scores = top_of_rows(row, batch, batch * size**3, (size - 1, 2), 0)
        heads, labels = torch.from_numpy(pairs).unbind(-1)
        return heads, labels, torch.from_numpy(scores)

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Return a single root word of trees whose arcs may cross is drawn from its posterior."""
        trees, family = rows.arrays, self._family
        batch, size, _ = trees.scores.shape
        chosen = seeds(n_samples, batch, generator)
        given = (chosen,) if family.projective else (family.run_sums(trees, True)[1][:, 0].copy(), chosen)
        heads = np.zeros((n_samples, batch, size - 1), np.int64)
        return draw_by(family.draw, batch * (n_samples + size) * size**2, heads, *trees[:3], *given)


class ArcReference(ArcKernels, CountingSolver):
    """Sums in plain torch; where arcs may cross, single trees are searched by kernel, on the CPU."""

    validates_values = False
    arrays = None

    @property
    def finds_fewer(self) -> bool:  # type: ignore[override]
        return not self._family.projective

    def _over_all(self, labels: Tensor) -> ArcRows:
        return self._given.with_scores(self.labelled.summed)

    def _over_best(self, labels: Tensor) -> ArcRows:
        return self._given.with_scores(self.labelled.best)

    def _reference(self, rows: ArcRows) -> Reference:
        return Reference(self._family.reference, rows.trees)

    def log_partition(self) -> Tensor:
        return self._reference(self.rows).log_partition()

    def marginals(self, dtype: torch.dtype = torch.float64) -> Tensor:
        posteriors: Tensor = self._reference(self.rows).marginals()
        return posteriors

    def log_prob(self, values: Tensor) -> Tensor | None:
        return Solver.log_prob(self, values)

    def count(self) -> Tensor:
        """Count the trees.

        Where arcs may cross that is Z with the number of its labels as the weight of an arc, rounded: exact up to 13
        digits or so.
        """
        trees = self._given.trees
        if self._family.projective:
            return Reference(self._family.reference, trees.with_arcs(self.labelled.parts)).count()
        ones: Tensor = self._family.reference.log_partition(trees.with_arcs(self.labelled.n_possible.log()))
        return ones.exp().round()

    def _best(self, rows: ArcRows) -> Decoded:
        return self._reference(rows).best() if self._family.projective else super()._best(rows)

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        if not self._family.projective:
            return super()._top(parts, k)
        pairs, scores = Reference(self._family.reference, self._given.trees.with_arcs(parts)).top_k(k)
        return pairs[..., 0], pairs[..., 1], scores

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Tensor:
        if not self._family.projective:
            return super()._draw(rows, n_samples, generator)
        return self._reference(rows).sample(n_samples, generator)


def sum_over_labels(rows: ArcRows, labels: Tensor) -> ArcRows:
    """Return arcs + log Σ_y exp(labels) [batch, n+1, n+1] in float64, as rows to sum over trees."""
    arcs, summed = rows.arrays.scores, buffers.empty(rows.arrays.scores.shape)
    fold_labels(as_array(labels), arcs, False, summed)

    def vjp(grad: Array) -> tuple[Array, Array]:
        d_scores, d_labels = np.empty(arcs.shape, raw.dtype), np.empty(own.shape, own.dtype)
        label_gradients(grad, own, arcs, summed, d_labels, d_scores)
        return d_scores, d_labels

    def reference(scores: Tensor, labels: Tensor) -> Tensor:
        return LabelledArcs.of(rows.with_scores(scores).trees, labels).summed

    raw, own = as_array(rows.scores), as_array(labels)
    return rows.with_scores(differentiable(torch.from_numpy(summed), (rows.scores, labels), vjp, reference))


def best_over_labels(rows: ArcRows, labels: Tensor) -> ArcRows:
    """Return arcs + max_y labels, as rows to search for the best tree."""
    best = buffers.empty(rows.arrays.scores.shape)
    fold_labels(as_array(labels), rows.arrays.scores, True, best)
    return rows.with_scores(torch.from_numpy(best))


def _like(scores: Tensor) -> Callable[[], Array]:
    """Return a function that makes arrays for the gradient of scores, without keeping them."""
    shape, dtype = tuple(scores.shape), scores.dtype
    return lambda: np.empty(shape, np.float64 if dtype == torch.float64 else np.float32)
