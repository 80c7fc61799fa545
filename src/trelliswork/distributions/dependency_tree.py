"""Base of distributions over dependency trees: the queries, for trees with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.centring import centred_by_word
from trelliswork.distributions.checks import (
    check_floating,
    check_tensor,
    check_tensors,
    flat_lengths,
    known_values,
    named_place,
    real_values,
    refuse_not_scores,
)
from trelliswork.distributions.costs import weighted_sum
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import any_seen, as_array
from trelliswork.structures.arc_kernels import labels_are_scores
from trelliswork.structures.arc_labels import LabelledArcs
from trelliswork.structures.arc_solver import ArcRows
from trelliswork.structures.arcs import is_tree
from trelliswork.structures.record import Solver

# Checks of the arguments of distributions over dependency trees, each with a sentence that explains the error.


def check_shape(arcs: Tensor, labels: Tensor | None) -> None:
    check_tensors(arcs=arcs, labels=labels)
    if arcs.dim() < 2 or arcs.shape[-1] != arcs.shape[-2] or arcs.shape[-1] < 2:
        raise ScoreError(
            f"arcs must be [batch, n+1, n+1] with n >= 1 words; got {tuple(arcs.shape)}; "
            "index them [head, dependent], 0 being the root"
        )
    if labels is not None and (labels.shape[:-1] != arcs.shape or not labels.shape[-1]):
        raise ScoreError(
            f"labels must be [batch, n+1, n+1, l], the shape of arcs {tuple(arcs.shape)} and l >= 1; "
            f"got {tuple(labels.shape)}"
        )
    for scores in (arcs, labels):
        if scores is not None:
            check_floating(scores.dtype)


def check_heads(value: Tensor, batch_shape: torch.Size, real: Bool[Tensor, "rows n"]) -> Int[Tensor, "samples rows n"]:
    """Return heads [*samples, *batch, n] as [samples, rows, n], 0 at padding; each in 0..length of its row.

    Args:
        value: whole numbers [*samples, *batch, n], words counted from 1 and 0 being the root.
        batch_shape: the batch axes.
        real: True at words that are no padding.

    Returns:
        One axis for all samples, one for all rows.
    """
    samples = real_values("heads", value, batch_shape, real)
    lengths = real.sum(1)[:, None]
    wrong = (samples < 0) | (samples > lengths)
    if any_seen(wrong):
        sample, row, word = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"heads must lie in 0..{int(lengths[row])}; got {int(samples[sample, row, word])} at row {row}, "
            f"word {word + 1}; count words from 1 and give the root word the head 0"
        )
    return samples


def split_value(value: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return (heads, labels) of a labelled value [..., n, 2]."""
    if value.dim() < 2 or value.shape[-2:] != (n, 2):
        raise ScoreError(
            f"with labels a value is [..., {n}, 2], (head, label) of each word; got {tuple(value.shape)}; "
            "use torch.stack([heads, labels], -1)"
        )
    return value[..., 0], value[..., 1]


def check_labels(labels: Tensor, n_samples: int, real: Bool[Tensor, "rows n"], n_labels: int) -> Tensor:
    """Return labels as [samples, rows, n], 0 at padding.

    Args:
        labels: whole numbers [*samples, *batch, n] below `n_labels`.
        n_samples: the number of trees of each row that have them.
        real: True at words that are no padding.
        n_labels: the number of labels.

    Returns:
        One axis for all samples, one for all rows.
    """
    samples = torch.where(real, labels.long().reshape(n_samples, *real.shape), 0)
    wrong = (samples < 0) | (samples >= n_labels)
    if any_seen(wrong):
        sample, row, word = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"labels must lie in 0..{n_labels - 1}; got {int(samples[sample, row, word])} at row {row}, word {word + 1}"
        )
    return samples


