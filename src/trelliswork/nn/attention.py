"""Attention whose weights are marginals of a structure: a subsequence, segments, a dependency tree.

Plain attention selects one position, drawn from a softmax. Structured attention selects a latent structure z with a
distribution of its own, and the context is the expected value of what z selects: a sum of values weighted by the
marginals of z. Marginals are differentiable, so the layers train end to end by backpropagation.

Kim, Denton, Hoang and Rush (2017), Structured attention networks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.distributions import LinearChain, ProjectiveTree, SemiMarkov, SpanningTree
from trelliswork.distributions.base import Backend
from trelliswork.distributions.chain_inputs import layout_of
from trelliswork.distributions.checks import cast
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.nn.structured import StructuredLayer
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.bridge import out_of_reach
from trelliswork.runtime.threads import n_threads, one_thread_if_small

Heads = Literal["projective", "spanning", "independent"]


class Attended(NamedTuple):
    """Result of attention: the context, and the weights it was summed with."""

    context: Tensor
    weights: Tensor


class SoftmaxAttention(nn.Module):
    """Select exactly one position: c = Σ_t p(z = t | x) values_t with p(z = t) = softmax(θ)_t.

    As in all attention over positions, a score of -inf is never selected, and positions beyond `lengths` are ignored.

    >>> attention = SoftmaxAttention()
    >>> context, weights = attention(scores, values, lengths)  # [batch, n], [batch, n, d] -> [batch, d], [batch, n]

    Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and translate.
    """

    __call__: Callable[..., Attended]

    # [S4.309-310]

    def forward(
        self,
        scores: Float[Tensor, "*batch n"],
        values: Float[Tensor, "*batch n d"],
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Attended:
        """Return the attended values, and the probability of each position.

        Args:
            scores: Scores of the positions.
            values: Vectors of the positions.
            lengths: Number of positions of each row; None if all rows are full.

        Returns:
            Context [*batch, d] and weights [*batch, n], which are 0 beyond the lengths.
        """
        scores, valid = _checked(scores, values, lengths)
        return _attend(_softmax(scores, valid), values, valid)


class BernoulliAttention(nn.Module):
    """Select any positions independently: c = Σ_t p(z_t = 1 | x) values_t with p(z_t = 1) = σ(θ_t)."""

    __call__: Callable[..., Attended]

    # [S4.313, 315]

    def forward(
        self,
        scores: Float[Tensor, "*batch n"],
        values: Float[Tensor, "*batch n d"],
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Attended:
        """Return the sum of the values, each by the probability that its position is selected.

        Args:
            scores: Log-odds of the positions.
            values: Vectors of the positions.
            lengths: Number of positions of each row; None if all rows are full.

        Returns:
            Context [*batch, d] and weights [*batch, n], which are 0 beyond the lengths.
        """
        scores, valid = _checked(scores, values, lengths)
        return _attend(scores.sigmoid(), values, valid)


class ChainAttention(StructuredLayer):
    """Select a subsequence: z_t ∈ {0, 1} is a linear chain, p(z) ∝ Π_t ψ_t(z_{t-1}, z_t), c = Σ_t p(z_t = 1) values_t.

    Learned transitions decide how much selected positions cluster; additional ones may be given for each position.
    Where all are 0, as at initialization, this is `BernoulliAttention`.

    >>> attention = ChainAttention()
    >>> context, weights = attention(scores, values, lengths)  # [batch, n], [batch, n, d] -> [batch, d], [batch, n]
    """

    __call__: Callable[..., Attended]

    # [S4.313-314]

    def __init__(self, *, backend: Backend = "auto") -> None:
        super().__init__()
        self.backend = backend
        self.transitions = nn.Parameter(torch.zeros(2, 2))  # [from, to]; 1 = selected
        self.start, self.end = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

    def forward(
        self,
        scores: Float[Tensor, "*batch n"],
        values: Float[Tensor, "*batch n d"],
        lengths: Int[Tensor, "*batch"] | None = None,
        transitions: Float[Tensor, "*batch n-1 2 2"] | None = None,
    ) -> Attended:
        """Return the sum of the values, each by the probability that its position is selected.

        Args:
            scores: Scores of selecting the positions.
            values: Vectors of the positions.
            lengths: Number of positions of each row; None if all rows are full.
            transitions: Scores that are added to the learned ones, indexed [from, to], 1 = selected; None for 0.

        Returns:
            Context [*batch, d] and weights [*batch, n], which are 0 beyond the lengths.
        """
        scores, valid = _checked(scores, values, lengths)
        chain = self.distribution(scores, lengths, transitions)
        return _attend(chain.marginals[..., 1], values, valid)

    def distribution(
        self,
        scores: Float[Tensor, "*batch n"],
        lengths: Int[Tensor, "*batch"] | None = None,
        transitions: Float[Tensor, "*batch n-1 2 2"] | None = None,
    ) -> LinearChain:
        """Return the distribution over selections: tag 1 where a position is selected.

        Args:
            scores: Scores of selecting the positions.
            lengths: Number of positions of each row; None if all rows are full.
            transitions: Scores that are added to the learned ones, indexed [from, to], 1 = selected; None for 0.

        Returns:
            A chain over the tags 0 and 1.
        """
        # [S4.314]
        emissions = torch.stack([torch.zeros_like(scores), scores], -1)
        arcs = self.transitions if transitions is None else self.transitions + transitions
        return LinearChain(emissions, arcs, self.start, self.end, lengths=lengths, backend=self.backend)


class SegmentAttention(StructuredLayer):
    """Select segments of at most `max_width` positions: a semi-Markov model whose segments are selected or skipped.

    A selected segment scores the sum of its positions plus a learned score of its width, so that, unlike a chain, it
    can prefer segments of exactly three; a skipped position scores 0. The weight of a position is the probability that
    a selected segment covers it.

    >>> attention = SegmentAttention(max_width=4)
    >>> context, weights = attention(scores, values, lengths)  # [batch, n], [batch, n, d] -> [batch, d], [batch, n]
    """

    __call__: Callable[..., Attended]

    # [S4.311]

    def __init__(self, max_width: int, *, backend: Backend = "auto") -> None:
        if max_width < 1:
            raise ScoreError(f"max_width must be at least 1; got {max_width}; allow segments of one position or more")
        super().__init__()
        self.max_width, self.backend = max_width, backend
        self.widths = nn.Parameter(torch.zeros(max_width))
        self.transitions = nn.Parameter(torch.zeros(2, 2))  # [from, to]; 1 = selected

    def forward(
        self,
        scores: Float[Tensor, "*batch n"],
        values: Float[Tensor, "*batch n d"],
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Attended:
        """Return the sum of the values, each by the probability that a selected segment covers its position.

        Args:
            scores: Scores of covering the positions.
            values: Vectors of the positions.
            lengths: Number of positions of each row; None if all rows are full.

        Returns:
            Context [*batch, d] and weights [*batch, n], which are 0 beyond the lengths.
        """
        scores, valid = _checked(scores, values, lengths)
        selected = self.distribution(scores, lengths).marginals[..., 1]  # (*batch, n, width), by their first position
        return _attend(_coverage(selected), values, valid)

    def distribution(
        self, scores: Float[Tensor, "*batch n"], lengths: Int[Tensor, "*batch"] | None = None
    ) -> SemiMarkov:
        """Return the distribution over segmentations: label 1 is selected, label 0 a single skipped position."""
        # [S4.312]
        width = self.max_width
        padded = nn.functional.pad(scores, (0, width - 1))
        sums = [scores]
        for d in range(1, width):  # no prefix sums: with -inf their differences would be nan
            sums.append(sums[-1] + padded[..., d : d + scores.shape[-1]])
        selected = torch.stack(sums, -1) + self.widths
        segments = torch.stack([torch.zeros_like(selected), selected], -1)
        return SemiMarkov(segments, self.transitions, lengths=lengths, max_lengths=[1, width], backend=self.backend)


class TreeAttention(StructuredLayer):
    """Each word attends to its head in a latent dependency tree: c_m = Σ_h p(h is the head of m | x) values_h.

    `kind` is "projective", "spanning" (arcs may cross), or "independent" (each word picks its head with a softmax of
    its own, and heads may form cycles). Scores and values begin with the root at 0.

    Args:
        kind: Trees that are summed over.
        single_root: True if only one word may depend on the root.
        backend: Implementation: kernels, torch, or the faster one.

    >>> attention = TreeAttention("projective")
    >>> context, weights = attention(arcs, values, lengths)  # [batch, n+1, n+1], [batch, n+1, d] -> [batch, n, d]
    """

    __call__: Callable[..., Attended]

    # [S4.311]

    def __init__(self, kind: Heads = "projective", *, single_root: bool = True, backend: Backend = "auto") -> None:
        if kind not in ("projective", "spanning", "independent"):
            raise ScoreError(f"kind must be projective, spanning or independent; got {kind!r}")
        super().__init__()
        self.kind, self.single_root, self.backend = kind, single_root, backend

    def forward(
        self,
        arcs: Float[Tensor, "*batch n+1 n+1"],
        values: Float[Tensor, "*batch n+1 d"],
        lengths: Int[Tensor, "*batch"] | None = None,
    ) -> Attended:
        """Return the context [*batch, n, d] of each word and its weights [*batch, n, n+1] over heads; padding has 0.

        Args:
            arcs: Score of each arc, [*batch, n + 1, n + 1], by head and dependent.
            values: Vectors of the root and the words, [*batch, n + 1, d].
            lengths: Number of words of each row, [*batch].
        """
        if values.dim() < 2 or values.shape[:-1] != arcs.shape[:-1]:
            raise ScoreError(f"values must be {(*arcs.shape[:-1], 'd')}, the root's first; got {tuple(values.shape)}")
        trees = self.distribution(arcs, lengths)
        is_padding = torch.arange(values.shape[-2], device=values.device)[:, None] > trees.lengths[..., None, None]
        kept = values.masked_fill(is_padding, 0.0)
        weights = _own_heads(trees) if self.kind == "independent" else trees.marginals[..., 1:].transpose(-1, -2)
        return Attended(_product(cast(weights, values.dtype), kept), weights)

    def distribution(
        self, arcs: Float[Tensor, "*batch n+1 n+1"], lengths: Int[Tensor, "*batch"] | None = None
    ) -> ProjectiveTree | SpanningTree:
        """Return the distribution over trees; spanning trees for independent heads too."""
        # [S4.312]
        family = ProjectiveTree if self.kind == "projective" else SpanningTree
        return family(arcs, lengths=lengths, single_root=self.single_root, backend=self.backend)


def _product(weights: Float[Tensor, "*batch n m"], values: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch n d"]:
    """Return weights @ values, on one thread if it is small."""
    if n_threads() == 1 or not weights.is_cpu or out_of_reach() or torch.is_autocast_enabled("cpu"):
        return torch.matmul(weights, values)
    product: Tensor = fused(_ProductOnOneThread(), weights, values)
    return product


class _ProductOnOneThread:
    """A `FusedLayer`: torch wakes its threads for small products, and waits longer for them than they save."""

    def forward(self, weights: Tensor, values: Tensor) -> tuple[Tensor, tuple[()]]:
        with one_thread_if_small(weights.numel() * values.shape[-1]):
            return torch.matmul(weights, values), ()

    def backward(
        self, tensors: tuple[Tensor, Tensor], kept: tuple[()], grads: tuple[Tensor]
    ) -> tuple[Tensor | None, ...]:
        (weights, values), (grad,) = tensors, grads
        with one_thread_if_small(weights.numel() * values.shape[-1]):
            return (
                torch.matmul(grad, values.mT) if weights.requires_grad else None,
                torch.matmul(weights.mT, grad) if values.requires_grad else None,
            )

    def reference(self, weights: Tensor, values: Tensor) -> Tensor:
        return torch.matmul(weights, values)


def _own_heads(trees: ProjectiveTree | SpanningTree) -> Float[Tensor, "*batch n n+1"]:
    """Return a softmax over the possible heads of each word."""  # [S4.310]
    words = trees.valid
    is_node = nn.functional.pad(words, (1, 0), value=True)
    n = words.shape[-1]
    other = ~torch.eye(n + 1, dtype=torch.bool, device=words.device)[1:]
    scores = trees.arcs[..., 1:].transpose(-1, -2)
    possible = other & is_node[..., None, :] & words[..., None]
    # A row of padding has no head; a softmax over nothing would be nan.
    safe = torch.where(words[..., None], possible, True)
    weights = _softmax(torch.where(words[..., None], scores, 0.0), safe)
    return torch.where(possible, weights, 0.0)


def _softmax(scores: Float[Tensor, "*batch n"], valid: Bool[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    masked = torch.where(valid, scores, -INF)
    if bool((masked == -INF).all(-1).any()):
        raise ConstraintError("every position of a row scores -inf; leave at least one that may be attended to")
    return masked.softmax(-1)  # [S4.310]


def _coverage(segments: Float[Tensor, "*batch n k"]) -> Float[Tensor, "*batch n"]:
    """Return how many segments (by first position and width - 1) cover each position, on average."""
    n, k = segments.shape[-2:]
    reaching = segments.flip(-1).cumsum(-1).flip(-1)  # at [..., i, o]: those that begin at i and cover i + o
    shifted = [nn.functional.pad(reaching[..., : n - o, o], (o, 0)) for o in range(min(k, n))]
    return torch.stack(shifted).sum(0)


def _attend(
    weights: Float[Tensor, "*batch n"], values: Float[Tensor, "*batch n d"], valid: Bool[Tensor, "*batch n"]
) -> Attended:
    """Return c = Σ_t p(t is selected | x) values_t; padding has no weight, and its values are not read."""
    # [S4.309, 313]
    weights = torch.where(valid, weights, 0.0)
    kept = torch.where(valid[..., None], values, 0.0)
    return Attended(torch.einsum("...t,...td->...d", cast(weights, values.dtype), kept), weights)


def _checked(
    scores: Tensor, values: Tensor, lengths: Tensor | None
) -> tuple[Float[Tensor, "*batch n"], Bool[Tensor, "*batch n"]]:
    """Return scores, 0 at padding, and a mask that is False for padding."""
    if scores.dim() < 1 or not scores.shape[-1] or not scores.dtype.is_floating_point:
        raise ScoreError(f"scores must be floating point [*batch, n], n >= 1; got {scores.dtype} {tuple(scores.shape)}")
    if values.shape[:-1] != scores.shape:
        raise ScoreError(f"values must be {(*scores.shape, 'd')}, a vector a score; got {tuple(values.shape)}")
    n = scores.shape[-1]
    flat = layout_of(scores.shape[:-1], n, scores.device, lengths, None).lengths
    valid = (torch.arange(n, device=scores.device) < flat[:, None]).reshape(scores.shape)
    wrong = valid & (scores.isnan() | (scores == INF))
    if bool(wrong.any()):
        place = tuple(wrong.nonzero()[0].tolist())
        raise ScoreError(
            f"scores must be numbers below +inf (-inf: never select); got {float(scores[place])} at {place}"
        )
    return torch.where(valid, scores, 0.0), valid
