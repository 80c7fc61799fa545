"""What a distribution over dependency trees is made of: scores of arcs, with or without labels, as rows."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from trelliswork.distributions import tree_inputs as inputs
from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.checks import flat_lengths, named_place, refuse_not_scores
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.arc_labels import LabelledArcs
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.arcs import is_tree
from trelliswork.structures.label_kernels import labels_are_scores

FIX = "count words without the root, pad the arcs or shorten the row"
PLACE = named_place("row", "head", "dependent", "label")


class ArcFactored(StructuredDistribution):
    """Parts, sums and posteriors; a family of trees fills in the hooks, `DependencyTree` the queries."""

    _kind = "tree without cycles"

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
        self._lengths = flat_lengths("lengths", lengths, batch_shape, n, arcs.device, 1, FIX)
        super().__init__(arcs, batch_shape, [n] if labels is None else [n, 2], backend)
        if validate_args is None or validate_args:
            self._check_scores()

    # --- hooks: flat rows ------------------------------------------------------------------------------------

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

    @property
    def _labelled(self) -> LabelledArcs:
        labelled: LabelledArcs = self._solver.labelled
        return labelled

    @property
    def _rows(self) -> ArcRows:
        """Arcs whose trees are to be summed: over labels it has been done."""
        rows: ArcRows = self._solver.rows
        return rows

    @property
    def _solved(self) -> tuple[ArcRows, Tensor | None]:
        return self._given, None if self.labels is None else self._label_rows

    @property
    def _parts(self) -> Float[Tensor, "rows n+1 n+1 *l"]:
        return self._given.trees.arcs if self.labels is None else self._labelled.parts

    def _check_scores(self) -> None:
        arrays = self._solver.arrays
        if arrays is None or not arrays.are_scores:
            refuse_not_scores("arcs", self._given.trees.arcs, None, PLACE)
        if self.labels is None or (arrays is not None and self._label_arrays_are_scores()):
            return
        alone = self._given.trees.with_arcs(torch.zeros_like(self._given.scores))
        refuse_not_scores("labels", LabelledArcs.of(alone, self._label_rows).parts, None, PLACE)

    def _label_arrays_are_scores(self) -> bool:
        return bool(labels_are_scores(as_array(self._label_rows), self._given.arrays.lengths))

    @property
    def _part_posteriors(self) -> Float[Tensor, "rows n+1 n+1 *l"]:
        return self._posteriors if self.labels is None else self._posteriors[..., None] * self._labelled.shares

    @property
    def _word_mask(self) -> Bool[Tensor, "rows n"]:
        return self._given.word_mask

    @property
    def lengths(self) -> Int[Tensor, "*batch"]:
        """Words of each row."""
        return self._lengths.reshape(self.batch_shape)

    @property
    def valid(self) -> Bool[Tensor, "*batch n"]:
        """True at real words."""
        return self._word_mask.reshape(*self.batch_shape, self.n)


def _readable(scores: Tensor, n_axes: int) -> Tensor:
    """Scores as rows with so many axes, in a precision that kernels read."""
    rows = scores.reshape(scores.shape[: scores.dim() - n_axes].numel(), *scores.shape[-n_axes:])
    return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
