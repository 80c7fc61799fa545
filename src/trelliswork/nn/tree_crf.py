"""A CRF layer over constituency trees: span scores in; loss, best trees and posteriors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from trelliswork.distributions.base import Backend
from trelliswork.distributions.checks import check_tensor
from trelliswork.distributions.span_tree import SpanTree
from trelliswork.errors import ScoreError
from trelliswork.nn.structured import StructuredLayer, check_reduction, lengths_of, reduce, require_possible
from trelliswork.runtime.arrays import Bool, Float, Int

Node = tuple[int, int, int | None]


class TreeCRF(StructuredLayer):
    """`SpanTree` as a layer without parameters, for scores [batch, n, n, num_labels] at [first, last token, label].

    Gold trees are lists of (start, end, label), end exclusive. A tree that is not binary, or of which only some
    brackets are known, is taken as what it is: partial knowledge, summed over all binary trees that agree with it.

    >>> layer = TreeCRF(num_labels=3)
    >>> loss = -layer(scores, trees, lengths)
    >>> layer.decode(scores, lengths), layer.marginals(scores, lengths)
    """

    __call__: Callable[..., Tensor]

    def __init__(self, num_labels: int, *, backend: Backend = "auto"):
        super().__init__()
        if num_labels < 1:
            raise ScoreError(f"num_labels must be at least 1; got {num_labels}")
        self.num_labels, self.backend = num_labels, backend

    def distribution(
        self,
        spans: Float[Tensor, "batch n n c"],
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> SpanTree:
        """Return p(tree | scores), with every query of `SpanTree`.

        Args:
            spans: Score of each labelled span, [batch, n, n, num_labels], at its first and last token.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            The distribution.
        """
        check_tensor("spans", spans)
        if spans.shape[-1] != self.num_labels:
            raise ScoreError(f"spans must score {self.num_labels} labels; got {tuple(spans.shape)}")
        return SpanTree(spans, lengths=lengths_of(mask, lengths, spans.shape[:-2]), backend=self.backend)

    def forward(
        self,
        spans: Float[Tensor, "batch n n c"],
        trees: Sequence[Sequence[Node]] | Int[Tensor, "batch nodes 3"],
        lengths: Int[Tensor, "batch"] | None = None,
        reduction: str = "sum",
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Tensor:
        """Return the log likelihood of gold trees, whole or partial; its negative is the loss.

        `reduction` is "none" (one value per row), "sum", "mean" (over rows) or "token_mean". An impossible tree is an
        error that names its row.

        Args:
            spans: Score of each labelled span, [batch, n, n, num_labels], at its first and last token.
            trees: Gold trees: nodes (start, end, label) of each row, or [batch, 2 n - 1, 3]; a label of None is
                unknown.
            lengths: Number of tokens of each row, [batch].
            reduction: Way to combine the rows.
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            A scalar, or [batch] without reduction.
        """
        check_reduction(reduction)
        dist = self.distribution(spans, lengths, mask=mask)
        is_whole = isinstance(trees, Tensor) or all(map(_is_whole, trees, dist.lengths.tolist()))
        log_likelihood = dist.log_prob(trees) if is_whole else dist.log_prob_of_set(trees)
        require_possible(
            log_likelihood, "one of its nodes scores -inf, or its brackets cross; allow its nodes, or leave the row out"
        )
        return reduce(log_likelihood, reduction, dist.lengths.sum)

    def decode(
        self,
        spans: Float[Tensor, "batch n n c"],
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> list[list[tuple[int, int, int]]]:
        """Return the best tree of each row, as a list of (start, end, label).

        Args:
            spans: Score of each labelled span, [batch, n, n, num_labels], at its first and last token.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            The nodes of each row.
        """
        with torch.no_grad():
            return self.distribution(spans, lengths, mask=mask).argmax

    def marginals(
        self,
        spans: Float[Tensor, "batch n n c"],
        lengths: Int[Tensor, "batch"] | None = None,
        *,
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n n c"]:
        """Return p(tokens first..last are a node with this label).

        Args:
            spans: Score of each labelled span, [batch, n, n, num_labels], at its first and last token.
            lengths: Number of tokens of each row, [batch].
            mask: True at the tokens, [batch, n], instead of lengths.

        Returns:
            Probabilities, [batch, n, n, num_labels].
        """
        return self.distribution(spans, lengths, mask=mask).marginals

    def extra_repr(self) -> str:
        return f"num_labels={self.num_labels}"


def _is_whole(tree: Sequence[Node], length: int) -> bool:
    """Return whether every node of a binary tree is there, and labelled."""
    return len(tree) == 2 * length - 1 and all(len(node) < 3 or node[2] is not None for node in tree)
