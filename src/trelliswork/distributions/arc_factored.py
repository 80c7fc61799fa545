"""What a distribution over dependency trees is made of: scores of arcs, with or without labels, as rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from trelliswork.distributions import tree_inputs as inputs
from trelliswork.distributions.base import Backend, StructuredDistribution, resolve_backend
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.arc_autograd import Family, log_partition, marginals
from trelliswork.structures.arc_labels import LabelledArcs
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.arcs import is_tree
from trelliswork.structures.label_autograd import sum_over_labels
from trelliswork.structures.label_kernels import labels_are_scores

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class ArcFactored(StructuredDistribution):
    """Parts, sums and posteriors; a family of trees fills in the hooks, `DependencyTree` the queries."""

    _kind = "tree without cycles"
    _family: ClassVar[Family]

    def __init__(
        self,
        arcs: Float[Tensor, "*batch n+1 n+1"],
        labels: Float[Tensor, "*batch n+1 n+1 l"] | None = None,
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        single_root: bool = True,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        inputs.check_shape(arcs, labels)
        self.arcs, self.labels, self.single_root = arcs, labels, bool(single_root)
        batch_shape, n = arcs.shape[:-2], arcs.shape[-1] - 1
        self._lengths = inputs.flat_lengths(lengths, batch_shape, n, arcs.device)
        self.backend = resolve_backend(backend, arcs.device)
        super().__init__(batch_shape, torch.Size([n] if labels is None else [n, 2]), validate_args=False)
        if validate_args is None or validate_args:
            self._check_scores()

    # --- hooks: flat rows ------------------------------------------------------------------------------------

    @abstractmethod
    def _best(self, rows: ArcRows) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        """The best heads, and whether a row has any tree."""

    @abstractmethod
    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Heads and labels [k, rows, n] of the k best for scores [rows, n+1, n+1, l]; scores, -inf for fewer."""

    @abstractmethod
    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        """Exact samples of heads."""

    @abstractmethod
    def _count(self) -> Float[Tensor, "rows"]:
        """How many trees are possible, with labels how many labelled trees."""

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        """Whether heads form a tree of this family."""
        return is_tree(self._given.trees, heads)

    # --- the parts -------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Words of the longest row."""
        return self.arcs.shape[-1] - 1

    @cached_property
    def _given(self) -> ArcRows:
        """The arcs without their labels, in a precision that kernels read."""
        return ArcRows(_readable(self.arcs, 2), self._lengths, self.single_root)

    @cached_property
    def _label_rows(self) -> Float[Tensor, "rows n+1 n+1 l"]:
        """The labels by themselves; none of them is the same as one that scores 0."""
        return (
            self._given.scores.new_zeros(*self._given.scores.shape, 1)
            if self.labels is None
            else _readable(self.labels, 3)
        )

    # What carries a graph of its own is made for each query: two of them can then be differentiated one after another.

    @property
    def _labelled(self) -> LabelledArcs:
        return LabelledArcs.of(self._given.trees, self._label_rows)

    @property
    def _rows(self) -> ArcRows:
        """Arcs whose trees are to be summed: over labels it has been done."""
        if self.labels is None:
            return self._given
        if self.backend == "torch":
            return self._given.with_scores(self._labelled.summed)
        return sum_over_labels(self._given, self._label_rows)

    @property
    def _parts(self) -> Float[Tensor, "rows n+1 n+1 *l"]:
        return self._given.trees.arcs if self.labels is None else self._labelled.parts

    def _check_scores(self) -> None:
        if self.backend == "torch" or not self._given.arrays.are_scores:
            inputs.check_scores("arcs", self._given.trees.arcs)
        if self.labels is None or (self.backend == "kernel" and self._label_arrays_are_scores()):
            return
        alone = self._given.trees.with_arcs(torch.zeros_like(self._given.scores))
        inputs.check_scores("labels", LabelledArcs.of(alone, self._label_rows).parts)

    def _label_arrays_are_scores(self) -> bool:
        return bool(labels_are_scores(as_array(self._label_rows), self._given.arrays.lengths))

    @property
    def _log_z(self) -> Float[Tensor, "rows"]:
        rows = self._rows
        if self.backend == "torch":
            log_z: Tensor = self._family.reference.log_partition(rows.trees)
            return log_z
        return log_partition(self._family, rows)

    @property
    def _posteriors(self) -> Float[Tensor, "rows n+1 n+1"]:
        rows = self._rows
        if self.backend == "torch":
            posteriors: Tensor = self._family.reference.marginals(rows.trees)
            return posteriors
        return marginals(self._family, rows)

    @property
    def _part_posteriors(self) -> Float[Tensor, "rows n+1 n+1 *l"]:
        return self._posteriors if self.labels is None else self._posteriors[..., None] * self._labelled.shares

    @property
    def _word_mask(self) -> Bool[Tensor, "rows n"]:
        return torch.arange(self.n, device=self._lengths.device) < self._lengths[:, None]

    @property
    def lengths(self) -> Int[Tensor, "*batch"]:
        """Words of each row."""
        return self._lengths.reshape(self.batch_shape)

    @property
    def valid(self) -> Bool[Tensor, "*batch n"]:
        """True at real words."""
        return self._word_mask.reshape(*self.batch_shape, self.n)

    def _batched(self, result: Tensor, *lead: int) -> Tensor:
        """A result [*lead, rows, ...] in the caller's batch shape and dtype."""
        return result.reshape((*lead, *self.batch_shape, *result.shape[len(lead) + 1 :])).to(self.arcs.dtype)

    def _value(self, heads: Int[Tensor, "m rows n"], labels: Int[Tensor, "m rows n"] | None) -> Tensor:
        """Heads, or (head, label) pairs, in the caller's batch shape; 0 at padding."""
        value = heads if labels is None else torch.stack([heads, labels], -1)
        real = self._word_mask.to(value.device)
        value = torch.where(real if labels is None else real[..., None], value, 0)
        return value.to(self.arcs.device).reshape(len(heads), *self.batch_shape, *self.event_shape)


def _readable(scores: Tensor, n_axes: int) -> Tensor:
    """Scores as rows with so many axes, in a precision that kernels read."""
    rows = scores.reshape(scores.shape[: scores.dim() - n_axes].numel(), *scores.shape[-n_axes:])
    return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
