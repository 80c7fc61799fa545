"""What distributions over dependency trees share: the parts are arcs, a value is the head of each word."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch.distributions import constraints, register_kl

from trelliswork.distributions.base import Backend, StructuredDistribution, resolve_backend, weighted_sum
from trelliswork.distributions.tree_inputs import allowed_arcs, check_arcs, check_heads, check_shape, flat_lengths
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.arcs import Arcs, is_tree, tree_score

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INF = float("inf")


class DependencyTree(StructuredDistribution):
    """p(tree | x) with score = Σ_m arcs[head of m, m]; subclasses say which trees there are and sum over them."""

    def __init__(
        self,
        arcs: Float[Tensor, "*batch n+1 n+1"],
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        single_root: bool = True,
        backend: Backend = "auto",
        validate_args: bool | None = None,
    ):
        check_shape(arcs)
        self.arcs, self.single_root = arcs, bool(single_root)
        batch_shape, n = arcs.shape[:-2], arcs.shape[-1] - 1
        self._lengths = flat_lengths(lengths, batch_shape, n, arcs.device)
        self.backend = resolve_backend(backend, arcs.device)
        super().__init__(batch_shape, torch.Size([n]), validate_args=False)
        if validate_args is None or validate_args:
            check_arcs(self._trees.arcs)

    # --- hooks: flat rows, float64 ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def _posteriors(self) -> Float[Tensor, "rows n+1 n+1"]:
        """p(arc | x)."""

    @abstractmethod
    def _best(self) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        """The best heads, and whether a row has any tree."""

    @abstractmethod
    def _top(self, k: int) -> tuple[Int[Tensor, "k rows n"], Float[Tensor, "k rows"]]:
        """The k best heads and their scores, -inf where there are fewer."""

    @abstractmethod
    def _draw(self, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        """Exact samples."""

    @abstractmethod
    def _count(self) -> Float[Tensor, "rows"]:
        """How many trees are possible."""

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        """Whether heads form a tree of this family."""
        return is_tree(self._trees, heads)

    # --- the parts -------------------------------------------------------------------------------------------

    @cached_property
    def _trees(self) -> Arcs:
        size = self.arcs.shape[-1]
        return Arcs.of(self.arcs.reshape(-1, size, size), self._lengths, self.single_root)

    @property
    def lengths(self) -> Int[Tensor, "*batch"]:
        """Words of each row."""
        return self._lengths.reshape(self.batch_shape)

    @property
    def valid(self) -> Bool[Tensor, "*batch n"]:
        """True at real words."""
        return self._trees.word_mask.reshape(*self.batch_shape, *self.event_shape)

    def _batched(self, result: Tensor, *lead: int) -> Tensor:
        """A result [*lead, rows, ...] in the caller's batch shape and dtype."""
        return result.reshape((*lead, *self.batch_shape, *result.shape[len(lead) + 1 :])).to(self.arcs.dtype)

    def _heads_out(self, heads: Int[Tensor, "m rows n"]) -> Int[Tensor, "m *batch n"]:
        return heads.to(self.arcs.device).reshape(len(heads), *self.batch_shape, *self.event_shape)

    # --- queries ---------------------------------------------------------------------------------------------

    def score(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """The log score of trees; -inf with a forbidden arc. Heads that form no tree of this family are an error."""
        return self._like_samples(value, self._scores(value))

    def log_prob(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """log p(value | x) = score - log Z [S2, tree distribution]; -inf with a forbidden arc, never above 0."""
        return self._like_samples(value, log_ratio(self._scores(value), self._log_z))

    def _scores(self, value: Tensor) -> Float[Tensor, "samples rows"]:
        samples = check_heads(value, self.batch_shape, self._trees.word_mask)
        for heads in samples:
            self._require_trees(heads)
        if not len(samples):
            return self._trees.arcs.new_zeros(0, len(self._lengths))
        return torch.stack([tree_score(self._trees, heads) for heads in samples])

    def _like_samples(self, value: Tensor, result: Float[Tensor, "samples rows"]) -> Tensor:
        shape = value.shape[: value.dim() - len(self.batch_shape) - 1]
        return self._batched(result, len(result)).reshape((*shape, *self.batch_shape))

    def _require_trees(self, heads: Int[Tensor, "rows n"]) -> None:
        fine = self._is_member(heads)
        if not bool(fine.all()):
            row = int((~fine).nonzero()[0])
            found = heads[row, : int(self._lengths[row])].tolist()
            roots = "exactly one word with head 0" if self.single_root else "words with head 0"
            raise ScoreError(
                f"heads must be a {self._family}, {roots}; got {found} at row {row}; "
                "look for a cycle, or choose single_root or the family of trees that fits the data"
            )

    _family = "tree without cycles"

    @property
    def marginals(self) -> Float[Tensor, "*batch n+1 n+1"]:
        """p(h is the head of m | x) at [..., h, m]; 0 at whatever is no arc. Differentiable."""
        return self._batched(self._posteriors)

    def arc_probability(self, head: int, dependent: int) -> Float[Tensor, "*batch"]:
        """P(word `dependent` hangs from `head`), words counted from 1 and the root being 0."""
        n = self.event_shape[0]
        if not (0 <= head <= n and 1 <= dependent <= n):
            raise ScoreError(f"an arc leads from 0..{n} to 1..{n}; got {head} to {dependent}; count words from 1")
        return self.marginals[..., head, dependent]

    @property
    def argmax(self) -> Int[Tensor, "*batch n"]:
        """The heads of the best tree."""
        heads, possible = self._best()
        self._require_possible(possible)
        return self._heads_out(heads[None])[0]

    def top_k(self, k: int) -> tuple[Int[Tensor, "k *batch n"], Float[Tensor, "k *batch"]]:
        """The k best trees and their scores, best first; a score of -inf fills up where there are fewer."""
        if k < 1:
            raise ScoreError(f"k must be at least 1; got {k}; ask for one best tree or more")
        heads, found = self._top(k)
        exists = (found > -INF).to(self.arcs.device)
        self._require_possible(exists[0])
        heads = heads.to(self.arcs.device)
        heads = torch.where(exists[:, :, None], heads, heads[:1])
        scores = torch.stack([tree_score(self._trees, each) for each in heads])
        return self._heads_out(heads), self._batched(torch.where(exists, scores, -INF), k)

    def sample(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples *batch n"]:
        """Exact independent samples."""
        shape = torch.Size(sample_shape)
        self._require_possible(self._log_z.detach() > -INF)
        heads = self._draw(shape.numel(), generator)
        return self._heads_out(heads).reshape(*shape, *self.batch_shape, *self.event_shape)

    def _require_possible(self, possible: Bool[Tensor, "rows"]) -> None:
        if not bool(possible.all()):
            row = int((~possible).nonzero()[0])
            raise ConstraintError(
                f"row {row} has no tree with a score above -inf; allow a head for each word and a way to the root"
            )

    @property
    def count(self) -> Float[Tensor, "*batch"]:
        """How many trees are possible, in float64."""
        return self._count().reshape(self.batch_shape)

    def expected(self, costs: Float[Tensor, "*batch n+1 n+1"]) -> Float[Tensor, "*batch"]:
        """E[Σ_m costs[head of m, m]]; costs are shaped like arcs."""
        if costs.shape != self.arcs.shape:
            raise ScoreError(f"costs must be {tuple(self.arcs.shape)}, one for each arc; got {tuple(costs.shape)}")
        size = self.arcs.shape[-1]
        return self._batched(weighted_sum(self._posteriors, costs.double().reshape(-1, size, size), 1))

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H(p) = log Z - E[score], in nats."""
        return self._batched(self._log_z - weighted_sum(self._posteriors, self._trees.arcs, 1))

    def constrain(self, partial: Int[Tensor, "*batch n"] | Bool[Tensor, "*batch n+1 n+1"] | None = None) -> Self:
        """Only the trees that agree: every other arc scores -inf.

        `partial` holds heads, with -100 (any negative) where the head is unknown, or True for each allowed arc.
        """
        arcs = self.arcs
        if partial is not None:
            arcs = torch.where(allowed_arcs(partial, arcs, self.valid), arcs, -INF)
        return self._like(arcs, self.lengths)

    def _like(self, arcs: Tensor, lengths: Tensor) -> Self:
        return type(self)(
            arcs, lengths=lengths, single_root=self.single_root, backend=self.backend, validate_args=False
        )

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> Any:
        return constraints.independent(constraints.integer_interval(0, self.event_shape[0]), 1)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        return self._like(self.arcs.expand(*shape, *self.arcs.shape[-2:]), self.lengths.expand(shape))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, n={self.event_shape[0]}, "
            f"single_root={self.single_root}, backend={self.backend!r})"
        )


@register_kl(DependencyTree, DependencyTree)
def _kl(p: DependencyTree, q: DependencyTree) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if type(p) is not type(q) or p.single_root != q.single_root:
        raise ScoreError(f"KL needs trees of the same family and root; got {p!r} and {q!r}")
    if p.arcs.shape != q.arcs.shape or not torch.equal(p.lengths, q.lengths):
        raise ScoreError(
            f"KL needs trees of the same shape and lengths; got {tuple(p.arcs.shape)} and {tuple(q.arcs.shape)}"
        )
    mine, other = p._trees.arcs, q._trees.arcs
    both_forbid = (mine == -INF) & (other == -INF)
    gap = torch.where(both_forbid, 0.0, mine) - torch.where(both_forbid, 0.0, other)
    # Where nothing is left of q, it forbids all that p allows.
    log_ratio_of_totals = torch.where(q._log_z > -INF, q._log_z, 0.0) - p._log_z
    divergence = weighted_sum(p._posteriors, gap, 1) + log_ratio_of_totals
    return p._batched(torch.where(q._log_z > -INF, divergence, INF))
