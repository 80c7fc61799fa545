"""The distributions of torch-struct 0.5 under their names, with its shapes, answered by the ones of this library.

    from trelliswork.compat.torch_struct import LinearChainCRF    # before: from torch_struct import LinearChainCRF

Rush (2020), "Torch-Struct: Deep Structured Prediction Library", https://github.com/harvardnlp/pytorch-struct

A class here says only how log-potentials are laid out. Events are indicators shaped like the log-potentials: they are
the gradient of the score of a structure, as marginals are that of log Z.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence
from torch.nn.functional import one_hot

from trelliswork.distributions import (
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    StructuredDistribution,
    WeightedCFG,
)
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF
from trelliswork.structures.grammar.grammar import Grammar

__all__ = [
    "HMM",
    "DependencyCRF",
    "LinearChainCRF",
    "NonProjectiveDependencyCRF",
    "SemiMarkovCRF",
    "SentCFG",
    "StructDistribution",
    "TreeCRF",
]

Event = Any  # indicators of parts: a tensor, or a tuple of them, shaped like the log-potentials


class StructDistribution(Distribution):
    """Base of the distributions: the queries of torch-struct, by its names and in its shapes.

    `distribution` is the one of this library behind it, with further queries. Log-potentials may be -inf, and are never
    changed.

    Args:
        log_potentials: Scores of the parts, shaped as torch-struct has them.
        lengths: Number of positions of each row [batch]; None if all rows are full.
        args: Further arguments of torch-struct, which have no effect.
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - torch's own convention
    _axes: int  # of log-potentials, the batch included

    def __init__(self, log_potentials: Any, lengths: Tensor | None = None, args: object = None) -> None:
        self.log_potentials, self.lengths = log_potentials, lengths
        first = self._check()[0]
        super().__init__(first.shape[:1], first.shape[1:], validate_args=False)

    def _check(self) -> tuple[Tensor, ...]:
        given = self._potentials()
        if given[0].dim() != self._axes:
            shape = tuple(given[0].shape)
            raise ScoreError(f"{type(self).__name__} takes log-potentials of {self._axes} axes; got the shape {shape}")
        return given

    def _potentials(self) -> tuple[Tensor, ...]:
        """Return all tensors of log-potentials."""
        return (self.log_potentials,)

    @abstractmethod
    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        """Return the distribution of this library that has these log-potentials."""

    def _event(self, *parts: Tensor) -> Event:
        """Gradients of all tensors of log-potentials as the caller gets them."""
        return parts[0]

    # --- sums ------------------------------------------------------------------------------------------------

    @cached_property
    def distribution(self) -> StructuredDistribution:
        """The distribution of this library."""
        return self._make_distribution(*self._potentials())

    @property
    def partition(self) -> Tensor:
        """log Z [batch]."""
        return self.distribution.log_partition

    @property
    def count(self) -> Tensor:
        """Number of structures [batch], in float64."""
        return self.distribution.count

    @property
    def entropy(self) -> Tensor:  # type: ignore[override]  # torch-struct has a property
        """H(p) [batch]."""
        return self.distribution.entropy()

    def kl(self, other: StructDistribution) -> Tensor:
        """KL(p || other) [batch]."""
        return kl_divergence(self.distribution, other.distribution)

    def cross_entropy(self, other: StructDistribution) -> Tensor:
        """H(p, other) [batch]."""
        return self.entropy + self.kl(other)

    @property
    def marginals(self) -> Event:
        """p(part), shaped like the log-potentials; differentiable if these are."""
        differentiable = any(each.requires_grad for each in self._potentials())
        return self._gradient(lambda inner: inner.log_partition, differentiable)

    def log_prob(self, value: Event) -> Tensor:
        """log p(event) [*samples, batch] of indicators shaped like the log-potentials."""
        pairs = (
            zip(self.log_potentials, value, strict=False)
            if isinstance(value, tuple)
            else [(self.log_potentials, value)]
        )
        scores = [_scores(potentials, each).flatten(each.dim() - potentials.dim() + 1) for potentials, each in pairs]
        return torch.cat(scores, -1).sum(-1) - self.partition

    # --- structures ------------------------------------------------------------------------------------------

    @property
    def argmax(self) -> Event:
        """The event of the best structure."""
        return self._event_of(self.distribution.argmax)

    @property
    def mode(self) -> Event:
        return self.argmax

    @property
    def max(self) -> Tensor:
        """The score of the best structure [batch]."""
        return self.distribution.score(self.distribution.argmax)

    def kmax(self, k: int) -> Tensor:
        """Return the scores of the k best structures [k, batch]; -inf where there are fewer."""
        return self.distribution.top_k(k)[1]

    def topk(self, k: int) -> Event:
        """Return the events of the k best structures [k, batch, ...]."""
        values, _ = self.distribution.top_k(k)
        return self._stack([self._event_of(each) for each in values])

    def sample(self, sample_shape: Sequence[int] = ()) -> Event:
        """Return the events of exact samples [*sample_shape, batch, ...]."""
        shape = torch.Size(sample_shape)
        values = self.distribution.sample((shape.numel(),))
        events = [self._event_of(each) for each in values]
        return self._stack(events, shape)

    def _event_of(self, value: Event) -> Event:
        """Return the event of a value of this library."""
        return self._gradient(lambda inner: inner.score(value))

    def _stack(self, events: list[Event], shape: Sequence[int] = (-1,)) -> Event:
        if isinstance(events[0], tuple):
            return tuple(self._stack(list(each), shape) for each in zip(*events, strict=True))
        return torch.stack(events).reshape((*shape, *events[0].shape))

    @cached_property
    def _tracked(self) -> tuple[list[Tensor], StructuredDistribution]:
        """Log-potentials that gradients can be taken of, and their distribution."""
        given = self._potentials()
        if all(each.requires_grad for each in given):
            return list(given), self.distribution
        tracked = [each if each.requires_grad else each.detach().clone().requires_grad_() for each in given]
        return tracked, self._make_distribution(*tracked)

    def _gradient(self, quantity: Callable[[Any], Tensor], differentiable: bool = False) -> Event:
        """Return the gradient of a quantity [batch] as an event."""
        with torch.inference_mode(False), torch.enable_grad():
            tracked, inner = self._tracked
            parts = torch.autograd.grad(
                quantity(inner).sum(), tracked, create_graph=differentiable, retain_graph=True, materialize_grads=True
            )
        return self._event(*parts)