def allowed_arcs(partial: Tensor, arcs: Tensor, real: Bool[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n+1 n+1"]:
    """Read allowed arcs from heads with negatives for unknown [*batch, n], or from a mask [*batch, n+1, n+1] itself.

    Args:
        partial: heads [*batch, n], words counted from 1 and 0 being the root; or True for each allowed arc, indexed
            [head, dependent].
        arcs: scores [*batch, n+1, n+1], whose shape and device the mask must fit.
        real: True at words that are no padding.

    Returns:
        True where an arc is allowed.
    """
    if partial.dtype == torch.bool:
        if partial.shape != arcs.shape:
            raise ScoreError(f"allowed arcs must be {tuple(arcs.shape)}, True = allowed; got {tuple(partial.shape)}")
        return partial
    n = arcs.shape[-1] - 1
    expected = (*arcs.shape[:-2], n)
    if partial.dtype.is_floating_point or partial.shape != expected:
        raise ScoreError(
            f"partial heads must be whole numbers {expected}, -100 = unknown; "
            f"got {partial.dtype} {tuple(partial.shape)}"
        )
    known = known_values("partial heads", partial, real, n + 1)
    heads = torch.arange(n + 1, device=partial.device)[:, None]
    agree = (known[..., None, :] < 0) | (known[..., None, :] == heads)
    return torch.cat([torch.ones_like(agree[..., :1]), agree], -1)


def allowed_labels(partial: Tensor, labels: Tensor, real: Bool[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n+1 n+1 l"]:
    """Return allowed labels from one for each word with negatives for unknown [*batch, n], whatever its head.

    Args:
        partial: labels of words [*batch, n], negative where unknown; or True for each allowed label of an arc [*batch,
            n+1, n+1, l].
        labels: scores [*batch, n+1, n+1, l], whose shape and device the mask must fit.
        real: True at words that are no padding.

    Returns:
        True where a label of an arc is allowed.
    """
    n_labels = labels.shape[-1]
    known = known_values("partial labels", partial, real, n_labels)
    agree = (known[..., None] < 0) | (known[..., None] == torch.arange(n_labels, device=partial.device))
    agree = torch.cat([torch.ones_like(agree[..., :1, :]), agree], -2)  # nothing is known of the root's column
    return agree[..., None, :, :].expand(labels.shape)


FIX = "count words without the root, pad the arcs or shorten the row"
PLACE = named_place("row", "head", "dependent", "label")


class DependencyTree(StructuredDistribution[Tensor]):
    """p(tree | x) with score = Σ_m arcs[head of m, m]; subclasses say which trees there are and sum over them.

    With `labels` each arc has one as well: score = Σ_m arcs[head of m, m] + labels[head of m, m, label of m], and a
    value is (head, label) of each word, [..., batch, n, 2].

    Args:
        arcs: scores [*batch, n+1, n+1], indexed [head, dependent]; node 0 is the root.
        labels: scores [*batch, n+1, n+1, l] of the labels of arcs; None for trees without labels.
        lengths: the number of words of each row; None if all rows are full.
        single_root: whether a single word may depend on the root.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """

    _noun = "tree"
    _same = "the same family and root, and the same shape, labels and lengths"
    _advice = "allow a head for each word and a way to the root"
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
        check_shape(arcs, labels)
        self.arcs, self.labels, self.single_root = arcs, labels, bool(single_root)
        batch_shape, n = arcs.shape[:-2], arcs.shape[-1] - 1
        self._lengths = flat_lengths("lengths", lengths, batch_shape, n, arcs.device, 1, FIX)
        super().__init__(arcs, batch_shape, [n] if labels is None else [n, 2], backend)
        if validate_args is None or validate_args:
            self._check_scores()

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        """Return whether heads form a tree of this family."""
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
    def valid(self) -> Bool[Tensor, "*batch n"]:
        """True at real words."""
        return self._word_mask.reshape(*self.batch_shape, self.n)

    # --- queries ---------------------------------------------------------------------------------------------

    def _read(self, value: Tensor, check: bool) -> Int[Tensor, "*samples *batch n"]:
        """Refuse heads that form no tree of this family: an error that names the row."""
        check_tensor("heads", value)
        expected = self.batch_shape + self.event_shape
        if not check and value.dtype == torch.long and value.is_cpu and value.shape == expected:
            return value
        heads, labels = (value, None) if self.labels is None else split_value(value, self.n)
        samples = check_heads(heads, self.batch_shape, self._word_mask)
        for each in samples:
            self._require_trees(each)
        if self.labels is None or labels is None:
            return samples.reshape(value.shape)
        chosen = check_labels(labels, len(samples), self._word_mask, self.labels.shape[-1])
        return torch.stack([samples, chosen], -1).reshape(value.shape)

    def _require_trees(self, heads: Int[Tensor, "rows n"]) -> None:
        fine = self._is_member(heads)
        if any_seen(~fine):
            row = int((~fine).nonzero()[0])
            heads_of_row = heads[row, : int(self._lengths[row])].tolist()
            roots = "exactly one word with head 0" if self.single_root else "words with head 0"
            raise ScoreError(
                f"heads must be a {self._kind}, {roots}; got {heads_of_row} at row {row}; "
                "look for a cycle, or choose single_root or the family of trees that fits the data"
            )

    @property
    def marginals(self) -> Float[Tensor, "*batch n+1 n+1 *l"]:
        """p(h is the head of m | x) at [..., h, m], with labels [..., h, m, y]; 0 where no arc is. Differentiable."""
        return self.arc_marginals if self.labels is None else self._batched(self._part_posteriors)

    @property
    def arc_marginals(self) -> Float[Tensor, "*batch n+1 n+1"]:
        """p(h is the head of m | x) at [..., h, m], whatever its label."""
        return self._batched(self._solver.marginals(self.dtype))

    def arc_probability(self, head: int, dependent: int, label: int | None = None) -> Float[Tensor, "*batch"]:
        """Return P(word `dependent` hangs from `head` by an arc of this label), words counted from 1; the root is 0.

        Args:
            head: 0 for the root, or a word from 1.
            dependent: a word from 1.
            label: the index of a label; any if not given.

        Returns:
            [*batch].
        """
        n = self.n
        if not (0 <= head <= n and 1 <= dependent <= n):
            raise ScoreError(f"an arc leads from 0..{n} to 1..{n}; got {head} to {dependent}; count words from 1")
        if label is None:
            return self.arc_marginals[..., head, dependent]
        n_labels = 0 if self.labels is None else self.labels.shape[-1]
        if not 0 <= label < n_labels:
            raise ScoreError(f"the label must be one of {n_labels}, counted from 0; got {label}")
        return self.marginals[..., head, dependent, label]

    def expected(self, costs: Float[Tensor, "*batch n+1 n+1 *l"]) -> Float[Tensor, "*batch"]:
        """Return E[Σ_m costs[head of m, m]]; costs are shaped like arcs, or like labels."""
        return self._batched(self._expected(self._costs(costs)))

    def _costs(self, costs: Tensor) -> tuple[Tensor]:
        if costs.shape == self.arcs.shape:
            by_arc = costs.double().reshape(self._given.scores.shape)
            return (by_arc if self.labels is None else by_arc[..., None].expand(self._parts.shape),)
        if self.labels is None or costs.shape != self.labels.shape:
            raise ScoreError(f"costs must be {tuple(self.arcs.shape)}, one for each arc; got {tuple(costs.shape)}")
        return (costs.double().reshape(self._parts.shape),)

    @property
    def _scores(self) -> tuple[Tensor]:
        return (self._parts,)

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Float[Tensor, "rows"]:
        assert costs[0] is not None
        return weighted_sum(self._part_posteriors, costs[0], 1)

    def _rescored(self, scores: Sequence[Tensor | None]) -> Solver:
        (parts,) = scores
        assert parts is not None
        arcs, labels = (parts, None) if self.labels is None else (torch.zeros_like(parts[..., 0]), parts)
        solver: Solver = self._like(arcs, labels, self._lengths)._solver
        return solver

    def _divided(self, t: float) -> Self:
        return self._like(self.arcs / t, None if self.labels is None else self.labels / t, self.lengths)

    def _comparable(self, other: DependencyTree) -> bool:
        same_family = type(self) is type(other) and self.single_root == other.single_root
        same_shape = self.arcs.shape == other.arcs.shape and self._parts.shape == other._parts.shape
        return same_family and same_shape and torch.equal(self._lengths, other._lengths)

    def _centred(self) -> Self:
        """Return the same distribution with centred scores of each word's arcs, and of their labels."""
        read, labels = self._given.trees.is_arc, None
        if self.labels is not None:
            labels = centred_by_word(self._label_rows, read)
        return self._like(centred_by_word(self._given.scores[..., None], read)[..., 0], labels, self._lengths)

    def constrain(self, partial: Tensor | None = None) -> Self:
        """Return only the trees that agree: every other arc scores -inf.

        `partial` holds heads [*batch, n], with -100 (any negative) where the head is unknown, or True for each allowed
        arc. With labels it may also be (head, label) pairs [*batch, n, 2], or a mask shaped like the labels.
        """
        arcs, labels = self.arcs, self.labels
        if partial is None:
            return self._like(arcs, labels, self.lengths)
        if labels is not None and partial.dtype == torch.bool and partial.shape == labels.shape:
            return self._like(arcs, torch.where(partial, labels, -INF), self.lengths)
        if labels is not None and partial.dtype != torch.bool and partial.dim() == arcs.dim():
            partial, known = split_value(partial, self.n)
            labels = torch.where(allowed_labels(known, labels, self.valid), labels, -INF)
        return self._like(torch.where(allowed_arcs(partial, arcs, self.valid), arcs, -INF), labels, self.lengths)

    def _like(self, arcs: Tensor, labels: Tensor | None, lengths: Tensor) -> Self:
        return type(self)(
            arcs, labels, lengths=lengths, single_root=self.single_root, backend=self.backend, validate_args=False
        )

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        most = self.n if self.labels is None else max(self.n, self.labels.shape[-1] - 1)
        return constraints.independent(constraints.integer_interval(0, most), len(self.event_shape))

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Self:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        labels = None if self.labels is None else self.labels.expand(*shape, *self.labels.shape[-3:])
        return self._like(self.arcs.expand(*shape, *self.arcs.shape[-2:]), labels, self.lengths.expand(shape))

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f"labels={self.labels.shape[-1]}, "
        return (
            f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, n={self.n}, {labels}"
            f"single_root={self.single_root}, backend={self.backend!r})"
        )


def _readable(scores: Tensor, n_axes: int) -> Tensor:
    """Return scores as rows with `n_axes` axes each, in a precision that kernels read."""
    rows = scores
    if scores.dim() != n_axes + 1:
        rows = scores.reshape(scores.shape[: scores.dim() - n_axes].numel(), *scores.shape[-n_axes:])
    return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
