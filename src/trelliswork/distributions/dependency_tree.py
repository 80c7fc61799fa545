"""What distributions over dependency trees share: the queries, for trees with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch.distributions import constraints, register_kl

from trelliswork.distributions import tree_inputs as inputs
from trelliswork.distributions.arc_factored import ArcFactored
from trelliswork.distributions.base import padded, require_finite_totals, weighted_sum
from trelliswork.distributions.centring import centred_by_word
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.arc_autograd import log_likelihood
from trelliswork.structures.arc_labels import add_labels, below, label_log_probs
from trelliswork.structures.arcs import tree_score
from trelliswork.structures.label_autograd import best_over_labels

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INF = float("inf")


class DependencyTree(ArcFactored):
    """p(tree | x) with score = Σ_m arcs[head of m, m]; subclasses say which trees there are and sum over them.

    With `labels` each arc has one as well: score = Σ_m arcs[head of m, m] + labels[head of m, m, label of m], and a
    value is (head, label) of each word, [..., batch, n, 2].
    """

    def score(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """The log score of trees; -inf with a forbidden arc. Heads that form no tree of this family are an error."""
        return self._like_samples(value, self._scores(value))

    def log_prob(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """log p(value | x) = score - log Z [S2, tree distribution]; -inf with a forbidden arc, never above 0."""
        found = self._log_likelihood_fast(value)
        if found is not None:
            return self._batched(found)
        return self._like_samples(value, log_ratio(self._scores(value), self._log_z))

    def _log_likelihood_fast(self, value: Tensor) -> Float[Tensor, "rows"] | None:
        """The loss in two kernels; None where that does not apply or something is wrong."""
        if self.backend == "torch" or value.dtype != torch.long or not value.is_cpu:
            return None
        if value.shape != self.batch_shape + self.event_shape:
            return None
        rows = value.reshape(len(self._lengths), *self.event_shape)
        if self.labels is None:
            return log_likelihood(self._family, self._rows, rows)
        heads, real, summed = rows[..., 0].contiguous(), self._word_mask, self._rows
        labels = inputs.check_labels(rows[..., 1], 1, real, self.labels.shape[-1])[0]
        of_heads = log_likelihood(self._family, summed, heads)
        if of_heads is None:
            return None
        heads = torch.where(real, heads, 0)
        of_labels = label_log_probs(self._given.scores, self._label_rows, summed.scores, heads, labels)
        return add_labels(of_heads, of_labels, real)

    def _scores(self, value: Tensor) -> Float[Tensor, "samples rows"]:
        trees, labels = self._given.trees, None
        heads = value
        if self.labels is not None:
            heads, labels = inputs.split_value(value, self.n)
        samples = inputs.check_heads(heads, self.batch_shape, trees.word_mask)
        if labels is not None and self.labels is not None:
            labels = inputs.check_labels(labels, len(samples), trees.word_mask, self.labels.shape[-1])
        for each in samples:
            self._require_trees(each)
        if not len(samples):
            return trees.arcs.new_zeros(0, len(self._lengths))
        if labels is None:
            return torch.stack([tree_score(trees, each) for each in samples])
        pairs = zip(samples, labels, strict=True)
        labelled = self._labelled
        return torch.stack([labelled.score(each, chosen, trees.word_mask) for each, chosen in pairs])

    def _like_samples(self, value: Tensor, result: Float[Tensor, "samples rows"]) -> Tensor:
        shape = value.shape[: value.dim() - len(self.batch_shape) - len(self.event_shape)]
        return self._batched(result, len(result)).reshape((*shape, *self.batch_shape))

    def _require_trees(self, heads: Int[Tensor, "rows n"]) -> None:
        fine = self._is_member(heads)
        if not bool(fine.all()):
            row = int((~fine).nonzero()[0])
            found = heads[row, : int(self._lengths[row])].tolist()
            roots = "exactly one word with head 0" if self.single_root else "words with head 0"
            raise ScoreError(
                f"heads must be a {self._kind}, {roots}; got {found} at row {row}; "
                "look for a cycle, or choose single_root or the family of trees that fits the data"
            )

    @property
    def marginals(self) -> Float[Tensor, "*batch n+1 n+1 *l"]:
        """p(h is the head of m | x) at [..., h, m], with labels [..., h, m, y]; 0 at what is no arc. Differentiable."""
        return self._batched(self._part_posteriors)

    @property
    def arc_marginals(self) -> Float[Tensor, "*batch n+1 n+1"]:
        """p(h is the head of m | x) at [..., h, m], whatever its label."""
        return self._batched(self._posteriors)

    def arc_probability(self, head: int, dependent: int, label: int | None = None) -> Float[Tensor, "*batch"]:
        """P(word `dependent` hangs from `head`, by an arc of this label), words counted from 1, the root being 0."""
        n = self.n
        if not (0 <= head <= n and 1 <= dependent <= n):
            raise ScoreError(f"an arc leads from 0..{n} to 1..{n}; got {head} to {dependent}; count words from 1")
        if label is None:
            return self.arc_marginals[..., head, dependent]
        n_labels = 0 if self.labels is None else self.labels.shape[-1]
        if not 0 <= label < n_labels:
            raise ScoreError(f"the label must be one of {n_labels}, counted from 0; got {label}")
        return self.marginals[..., head, dependent, label]

    @property
    def argmax(self) -> Int[Tensor, "*batch n"]:
        """The heads of the best tree, or its (head, label) pairs."""
        if self.labels is None:
            heads, possible = self._best(self._rows)
            self._require_possible(possible)
            return heads.to(self.arcs.device).reshape(*self.batch_shape, *self.event_shape)
        rows = self._given
        by_kernel = self.backend == "kernel"
        over_labels = best_over_labels(rows, self._label_rows) if by_kernel else rows.with_scores(self._labelled.best)
        heads, possible = self._best(over_labels)
        self._require_possible(possible)
        heads = heads.to(self.arcs.device)
        return self._value(heads[None], below(self._label_rows, heads).argmax(-1)[None])[0]

    def top_k(self, k: int) -> tuple[Int[Tensor, "k *batch n"], Float[Tensor, "k *batch"]]:
        """The k best trees and their scores, best first; a score of -inf fills up where there are fewer."""
        if k < 1:
            raise ScoreError(f"k must be at least 1; got {k}; ask for one best tree or more")
        if (n_best := self._n_best(k)) < k:
            return padded(self.top_k(n_best), k)
        labelled = self._labelled
        heads, labels, found = (each.to(self.arcs.device) for each in self._top(labelled.parts, k))
        exists = found > -INF
        self._require_possible(exists[0])
        heads = torch.where(exists[:, :, None], heads, heads[:1])
        labels = torch.where(exists[:, :, None], labels, labels[:1])
        pairs = zip(heads, labels, strict=True)
        scores = torch.stack([labelled.score(each, chosen, self._word_mask) for each, chosen in pairs])
        value = self._value(heads, None if self.labels is None else labels)
        return value, self._batched(torch.where(exists, scores, -INF), k)

    def sample(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples *batch n"]:
        """Exact independent samples."""
        shape = torch.Size(sample_shape)
        log_z = self._log_z.detach()
        require_finite_totals(log_z, lambda: self.count)
        self._require_possible(log_z > -INF)
        heads = self._draw(self._rows, shape.numel(), generator).to(self.arcs.device)
        labels = None if self.labels is None else self._labelled.draw_labels(heads, generator)
        return self._value(heads, labels).reshape(*shape, *self.batch_shape, *self.event_shape)

    def _require_possible(self, possible: Bool[Tensor, "rows"]) -> None:
        if not bool(possible.all()):
            row = int((~possible).nonzero()[0])
            raise ConstraintError(
                f"row {row} has no tree with a score above -inf; allow a head for each word and a way to the root"
            )

    @property
    def count(self) -> Float[Tensor, "*batch"]:
        """How many trees are possible, with labels how many labelled trees, in float64."""
        return self._count().reshape(self.batch_shape)

    def expected(self, costs: Float[Tensor, "*batch n+1 n+1 *l"]) -> Float[Tensor, "*batch"]:
        """E[Σ_m costs[head of m, m]]; costs are shaped like arcs, or like labels."""
        if costs.shape == self.arcs.shape:
            return self._batched(weighted_sum(self._posteriors, costs.double().reshape(self._given.scores.shape), 1))
        if self.labels is None or costs.shape != self.labels.shape:
            raise ScoreError(f"costs must be {tuple(self.arcs.shape)}, one for each arc; got {tuple(costs.shape)}")
        return self._batched(weighted_sum(self._part_posteriors, costs.double().reshape(self._parts.shape), 1))

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H(p) = log Z - E[score], in nats."""
        given = self._centred()
        return self._batched(given._log_z - weighted_sum(given._part_posteriors, given._parts, 1))

    def _centred(self) -> Self:
        """The same distribution with centred scores of each word's arcs, and of their labels."""
        read, labels = self._given.trees.is_arc, None
        if self.labels is not None:
            labels = centred_by_word(self._label_rows, read)
        return self._like(centred_by_word(self._given.scores[..., None], read)[..., 0], labels, self._lengths)

    def constrain(self, partial: Tensor | None = None) -> Self:
        """Only the trees that agree: every other arc scores -inf.

        `partial` holds heads [*batch, n], with -100 (any negative) where the head is unknown, or True for each allowed
        arc. With labels it may also be (head, label) pairs [*batch, n, 2], or a mask shaped like the labels.
        """
        arcs, labels = self.arcs, self.labels
        if partial is None:
            return self._like(arcs, labels, self.lengths)
        if labels is not None and partial.dtype == torch.bool and partial.shape == labels.shape:
            return self._like(arcs, torch.where(partial, labels, -INF), self.lengths)
        if labels is not None and partial.dtype != torch.bool and partial.dim() == arcs.dim():
            partial, known = inputs.split_value(partial, self.n)
            labels = torch.where(inputs.allowed_labels(known, labels, self.valid), labels, -INF)
        return self._like(torch.where(inputs.allowed_arcs(partial, arcs, self.valid), arcs, -INF), labels, self.lengths)

    def _like(self, arcs: Tensor, labels: Tensor | None, lengths: Tensor) -> Self:
        return type(self)(
            arcs, labels, lengths=lengths, single_root=self.single_root, backend=self.backend, validate_args=False
        )

    # --- torch.distributions ---------------------------------------------------------------------------------

    @property
    def support(self) -> Any:
        most = self.n if self.labels is None else max(self.n, self.labels.shape[-1] - 1)
        return constraints.independent(constraints.integer_interval(0, most), len(self.event_shape))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distribution in a larger batch shape, without copying scores."""
        shape = torch.Size(batch_shape)
        labels = None if self.labels is None else self.labels.expand(*shape, *self.labels.shape[-3:])
        return self._like(self.arcs.expand(*shape, *self.arcs.shape[-2:]), labels, self.lengths.expand(shape))

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f"labels={self.labels.shape[-1]}, "
        return (
            f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, n={self.n}, {labels}"
            f"single_root={self.single_root}, backend={self.backend!r})"
        )


@register_kl(DependencyTree, DependencyTree)
def _kl(p: DependencyTree, q: DependencyTree) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if type(p) is not type(q) or p.single_root != q.single_root:
        raise ScoreError(f"KL needs trees of the same family and root; got {p!r} and {q!r}")
    mine, other = p._parts, q._parts
    if p.arcs.shape != q.arcs.shape or mine.shape != other.shape or not torch.equal(p.lengths, q.lengths):
        raise ScoreError(f"KL needs trees of the same shape, labels and lengths; got {p!r} and {q!r}")
    both_forbid = (mine == -INF) & (other == -INF)
    gap = torch.where(both_forbid, 0.0, mine) - torch.where(both_forbid, 0.0, other)
    # Where nothing is left of q, it forbids all that p allows.
    log_ratio_of_totals = torch.where(q._log_z > -INF, q._log_z, 0.0) - p._log_z
    divergence = weighted_sum(p._part_posteriors, gap, 1) + log_ratio_of_totals
    return p._batched(torch.where(q._log_z > -INF, divergence, INF))