def _scores(potentials: Tensor, value: Tensor) -> Tensor:
    """Return the scores of the parts of a value; a forbidden part that is not used costs nothing."""
    return torch.where(value == 0, 0.0, potentials * value)


class LinearChainCRF(StructDistribution):
    """Tag sequences: log-potentials [batch, N-1, C to, C from] score neighbours z_n -> z_{n+1}.

    >>> chain = LinearChainCRF(torch.zeros(1, 2, 3, 3))
    >>> chain.count, chain.marginals.shape
    (tensor([27.], dtype=torch.float64), torch.Size([1, 2, 3, 3]))
    """

    _axes = 4

    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        (edges,) = potentials
        batch, n, c, _ = edges.shape
        return LinearChain(edges.new_zeros(batch, n + 1, c), edges.transpose(-1, -2), lengths=self.lengths)

    def to_event(self, sequence: Tensor, extra: int, lengths: Tensor | None = None) -> Tensor:
        """Return the event of tags [batch, N] out of `extra`.

        Args:
            sequence: Tags [batch, N].
            extra: Number of tags C.
            lengths: Number of tags of each row [batch]; None if all rows are full.

        Returns:
            1 at each pair of neighbours [batch, N-1, C to, C from], 0 elsewhere.
        """
        to, source = one_hot(sequence[:, 1:], extra), one_hot(sequence[:, :-1], extra)
        inside = torch.arange(sequence.shape[1] - 1) < _given(lengths, sequence)[:, None] - 1
        return to[..., :, None] * source[..., None, :] * inside[..., None, None]

    def from_event(self, event: Tensor) -> tuple[Tensor, int]:
        """Return the tags [batch, N] of an event, and how many there are."""
        first = event[:, :1].sum(-2).argmax(-1)
        return torch.cat([first, event.sum(-1).argmax(-1)], 1), event.shape[-1]


