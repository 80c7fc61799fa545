"""Base of all structured distributions: the queries that each answers, under the same names.

A distribution brings its structure, its parts, and how its values are written; every query that follows from them is
written here, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, register_kl

from trelliswork.distributions.checks import check_k, check_sample_shape, require_finite_totals, whole_values
from trelliswork.distributions.costs import moved_along, not_negative, weighted_sum
from trelliswork.distributions.divergence import divergence
from trelliswork.distributions.ranking import in_order, padded
from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.errors import ConstraintError, ScoreError, TrellisworkError
from trelliswork.runtime import bridge
from trelliswork.runtime.arrays import INF, Int
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.host_solver import solver_for
from trelliswork.structures.record import Solver, Structure

Backend = Literal["auto", "kernel", "torch"]
FEW = 64
FEW_SHOWN = 4

if TYPE_CHECKING:
    import typing_extensions

    Value = typing_extensions.TypeVar("Value", default=Any)  # as TypeVar has it from Python 3.13
else:
    Value = TypeVar("Value")


class StructuredDistribution(Distribution, Rich, Generic[Value]):
    """p(y | x) = exp(score(x, y)) / Z(x) over the structures y of one input, batched.

    Hooks speak of flat rows: the batch axes as one, and values in their tensor form [rows, *event].

    Args:
        like: a score tensor, whose dtype and device answers have.
        batch_shape: the batch axes of the scores.
        event_shape: the axes of a value as a tensor.
        backend: "kernel", "torch" or "auto".
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - torch's own convention; scores are checked with sentences
    backend: Backend  # "auto" where the scores are on another device: chosen for each solver, by its size
    dtype: torch.dtype  # of the caller's scores, and of all results
    _structure: ClassVar[Structure]
    _noun: ClassVar[str] = "structure"  # what messages call a value
    _advice: ClassVar[str] = "allow one"  # how to make an impossible row possible
    _best_by_tensors: ClassVar[bool] = False  # whether the best value is found, and written, without looking at numbers
    _same: ClassVar[str] = "the same shape and lengths"  # what two of them need for a divergence

    def __init__(self, like: Tensor, batch_shape: Sequence[int], event_shape: Sequence[int], backend: Backend):
        """`like` is one of the scores: its device and dtype are those of the results."""
        self.dtype, self.backend = like.dtype, resolve_backend(backend, like.device)
        super().__init__(torch.Size(batch_shape), torch.Size(event_shape), validate_args=False)

    # --- hooks -----------------------------------------------------------------------------------------------

    _parts: Any  # flat rows; what both solvers of the structure are made from, unless `_solved` says more

    @property
    def _solved(self) -> tuple[Any, ...]:
        return (self._parts,)

    def _read(self, value: Any, check: bool) -> Tensor:
        """A value in its tensor form [*samples, *batch, *event]; `check` that it is one, beyond shape and dtype."""
        return whole_values(f"{self._noun}s", value, (*self.batch_shape, *self.event_shape))

    def _written(self, values: Tensor) -> Any:
        """The tensor form [*samples, *batch, *event] as the caller gets it."""
        return values

    def _by_row(self, values: Tensor) -> Tensor:
        """The tensor form [*batch, *event] in flat rows, as the solvers take it."""
        if len(self.batch_shape) != 1:
            values = values.reshape(self.batch_shape.numel(), *self.event_shape)
        return values.contiguous()

    @property
    def _scores(self) -> tuple[Tensor | None, ...]:
        """All scores, flat and precise."""
        return (self._parts.scores.double(),)

    @property
    def _posteriors(self) -> Any:
        """Of all parts, flat and precise: a tensor, or one for each kind of part."""
        return self._solver.marginals()

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Tensor:
        """E[Σ costs of the parts] [rows], for costs shaped like `_scores`."""
        assert costs[0] is not None
        return weighted_sum(self._posteriors, costs[0].double(), 1)

    @abstractmethod
    def _costs(self, *costs: Any, **kinds: Any) -> tuple[Tensor | None, ...]:
        """Costs as `expected` takes them, checked and shaped like `_scores`."""

    def _tilted(self, costs: tuple[Tensor | None, ...], t: Tensor) -> Self:
        """Return the distribution whose scores are moved by t[row] times the costs; what is forbidden stays so."""
        return self._with_solver(
            tuple(
                score if score is None or cost is None else moved_along(score, cost, t)
                for score, cost in zip(self._scores, costs, strict=True)
            )
        )

    def _with_solver(self, scores: Sequence[Tensor | None]) -> Self:
        """Return a copy whose sums are those of other scores, shaped like `_scores`."""
        moved = copy(self)
        vars(moved)["_solver"] = self._rescored(scores)
        return moved

    def _covariance(self, costs: tuple[Tensor | None, ...], others: tuple[Tensor | None, ...]) -> Tensor:
        """a' H b [rows], H the second derivative of log Z: how E[a] changes as the scores move along b."""
        given = (*self._scores, *costs, *others)
        if any(each is not None and each.is_inference() for each in given):
            raise ScoreError(
                "covariances are derivatives; got scores or costs made in torch.inference_mode(), which have none; "
                "use torch.no_grad() instead"
            )
        differentiated = torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in given)
        with torch.inference_mode(False), torch.enable_grad():
            t = torch.zeros(self._log_z.shape, dtype=torch.float64, device=self._log_z.device, requires_grad=True)
            expected = self._tilted(others, t)._expected(costs).sum()
            if not expected.requires_grad:  # as if a structure has a single value
                return torch.zeros_like(t)
            (derivative,) = torch.autograd.grad(expected, t, create_graph=differentiated)
        return derivative

    def _centred(self) -> Self:
        """The same distribution with scores near 0: entropies and divergences are differences of sums of them."""
        return self

    def _rescored(self, scores: Sequence[Tensor | None]) -> Solver:
        """A solver of the same structures with other scores, shaped like `_scores`."""
        parts, *rest = self._solved
        return solver_for(self._structure, self.backend, parts.with_scores(*scores), *rest)

    def _allows(self, marks: tuple[Tensor | None, ...]) -> Tensor:
        """Return for each row whether a structure above -inf has a marked part [rows], however improbable.

        The best structure has one, if marked parts score 1 and all others 0.
        """
        pairs = zip(self._scores, marks, strict=True)
        marked = tuple(
            mark if own is None or mark is None else torch.where(own > -INF, mark, own) for own, mark in pairs
        )
        solver = self._rescored(marked)
        values, possible = solver.best()
        return possible & (solver.score(values) > 0)

    def _comparable(self, other: Any) -> bool:
        """Return whether both have the same values, up to scores of -inf; False for what has no divergence."""
        return False

    @abstractmethod
    def _divided(self, t: float) -> Self:
        """All scores divided by t."""

    _lengths: Tensor  # of the rows, where they have any

    @property
    def lengths(self) -> Int[Tensor, "*batch"]:
        """Return the length of each row."""
        return self._lengths.reshape(self.batch_shape)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_solver"}  # a copy makes its own

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: sizes and log Z, of the first rows if there are many."""
        try:
            log_z = _first(self.log_partition)
        except TrellisworkError as error:
            log_z = str(error)
        lengths = [("lengths", _first(self.lengths))] if hasattr(self, "_lengths") else []
        rows = [
            ("over", f"{self._noun}s"), ("batch", tuple(self.batch_shape)), ("event", tuple(self.event_shape)),
            *lengths, ("log Z", log_z), ("scores", str(self.dtype)), ("backend", self.backend),
        ]  # fmt: skip
        return [Table(rows)]

    # --- sums ------------------------------------------------------------------------------------------------

    @cached_property
    def _solver(self) -> Any:
        """By kernel or by the reference: the one place where that is chosen."""
        return solver_for(self._structure, self.backend, *self._solved)

    @property
    def _log_z(self) -> Tensor:
        """log Z of each row, flat, in the precision of the computation: differences are rounded once, at the end."""
        solver: Solver = self._solver
        return solver.log_partition()

    def _batched(self, result: Tensor, *lead: int) -> Tensor:
        """A result [*lead, rows, ...] in the caller's batch shape and dtype."""
        if lead or len(self.batch_shape) != 1:
            result = result.reshape((*lead, *self.batch_shape, *result.shape[len(lead) + 1 :]))
        return result if result.dtype == self.dtype else result.to(self.dtype)

    @property
    def log_partition(self) -> Tensor:
        """log Z, the log of the summed exp scores of all structures. -inf if there is none."""
        return self._batched(self._log_z)

    @property
    def marginals(self) -> Tensor:
        """p(part | x), shaped like the scores; 0 at whatever is not a part. Differentiable."""
        return self._batched(self._posteriors)

    @property
    def count(self) -> Tensor:
        """Return the number of structures with a score above -inf, in float64 (exact to 2^53)."""
        return self._structure.reference(*self._solved).count().reshape(self.batch_shape)

    def expected(self, costs: Tensor) -> Tensor:
        """E[Σ cost of the parts of y]: the risk when costs are losses."""
        return self._batched(self._expected(self._costs(costs)))

    def variance(self, *costs: object, **kinds: object) -> Tensor:  # type: ignore[override]  # torch's has no costs
        """Return Var[Σ cost of the parts of y], for costs as `expected` takes them; never below 0.

        >>> people = torch.zeros_like(chain.emissions)
        >>> people[..., tags.index("B-PER")] = 1
        >>> chain.expected(people), chain.variance(people).sqrt()  # how many begin here, and the error bar
        """
        given = self._costs(*costs, **kinds)
        return self._batched(not_negative(self._covariance(given, given)))

    def covariance(self, a: Tensor | Mapping[str, object], b: Tensor | Mapping[str, object]) -> Tensor:
        """Return the covariance of two sums of costs of the parts of y.

        Args:
            a: costs as `expected` takes them: a tensor, or several kinds in a dict by the names of its arguments.
            b: likewise.
        """
        first, second = (self._costs(**each) if isinstance(each, Mapping) else self._costs(each) for each in (a, b))
        return self._batched(self._covariance(first, second))

    def entropy(self) -> Tensor:
        """H(p) = log Z - E[score], in nats; never below 0."""
        given = self._centred()
        return self._batched(not_negative(given._log_z - given._expected(given._scores)))

    # --- scores and probabilities of values ------------------------------------------------------------------

    def score(self, value: Any) -> Tensor:
        """The unnormalised log score of a value; -inf for a forbidden one."""
        return self._each(value, self._score_rows, check=True)

    def log_prob(self, value: Any) -> Tensor:
        """log p(value | x) = score(value) - log Z; -inf for a forbidden value, never above 0."""
        # [S2, tree distribution] is this for trees
        return self._each(value, self._log_prob_rows, check=not self._solver.validates_values)

    def _score_rows(self, values: Tensor) -> Tensor:
        solver: Solver = self._solver
        return solver.score(values)

    def _log_prob_rows(self, values: Tensor) -> Tensor | None:
        solver: Solver = self._solver
        return solver.log_prob(values)

    def _each(self, value: Any, query: Callable[[Tensor], Tensor | None], check: bool) -> Tensor:
        """Apply a query of values [rows, *event] to every sample of value."""
        values = self._read(value, check)
        n_lead = values.dim() - len(self.batch_shape) - len(self.event_shape)
        if not n_lead:
            return self._batched(self._explained(query(self._by_row(values)), values))
        lead = values.shape[:n_lead]
        samples = values.reshape(lead.numel(), *values.shape[n_lead:])
        results = [self._explained(query(self._by_row(each)), values) for each in samples]
        if not results:
            return torch.zeros((*lead, *self.batch_shape), dtype=self.dtype, device=values.device)
        return self._batched(torch.stack(results), len(results)).reshape((*lead, *self.batch_shape))

    def _explained(self, result: Tensor | None, values: Tensor) -> Tensor:
        """The result of a query, or an error that says which of the values is not one."""
        if result is None:
            self._read(values, True)
            raise AssertionError("a value that was refused is not explained")
        return result

    # --- values ----------------------------------------------------------------------------------------------

    @property
    def argmax(self) -> Value:
        """A value with the highest score; among ties the choice is the same every time."""
        if not self._best_by_tensors:
            bridge.require_numbers(f"the best {self._noun}")
        values, possible = self._solver.best()  # [S4.139]
        self._require_values(possible)
        return self._written(self._in_batch(values, ()))

    @property
    def mode(self) -> Value:  # type: ignore[override]  # torch has tensors only
        return self.argmax

    def top_k(self, k: int) -> tuple[Value, Tensor]:
        """The k best values and their scores, best first, without duplicates; -inf fills up where there are fewer."""
        k = check_k(k, self._noun)
        bridge.require_numbers(f"the {k} best {self._noun}s")
        values, totals = self._solver.top_k(self._n_best(k))
        exists, n_found = totals > -INF, len(totals)
        self._require_values(exists[0])
        values = torch.where(exists.reshape(*exists.shape, *[1] * (values.dim() - 2)), values, values[:1])
        scores = torch.where(exists, torch.stack([self._score_rows(each) for each in values]), -INF)
        values, scores = in_order(values, scores)
        written = self._written(self._in_batch(values, (n_found,)))
        return padded((written, self._batched(scores, n_found)), k)

    def _n_best(self, k: int) -> int:
        """k, or how many structures the largest row has if they are fewer. Only where k is large are they counted."""
        if k <= FEW or self._solver.finds_fewer:
            return k
        most = float(self.count.detach().max()) if self.batch_shape.numel() else 1.0
        return min(k, max(1, int(most * (1 + 1e-9)))) if most < k else k

    def sample(  # type: ignore[override]  # torch has tensors only
        self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None
    ) -> Value:
        """Exact independent samples, in the shape [*sample_shape, *batch]."""
        return self._written(self._sampled(sample_shape, generator))

    def _sampled(self, sample_shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        """Samples in their tensor form."""
        shape = check_sample_shape(sample_shape)
        bridge.require_numbers(f"sampling {self._noun}s")
        log_z = self._log_z.detach()
        require_finite_totals(log_z, lambda: self.count)
        self._require_values(log_z > -INF)
        return self._in_batch(self._solver.sample(shape.numel(), generator), shape)

    def _in_batch(self, values: Tensor, lead: Sequence[int]) -> Tensor:
        """Values [*lead, rows, *event] of the solvers, samples perhaps as one axis, in the caller's shape."""
        shape = (*lead, *self.batch_shape, *self.event_shape)
        return values if values.shape == shape else values.reshape(shape)

    def _require_values(self, possible: Tensor) -> None:
        if not bridge.values_are_hidden() and not bool(possible.all()):
            row = int((~possible.reshape(-1)).nonzero()[0])
            raise ConstraintError(f"row {row} has no {self._noun} with a score above -inf; {self._advice}")

    # --- other distributions ---------------------------------------------------------------------------------

    @abstractmethod
    def constrain(self, partial: Any = None) -> Self:
        """The same distribution restricted to the structures that agree with partial knowledge."""

    def log_prob_of_set(self, partial: Any) -> Tensor:
        """log p(y agrees with `partial` | x) = log Z(constrained) - log Z: the loss for partial labels."""  # [S4.131]
        return self._batched(log_ratio(self.constrain(partial)._log_z, self._log_z))

    def tempered(self, t: float) -> Self:
        """The same distribution with all scores divided by t: flatter above 1, sharper below; what is forbidden stays
        so."""
        if isinstance(t, bool) or not isinstance(t, int | float) or not 0 < t < INF:
            raise ScoreError(f"t must be a number above 0; got {t!r}; 1 changes nothing, less sharpens, more flattens")
        return self._divided(float(t))


register_kl(StructuredDistribution, StructuredDistribution)(divergence)


def _first(values: Tensor) -> str:
    """The first few numbers of a result."""
    flat = values.detach().reshape(-1)
    shown = ", ".join(f"{each:.6g}" for each in flat[:FEW_SHOWN].tolist())
    return shown + (f", ... ({len(flat):,})" if len(flat) > FEW_SHOWN else "")


def resolve_backend(backend: Backend, device: torch.device) -> Backend:
    """Return what computes on scores of a device; "auto" stays open on a device that kernels cannot read."""
    if backend not in ("auto", "kernel", "torch"):
        raise ScoreError(f'backend must be "auto", "kernel" or "torch"; got {backend!r}')
    if backend == "kernel" and device.type != "cpu":
        raise ScoreError(f'backend "kernel" runs on the CPU; the scores are on {device}; use "auto" or "torch"')
    if backend == "auto" and device.type != "cpu":
        return "torch" if bridge.must_stay(device) else "auto"
    if backend == "auto":
        return "torch" if bridge.out_of_reach() else "kernel"
    return backend


def uses_kernels(backend: Backend, scores: Tensor) -> bool:
    """Return whether kernels compute on these scores."""
    if backend == "auto":  # asked for every sentence that is decoded: without strings of devices
        return scores.is_cpu and not bridge.out_of_reach()
    return resolve_backend(backend, scores.device) == "kernel"
