"""What distributions over alignments share: parts scored by one tensor, values that are paths through a lattice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.distributions import register_kl

from trelliswork.distributions.base import StructuredDistribution, padded, require_finite_totals, weighted_sum
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.semirings import Counting
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.score_autograd import Family, log_partition, marginals, reference_marginals

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

INF = float("inf")


class Alignment(StructuredDistribution):
    """p(path | x) with score = Σ scores of its parts; subclasses say which paths there are.

    `scores` is the caller's tensor, `_parts` the same in flat rows and float64, -inf at whatever is no part.
    """

    scores: Tensor
    backend: Literal["kernel", "torch"]
    _reference: ClassVar[ModuleType]  # total, best, top_k, sample, path_score in plain torch
    _kernels: ClassVar[ModuleType]  # FAMILY, best_paths, top_paths, sample_paths
    _advice: ClassVar[str]  # how to make an impossible row possible

    # --- hooks: flat rows, float64 ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def _parts(self) -> Any:
        """The structure's parts, with `scores` and `with_scores`."""

    @abstractmethod
    def _checked(self, value: Tensor) -> Int[Tensor, "samples rows n"]:
        """Paths [*samples, *batch, n], each refused by name if it is none."""

    @abstractmethod
    def _allowed(self, partial: Any) -> Bool[Tensor, "*batch ..."]:
        """Partial knowledge as allowed parts, shaped like the scores."""

    @abstractmethod
    def _like(self, scores: Tensor) -> Self:
        """Other scores, everything else the same."""

    @abstractmethod
    def _comparable(self, other: Self) -> bool:
        """Whether both have the same paths, up to scores of -inf."""

    # --- the two implementations -----------------------------------------------------------------------------

    @property
    def _family(self) -> Family:
        family: Family = self._kernels.FAMILY
        return family

    def _best(self) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        """The best paths, and whether a row has any."""
        best = self._reference.best if self.backend == "torch" else self._kernels.best_paths
        paths, possible = best(self._parts)
        return paths, possible

    def _top(self, k: int) -> tuple[Int[Tensor, "k rows n"], Float[Tensor, "k rows"]]:
        """The k best paths and their scores, -inf where there are fewer."""
        top = self._reference.top_k if self.backend == "torch" else self._kernels.top_paths
        paths, scores = top(self._parts, k)
        return paths, scores

    def _draw(self, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        """Exact samples."""
        draw = self._reference.sample if self.backend == "torch" else self._kernels.sample_paths
        paths: Tensor = draw(self._parts, n_samples, generator)
        return paths

    def _path_score(self, paths: Int[Tensor, "rows n"]) -> Float[Tensor, "rows"]:
        """The score of one path a row."""
        score: Tensor = self._reference.path_score(self._parts, paths)
        return score

    # --- queries ---------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> torch.dtype:
        return self.scores.dtype

    def _batched(self, result: Tensor, *lead: int) -> Tensor:
        """A result [*lead, rows, ...] in the caller's batch shape and dtype."""
        return result.reshape((*lead, *self.batch_shape, *result.shape[len(lead) + 1 :])).to(self.dtype)

    def _paths_out(self, paths: Int[Tensor, "m rows n"]) -> Int[Tensor, "m *batch n"]:
        return paths.to(self.scores.device).reshape(len(paths), *self.batch_shape, *self.event_shape)

    @property
    def _log_z(self) -> Float[Tensor, "rows"]:
        parts = self._parts
        if self.backend == "torch":
            return self._family.reference_log_partition(parts)
        return log_partition(self._family, parts)

    @property
    def _posteriors(self) -> Float[Tensor, "rows ..."]:
        parts = self._parts
        if self.backend == "torch":
            return reference_marginals(self._family, parts)
        return marginals(self._family, parts)

    def score(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """The log score of paths; -inf with a forbidden part. What is no path is an error that names it."""
        return self._like_samples(value, self._scores(value))

    def log_prob(self, value: Int[Tensor, "*samples *batch n"]) -> Float[Tensor, "*samples *batch"]:
        """log p(value | x) = score - log Z; -inf with a forbidden part, never above 0."""
        return self._like_samples(value, log_ratio(self._scores(value), self._log_z))

    def _one_each(self, query: str, value: Tensor) -> Int[Tensor, "rows n"]:
        """One checked path for each row."""
        samples = self._checked(value)
        if len(samples) != 1:
            raise ScoreError(f"{query} takes one path for each row; got {len(samples)} samples; ask for each in turn")
        return samples[0]

    def _scores(self, value: Tensor) -> Float[Tensor, "samples rows"]:
        samples = self._checked(value)
        if not len(samples):
            return self._parts.scores.new_zeros(0, self.batch_shape.numel())
        return torch.stack([self._path_score(each) for each in samples])

    def _like_samples(self, value: Tensor, result: Float[Tensor, "samples rows"]) -> Tensor:
        shape = value.shape[: value.dim() - len(self.batch_shape) - 1]
        return self._batched(result, len(result)).reshape((*shape, *self.batch_shape))

    @property
    def marginals(self) -> Tensor:
        """p(part | x), shaped like the scores; 0 at whatever is no part. Differentiable."""
        return self._batched(self._posteriors)

    @property
    def argmax(self) -> Int[Tensor, "*batch n"]:
        """The best path."""
        paths, possible = self._best()
        self._require_possible(possible)
        return self._paths_out(paths[None])[0]

    def top_k(self, k: int) -> tuple[Int[Tensor, "k *batch n"], Float[Tensor, "k *batch"]]:
        """The k best paths and their scores, best first; a score of -inf fills up where there are fewer."""
        if k < 1:
            raise ScoreError(f"k must be at least 1; got {k}; ask for one best path or more")
        if (n_best := self._n_best(k)) < k:
            return padded(self.top_k(n_best), k)
        paths, found = self._top(k)
        exists = (found > -INF).to(self.scores.device)
        self._require_possible(exists[0])
        paths = paths.to(self.scores.device)
        paths = torch.where(exists[:, :, None], paths, paths[:1])
        scores = torch.stack([self._path_score(each) for each in paths])
        return self._paths_out(paths), self._batched(torch.where(exists, scores, -INF), k)

    def sample(
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Int[Tensor, "*samples *batch n"]:
        """Exact independent samples."""
        shape = torch.Size(sample_shape)
        log_z = self._log_z.detach()
        require_finite_totals(log_z, lambda: self.count)
        self._require_possible(log_z > -INF)
        paths = self._draw(shape.numel(), generator)
        return self._paths_out(paths).reshape(*shape, *self.batch_shape, *self.event_shape)

    def _require_possible(self, possible: Bool[Tensor, "rows"]) -> None:
        if not bool(possible.all()):
            row = int((~possible).nonzero()[0])
            raise ConstraintError(f"row {row} has no alignment with a score above -inf; {self._advice}")

    @property
    def count(self) -> Float[Tensor, "*batch"]:
        """How many paths are possible, in float64 (exact to 2^53)."""
        count: Tensor = self._reference.total(self._parts, Counting())
        return count.reshape(self.batch_shape)

    def expected(self, costs: Tensor) -> Float[Tensor, "*batch"]:
        """E[Σ costs of the parts of a path]; costs are shaped like the scores."""
        if costs.shape != self.scores.shape:
            raise ScoreError(f"costs must be {tuple(self.scores.shape)}, like the scores; got {tuple(costs.shape)}")
        return self._batched(weighted_sum(self._posteriors, costs.double().reshape(self._parts.scores.shape), 1))

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H(p) = log Z - E[score], in nats."""
        return self._batched(self._log_z - weighted_sum(self._posteriors, self._parts.scores, 1))

    def constrain(self, partial: Any = None) -> Self:
        """Only the paths that agree: every other part scores -inf."""
        scores = self.scores
        if partial is not None:
            scores = torch.where(self._allowed(partial), scores, -INF)
        return self._like(scores)


@register_kl(Alignment, Alignment)
def _kl(p: Alignment, q: Alignment) -> Float[Tensor, "*batch"]:
    """KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    if type(p) is not type(q) or p.scores.shape != q.scores.shape or not p._comparable(q):
        raise ScoreError(f"KL needs alignments of the same shape, lengths and labels; got {p!r} and {q!r}")
    mine, other = p._parts.scores, q._parts.scores
    both_forbid = (mine == -INF) & (other == -INF)
    gap = torch.where(both_forbid, 0.0, mine) - torch.where(both_forbid, 0.0, other)
    # Where nothing is left of q, it forbids all that p allows.
    log_ratio_of_totals = torch.where(q._log_z > -INF, q._log_z, 0.0) - p._log_z
    divergence = weighted_sum(p._posteriors, gap, 1) + log_ratio_of_totals
    return p._batched(torch.where(q._log_z > -INF, divergence, INF))