class HMM(LinearChainCRF):
    """States of a hidden Markov model given observations [batch, N]; log-probabilities as in torch-struct.

    `transition` [C to, C from], `emission` [V, C], `init` [C].

    >>> HMM(torch.zeros(2, 2), torch.zeros(3, 2), torch.zeros(2), torch.tensor([[0, 2, 1]])).partition.exp()
    tensor([8.])

    Args:
        transition: Log probabilities of transitions [C to, C from].
        emission: Log probabilities of symbols [V, C].
        init: Log probabilities of the first state [C].
        observations: Symbols [batch, N].
        lengths: Number of symbols of each row [batch]; None if all rows are full.
    """

    def __init__(
        self, transition: Tensor, emission: Tensor, init: Tensor, observations: Tensor, lengths: Tensor | None = None
    ) -> None:
        seen = emission[observations]  # [batch, N, C]
        edges = transition + seen[:, 1:, :, None]
        first = edges[:, :1] + (init + seen[:, 0])[:, None, None, :]
        super().__init__(torch.cat([first, edges[:, 1:]], 1), lengths)


class SemiMarkovCRF(StructDistribution):
    """Segmentations: log-potentials [batch, N-1, K, C to, C from] score a jump of k < K from n to n + k; k = 0 is not
    read.

    Labels here are pairs (to, from), so that sums take time in proportion to C⁴: `SemiMarkov` is the one for many
    labels, with scores that factor.

    >>> SemiMarkovCRF(torch.zeros(1, 3, 3, 1, 1)).count  # 3 = 1+1+1 = 1+2 = 2+1
    tensor([3.], dtype=torch.float64)
    """

    _axes = 5

    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        (edges,) = potentials
        c = edges.shape[-1]
        meet = torch.eye(c, device=edges.device, dtype=torch.bool)[:, None, None, :].expand(c, c, c, c)
        transitions = torch.where(meet.reshape(c * c, c * c), 0.0, -INF).to(edges.dtype)
        lengths = None if self.lengths is None else self.lengths - 1
        return SemiMarkov(edges[:, :, 1:].flatten(-2), transitions, lengths=lengths)

    def from_event(self, event: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Labels [batch, N], -1 where no segment ends, of an event; and (C, K)."""
        batch, n, k, c, _ = event.shape
        labels = event.new_full((batch, n + 1), -1, dtype=torch.long)
        row, start, width, to, source = event.nonzero().T
        labels[row[start == 0], 0] = source[start == 0]
        labels[row, start + width] = to
        return labels, (c, k)


class DependencyCRF(StructDistribution):
    """Projective dependency trees: log-potentials [batch, N head, N child], roots on the diagonal; perhaps [..., L]
    labels. With `multiroot=False` one word hangs from the root.

    >>> DependencyCRF(torch.zeros(1, 3, 3), multiroot=False).count
    tensor([7.], dtype=torch.float64)

    Args:
        log_potentials: Scores of arcs [batch, N head, N child] or [..., L], roots on the diagonal.
        lengths: Number of words of each row [batch]; None if all rows are full.
        args: Further arguments of torch-struct, which have no effect.
        multiroot: Whether several words may depend on the root.
    """

    _tree: type[ProjectiveTree] | type[SpanningTree] = ProjectiveTree

    def __init__(
        self, log_potentials: Tensor, lengths: Tensor | None = None, args: object = None, multiroot: bool = True
    ) -> None:
        self.multiroot, self._axes = multiroot, 4 if log_potentials.dim() == 4 else 3
        super().__init__(log_potentials, lengths)

    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        (arcs,) = potentials
        roots = arcs.diagonal(dim1=1, dim2=2)  # [batch, N] or [batch, L, N]
        roots = roots.transpose(1, 2) if arcs.dim() == 4 else roots
        with_root = torch.cat([roots[:, None], arcs], 1)  # [batch, N+1, N, ...]
        square = torch.cat([torch.zeros_like(with_root[:, :, :1]), with_root], 2)
        how: dict[str, Any] = {"lengths": self.lengths, "single_root": not self.multiroot}
        if arcs.dim() == 4:
            return self._tree(square.new_zeros(square.shape[:3]), labels=square, **how)
        return self._tree(square, **how)

    def to_event(self, sequence: Tensor, extra: None = None, lengths: Tensor | None = None) -> Tensor:
        """Return the event of heads [batch, N], counted from 1 and 0 for the root.

        Args:
            sequence: Heads [batch, N].
            extra: Nothing; torch-struct has this argument too.
            lengths: Number of words of each row [batch]; None if all rows are full.

        Returns:
            1 at each arc [batch, N head, N child], 0 elsewhere.
        """
        n = sequence.shape[1]
        words = torch.arange(n, device=sequence.device)
        heads = torch.where(sequence == 0, words, sequence - 1)
        inside = words < _given(lengths, sequence)[:, None]
        return one_hot(heads, n).transpose(-1, -2) * inside[:, None]

    def from_event(self, event: Tensor) -> tuple[Tensor, None]:
        """Return the heads [batch, N] of an event without labels."""
        heads = event.argmax(1) + 1
        roots = event.diagonal(dim1=1, dim2=2) != 0
        return torch.where(roots | (event.sum(1) == 0), 0, heads), None


class NonProjectiveDependencyCRF(DependencyCRF):
    """Dependency trees whose arcs may cross: log-potentials as those of `DependencyCRF`.

    >>> NonProjectiveDependencyCRF(torch.zeros(1, 3, 3)).count
    tensor([9.], dtype=torch.float64)

    Args:
        log_potentials: Scores of arcs [batch, N head, N child], roots on the diagonal.
        lengths: Number of words of each row [batch]; None if all rows are full.
        args: Further arguments of torch-struct, which have no effect.
        multiroot: Whether several words may depend on the root.
    """

    _tree = SpanningTree

    def __init__(
        self, log_potentials: Tensor, lengths: Tensor | None = None, args: object = None, multiroot: bool = False
    ) -> None:
        super().__init__(log_potentials, lengths, args, multiroot)


class TreeCRF(StructDistribution):
    """Binary trees with labelled spans: log-potentials [batch, N, N, NT] at [first word, last word, label].

    >>> TreeCRF(torch.zeros(1, 4, 4, 1)).count
    tensor([5.], dtype=torch.float64)
    """

    _axes = 4

    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        return SpanTree(potentials[0], lengths=self.lengths)


class SentCFG(StructDistribution):
    """Derivations by a grammar: log-potentials are a tuple of terms [batch, N, T], rules [batch, NT, NT+T, NT+T] and
    roots [batch, NT].

    Events are tuples of the same shapes, and of spans [batch, N, N, NT]: at [w, i] those over the w + 2 words from i.

    >>> SentCFG((torch.zeros(1, 3, 1), torch.zeros(1, 1, 2, 2), torch.zeros(1, 1))).count
    tensor([2.], dtype=torch.float64)
    """

    _axes = 3

    def _potentials(self) -> tuple[Tensor, ...]:
        return (*self.log_potentials, self._nodes)

    @cached_property
    def _nodes(self) -> Tensor:
        """Scores of 0 of all nodes, whose gradient says where nodes are."""
        terms, _, roots = self.log_potentials
        (batch, n, n_terms), n_phrases = terms.shape, roots.shape[1]
        return terms.new_zeros(batch, n, n, n_phrases + n_terms)

    def _make_distribution(self, *potentials: Tensor) -> StructuredDistribution:
        terms, rules, roots, nodes = potentials
        root = torch.cat([roots, roots.new_full((len(roots), terms.shape[-1]), -INF)], 1)
        grammar = _every_rule(roots.shape[-1], terms.shape[-1])
        return WeightedCFG(
            grammar, lexical=terms, rules=rules.flatten(1), root=root, nodes=nodes, lengths=self.lengths
        )  # fmt: skip

    def _event(self, *parts: Tensor) -> tuple[Tensor, ...]:
        terms, rules, roots, nodes = parts
        spans, n = torch.zeros_like(nodes[..., : roots.shape[-1]]), nodes.shape[1]
        for width in range(n - 1):
            first = torch.arange(n - width - 1)
            spans[:, width, : n - width - 1] = nodes[:, first, first + width + 1, : roots.shape[-1]]
        return terms, rules, roots, spans


@lru_cache(maxsize=16)
def _every_rule(n_phrases: int, n_terms: int) -> Grammar:
    """Return the grammar with all rules of these numbers of symbols."""
    n = n_phrases + n_terms
    rules = tuple((parent, left, right) for parent in range(n_phrases) for left in range(n) for right in range(n))
    scores = torch.zeros(len(rules), dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    return Grammar(tuple(map(str, range(n))), n_phrases, n_terms, rules, *scores)


def _given(lengths: Tensor | None, sequence: Tensor) -> Tensor:
    return sequence.new_full(sequence.shape[:1], sequence.shape[1]) if lengths is None else lengths
