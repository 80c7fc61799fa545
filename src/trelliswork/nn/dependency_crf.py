"""The dependency CRF layer: scores of arcs, and of labels, in; log likelihood, trees and posteriors out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trelliswork.distributions import ProjectiveTree, SpanningTree
from trelliswork.distributions.base import Backend
from trelliswork.distributions.checks import check_tensor, whole_values
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.errors import ScoreError
from trelliswork.nn.structured import StructuredLayer, check_reduction, lengths_of, reduce, require_possible
from trelliswork.runtime.arrays import Bool, Float, Int


class DependencyCRF(StructuredLayer):
    """A CRF over dependency trees, projective or not. It has no parameters: scores come from a scorer.

    Tensors are batch first. `arcs[b, h, m]` scores head h of word m, 0 being the root; `label_scores[b, h, m, y]`, if
    given, a label y of that arc. A mask is True at words, padding on the right, or `lengths` count them. Heads and
    labels of -100 are unknown and summed over.

    Args:
        projective: True for projective trees, False for all.
        single_root: True if only one word may depend on the root.
        backend: Implementation: kernels, torch, or the faster one.

    >>> scorer, crf = BiaffineScorer(200), DependencyCRF(projective=False)
    >>> loss = -crf(scorer(encoded), heads, mask=mask)
    >>> crf.decode(scorer(encoded), mask=mask)
    [[2, 0, 2], [0, 1]]
    """

    __call__: Callable[..., Tensor]

    def __init__(self, projective: bool = True, single_root: bool = True, *, backend: Backend = "auto"):
        super().__init__()
        self.projective, self.single_root, self.backend = projective, single_root, backend

    def forward(
        self,
        arcs: Float[Tensor, "batch n+1 n+1"],
        heads: Int[Tensor, "batch n"],
        label_scores: Float[Tensor, "batch n+1 n+1 l"] | None = None,
        labels: Int[Tensor, "batch n"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
        reduction: str = "sum",
    ) -> Tensor:
        """Return the log likelihood of the trees; its negative is the loss.

        `reduction` is "none" (one value per row), "sum", "mean" (over rows) or "token_mean". An impossible tree is an
        error that names its row.

        Args:
            arcs: Score of each arc, [batch, n + 1, n + 1], by head and dependent; node 0 is the root.
            heads: Gold heads, [batch, n]; -100 stands for an unknown one.
            label_scores: Score of each label of each arc, [batch, n + 1, n + 1, labels].
            labels: Gold labels, [batch, n].
            mask: True at the words, [batch, n].
            lengths: Number of words of each row, [batch], instead of the mask.
            reduction: Way to combine the rows.

        Returns:
            A scalar, or [batch] without reduction.
        """
        check_reduction(reduction)
        if (label_scores is None) != (labels is None):
            raise ScoreError("label_scores and labels belong together; give both or none")
        trees = self.distribution(arcs, label_scores, mask=mask, lengths=lengths)
        heads = whole_values("heads", heads, trees.valid.shape)
        value = heads if labels is None else torch.stack([heads, whole_values("labels", labels, heads.shape)], -1)
        unknown = (value < 0) & (trees.valid if trees.labels is None else trees.valid[..., None])
        log_prob = trees.log_prob_of_set(value) if bool(unknown.any()) else trees.log_prob(value)
        require_possible(
            log_prob,
            "one of its arcs scores -inf, or no tree agrees with the known heads; allow its arcs, or leave the row out",
        )
        return reduce(log_prob, reduction, trees.lengths.sum)

    def decode(
        self,
        arcs: Float[Tensor, "batch n+1 n+1"],
        label_scores: Float[Tensor, "batch n+1 n+1 l"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> list[list[int]] | list[list[tuple[int, int]]]:
        """Return the heads of the best tree of each row as lists; with labels, lists of (head, label).

        Args:
            arcs: Score of each arc, [batch, n + 1, n + 1], by head and dependent; node 0 is the root.
            label_scores: Score of each label of each arc, [batch, n + 1, n + 1, labels].
            mask: True at the words, [batch, n].
            lengths: Number of words of each row, [batch], instead of the mask.

        Returns:
            A list for each row.
        """
        labels = None if label_scores is None else label_scores.detach()
        trees = self.distribution(arcs.detach(), labels, mask=mask, lengths=lengths)
        rows = zip(trees.argmax.tolist(), trees.lengths.tolist(), strict=True)
        if label_scores is None:
            return [row[:length] for row, length in rows]
        return [[(head, label) for head, label in row[:length]] for row, length in rows]

    def marginals(
        self,
        arcs: Float[Tensor, "batch n+1 n+1"],
        label_scores: Float[Tensor, "batch n+1 n+1 l"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch n+1 n+1 *l"]:
        """Return p(arc | x), or of arcs with labels; differentiable.

        Args:
            arcs: Score of each arc, [batch, n + 1, n + 1], by head and dependent; node 0 is the root.
            label_scores: Score of each label of each arc, [batch, n + 1, n + 1, labels].
            mask: True at the words, [batch, n].
            lengths: Number of words of each row, [batch], instead of the mask.

        Returns:
            Probabilities, [batch, n + 1, n + 1], or [batch, n + 1, n + 1, labels].
        """
        return self.distribution(arcs, label_scores, mask=mask, lengths=lengths).marginals

    def distribution(
        self,
        arcs: Float[Tensor, "batch n+1 n+1"],
        label_scores: Float[Tensor, "batch n+1 n+1 l"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> DependencyTree:
        """Return the distribution over trees, with every query of `ProjectiveTree` or `SpanningTree`.

        Args:
            arcs: Score of each arc, [batch, n + 1, n + 1], by head and dependent; node 0 is the root.
            label_scores: Score of each label of each arc, [batch, n + 1, n + 1, labels].
            mask: True at the words, [batch, n].
            lengths: Number of words of each row, [batch], instead of the mask.

        Returns:
            The distribution.
        """
        check_tensor("arcs", arcs)
        family = ProjectiveTree if self.projective else SpanningTree
        lengths = lengths_of(mask, lengths, torch.Size((*arcs.shape[:-2], arcs.shape[-1] - 1)), ", without the root")
        return family(arcs, label_scores, lengths=lengths, single_root=self.single_root, backend=self.backend)

    def extra_repr(self) -> str:
        return f"projective={self.projective}, single_root={self.single_root}"
