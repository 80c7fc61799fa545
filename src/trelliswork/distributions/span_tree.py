"""The span-tree distribution: binary constituency trees with labelled nodes, every query exact."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.distributions import constraints

from trelliswork.distributions import span_values as values
from trelliswork.distributions.base import (
    Backend,
    StructuredDistribution,
)
from trelliswork.distributions.centring import centred_spans
from trelliswork.distributions.checks import (
    KnownRows,
    cast,
    check_floating,
    check_tensor,
    flat_lengths,
    known_rows,
    label_index,
    named_place,
    refuse_not_scores,
    whole_values,
)
from trelliswork.distributions.segment_values import Nested, nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.constituency import structure
from trelliswork.structures.constituency.solver import STRUCTURE
from trelliswork.structures.constituency.structure import Spans


class SpanTree(StructuredDistribution[Nested]):
    """p(tree | x) over binary trees with labelled nodes; score = Σ spans[i, j, y] over the nodes.

    `spans[b, i, j, y]` scores a node over tokens i..j, **j included**, labelled y; read where i <= j < `lengths`. Every
    token, the whole row, and all between have one label; -inf forbids.

    A value is, for each row, a list of (start, end, label), **end exclusive** as everywhere in this library: 2 L - 1
    nodes, parents before children; nested lists for more batch axes, ranks and samples. Everywhere a value is taken its
    tensor form is taken too: nodes [..., 2n-1, 3] in this order, -1 at padding (`to_nodes`, `from_nodes`).

    With a label that is `empty`, these are trees of any arity: an empty node of two or more tokens is no constituent
    but the rest of one with more than two children, and stands on right children only; an empty token has no label of
    its own. Each tree of any arity is then exactly one value, and all queries are exact for such trees.

    >>> dist = SpanTree(torch.zeros(1, 3, 3, 2))
    >>> dist.count, dist.argmax
    (tensor([64.], dtype=torch.float64), [[(0, 3, 0), (0, 1, 0), (1, 3, 0), (1, 2, 0), (2, 3, 0)]])

    Args:
        spans: scores of labelled nodes [*batch, n, n, c], by first and last token.
        lengths: the number of tokens of each row; None if all rows are full.
        empty: the label of nodes that only make a tree binary; None for binary trees.
        backend: "kernel", "torch" or "auto".
        validate_args: whether scores are checked; None as torch.distributions does.
    """

    _structure = STRUCTURE
    _noun = "tree"
    _advice = "allow a label for the whole row, for each token, and for spans between them"

    def __init__(
        self,
        spans: Float[Tensor, "*batch n n c"],
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        empty: int | None = None,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        check_tensor("spans", spans)
        if spans.dim() < 3 or spans.shape[-3] != spans.shape[-2] or 0 in spans.shape[-3:]:
            raise ScoreError(
                f"spans must be [batch, n, n, c] with n, c >= 1; got {tuple(spans.shape)}; "
                "index them [first token, last token, label]"
            )
        check_floating(spans.dtype)
        if empty is not None and not 0 <= empty < spans.shape[-1]:
            raise ScoreError(f"empty must be a label in 0..{spans.shape[-1] - 1}, or None; got {empty}")
        self.spans, self.empty = spans, empty
        batch_shape, n = spans.shape[:-3], spans.shape[-2]
        self._lengths = flat_lengths("lengths", lengths, batch_shape, n, spans.device, 1)
        super().__init__(spans, batch_shape, [2 * n - 1, 3], backend)
        if validate_args is None or validate_args:
            self._check_scores()

    def _check_scores(self) -> None:
        """Refuse NaN and +inf by place, where they are read."""
        if self._solver.arrays is None or not self._solver.tops.fine.all():
            place = named_place("row", "first token", "last token", "label")
            refuse_not_scores("spans", self._parts.spans, self._parts.span_mask[..., None], place)

    # --- the parts, flat -------------------------------------------------------------------------------------

    @cached_property
    def _parts(self) -> Spans:
        """One batch axis, float32 at least."""
        dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
        spans = self.spans if self.spans.dim() == 4 else self.spans.reshape(-1, *self.spans.shape[-3:])
        return Spans(cast(spans, dtype), self._lengths, self.empty)

    # --- values ----------------------------------------------------------------------------------------------

    def from_nodes(self, nodes: Int[Tensor, "*samples *batch nodes 3"]) -> Nested:
        """Return the tensor form as lists of (start, end, label), nested as [*samples, *batch]."""
        flat = nodes.reshape(-1, *self.event_shape)
        lengths = self._lengths.tolist() * (len(flat) // max(len(self._lengths), 1))
        return nested(values.to_lists(flat, lengths), nodes.shape[:-2])

    def to_nodes(self, value: Tensor | Nested) -> Int[Tensor, "*samples *batch nodes 3"]:
        """Return a value in its tensor form, checked: what is no binary tree over its row is named."""
        if not isinstance(value, Tensor):
            value = values.from_lists(value, self.batch_shape, self.event_shape[0], self.spans.device)
        nodes = whole_values("nodes", value, (*self.batch_shape, *self.event_shape))
        values.check_nodes(self._by_sample(nodes), self._lengths, self.spans.shape[-1], self.empty)
        return nodes

    def _by_sample(self, nodes: Int[Tensor, "*samples *batch nodes 3"]) -> Int[Tensor, "samples rows nodes 3"]:
        n_samples = nodes.shape[: nodes.dim() - 2 - len(self.batch_shape)].numel()
        return nodes.reshape(n_samples, len(self._lengths), *self.event_shape)

    def to_parts(self, value: Tensor | Nested) -> Float[Tensor, "*samples *batch n n c"]:
        """Return 1 at the nodes of a value, 0 elsewhere: shaped like `marginals`."""
        nodes = self.to_nodes(value)
        flat = nodes.reshape(-1, *self.event_shape)
        row, rank = (flat[..., 0] >= 0).nonzero(as_tuple=True)
        start, end, label = flat[row, rank].unbind(-1)
        parts = torch.zeros(len(flat), *self.spans.shape[-3:], dtype=self.dtype, device=flat.device)
        parts[row, start, end - 1, label] = 1
        return parts.reshape(*nodes.shape[:-2], *self.spans.shape[-3:])

    def from_parts(self, parts: Float[Tensor, "*samples *batch n n c"]) -> Nested:
        """Return the value whose nodes are marked in `parts`."""
        shape = self.spans.shape[-3:]
        nodes = structure.nodes_of(parts.reshape(-1, *shape)).reshape(*parts.shape[:-3], *self.event_shape)
        return self.from_nodes(self.to_nodes(nodes))

    # --- queries ---------------------------------------------------------------------------------------------

    def _read(self, value: Tensor | Nested, check: bool) -> Int[Tensor, "*samples *batch nodes 3"]:
        return self.to_nodes(value)

    def _written(self, values: Tensor) -> Nested:
        return self.from_nodes(values)

    @property
    def marginals(self) -> Float[Tensor, "*batch n n c"]:
        """p(tokens i..j are a node labelled y | x) at [..., i, j, y]; 0 at what is not a span. Differentiable."""
        return self._batched(self._posteriors)

    def span_probability(
        self, first: int, last: int, label: int | str | None = None, *, labels: Sequence[str] | None = None
    ) -> Float[Tensor, "*batch"]:
        """Return P(tokens first..last-1 are a node with this label, or with any), each row; `labels` names the indices.

        >>> dist.span_probability(2, 4, "NP", labels=["S", "NP"])

        Args:
            first: the first token of the node.
            last: the token behind it.
            label: its index, or its name among `labels`; any if not given.
            labels: the name of each label.

        Returns:
            [*batch].
        """
        n, c = self.spans.shape[-2:]
        label = label_index(label, labels)
        if not 0 <= first < last <= n or (label is not None and not 0 <= label < c):
            raise ScoreError(
                f"a span must be first < last within 0..{n}, with a label in 0..{c - 1}; got {(first, last, label)}"
            )
        by_label = self.marginals[..., first, last - 1, :]
        return by_label.sum(-1) if label is None else by_label[..., label]

    @property
    def argmax_nodes(self) -> Int[Tensor, "*batch nodes 3"]:
        """`argmax` in its tensor form; among ties the lowest labels and the leftmost splits, from the root down."""
        nodes, possible = self._solver.best()
        self._require_values(possible)
        return self._in_batch(nodes, ())

    def sample_nodes(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples *batch nodes 3"]:
        """Return `sample` in its tensor form."""
        return self._sampled(sample_shape, generator)

    def expected(self, costs: Float[Tensor, "*batch n n c"]) -> Float[Tensor, "*batch"]:
        """Return E[Σ costs of the nodes]; costs are shaped like spans."""
        return self._batched(self._expected(self._costs(costs)))

    def _costs(self, costs: Tensor) -> tuple[Tensor]:
        if costs.shape != self.spans.shape:
            raise ScoreError(f"costs must be {tuple(self.spans.shape)}, one for each node; got {tuple(costs.shape)}")
        return (costs.reshape(self._parts.spans.shape),)

    def _centred(self) -> SpanTree:
        spans = centred_spans(self._parts.spans, self._parts.span_mask)
        return self._like(spans, self._lengths)

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(self, partial: Bool[Tensor, "*batch n n c"] | KnownRows | None = None) -> SpanTree:
        """Return only the trees that agree: every other node scores -inf.

        `partial` is True for each allowed node; or lists for each row the nodes (start, end, label) that are known, end
        exclusive and a label of None for any: brackets, a partial tree, or a whole one.
        """
        if partial is None:
            return self._like(self.spans, self.lengths)
        return self._like(torch.where(self._allowed(partial), self.spans, -INF), self.lengths)

    def _allowed(self, partial: Tensor | KnownRows) -> Bool[Tensor, "*batch n n c"]:
        shape = self.spans.shape
        if isinstance(partial, Tensor):
            if partial.dtype != torch.bool or partial.shape != shape:
                raise ScoreError(
                    f"allowed nodes must be bool {tuple(shape)}, True = allowed; "
                    f"got {partial.dtype} {tuple(partial.shape)}"
                )
            return partial
        known = known_rows(partial, self.batch_shape, "nodes")
        lengths = self._lengths.tolist()
        return values.allowed_by_nodes(known, lengths, shape[-2], shape[-1], self.spans.device).reshape(shape)

    def _divided(self, t: float) -> SpanTree:
        return self._like(self.spans / t, self.lengths)

    def _comparable(self, other: SpanTree) -> bool:
        same = self.spans.shape == other.spans.shape and self.empty == other.empty
        return same and torch.equal(self._lengths, other._lengths)

    def _like(self, spans: Tensor, lengths: Tensor) -> SpanTree:
        return SpanTree(spans, lengths=lengths, empty=self.empty, backend=self.backend, validate_args=False)

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> constraints.Constraint:
        """Of the tensor form."""
        n, c = self.spans.shape[-2:]
        return constraints.independent(constraints.integer_interval(-1, max(n, c - 1)), 2)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> SpanTree:
        """Return the same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return self._like(self.spans.expand(*shape, *self.spans.shape[-3:]), self.lengths.expand(shape))

    def __repr__(self) -> str:
        n, c = self.spans.shape[-2:]
        return f"SpanTree(batch_shape={tuple(self.batch_shape)}, n={n}, c={c}, backend={self.backend!r})"
