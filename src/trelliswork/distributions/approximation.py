"""Approximate queries of a factor graph that is too wide for exact answers, and the guarantees of each answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.factors import search, structure
from trelliswork.structures.factors.propagation import propagate

CERTAIN = 1e-6  # relative to the score: a smaller gap is rounding


@dataclass(frozen=True)
class Approximation:
    """An answer, how it was reached, and what is certain about it; None where a method has nothing to say.

    `estimate` is log Z as the method sees it or, of a search for the best, the score of `value`: then no assignment
    scores above `bound`, and `certified` says that `value` is a best one. Sampled marginals have a `standard_error`.
    """

    estimate: Float[Tensor, "*batch"] | None
    converged: Bool[Tensor, "*batch"]
    iterations: Int[Tensor, "*batch"]
    value: Int[Tensor, "*batch n"] | None = None
    marginals: Float[Tensor, "*batch n c"] | None = None
    bound: Float[Tensor, "*batch"] | None = None
    samples: Int[Tensor, "samples *batch n"] | None = None
    standard_error: Float[Tensor, "*batch n c"] | None = None

    @property
    def gap(self) -> Float[Tensor, "*batch"] | None:
        """Return by how much an assignment could still be better than `value`."""
        if self.bound is None or self.estimate is None:
            return None
        nothing = (self.bound == -INF) & (self.estimate == -INF)
        return torch.where(nothing, 0.0, self.bound - self.estimate).clamp(min=0.0)

    @property
    def certified(self) -> Bool[Tensor, "*batch"]:
        """True where `value` is known to be a best assignment."""
        if self.gap is None or self.estimate is None:
            return torch.zeros_like(self.converged)
        near = self.gap <= CERTAIN * self.estimate.abs().clamp(min=1.0)
        return near & ((self.estimate > -INF) | (self.bound == -INF))


class ApproximateQueries:
    """The approximate queries of `FactorGraph`, for any width. They need no junction tree."""

    _present: Tensor | None
    batch_shape: torch.Size
    event_shape: torch.Size

    _parts: Any
    _batched: Any

    def _shaped(self, result: Tensor) -> Tensor:
        """Return [rows, ...] in the caller's batch shape; whole numbers and truths keep their type."""
        return result.reshape((*self.batch_shape, *result.shape[1:]))

    def _mask_absent(self, marginals: Float[Tensor, "rows n c"]) -> Tensor:
        """Return marginals in the caller's shape, 0 where a row does not have the variable."""
        return self._batched(marginals if self._present is None else marginals * self._present[..., None])

    def propagate(
        self, *, best: bool = False, damping: float = 0.0, tolerance: float = 1e-8, max_iterations: int = 500
    ) -> Approximation:
        """Run loopy belief propagation: sum-product, or max-product if `best`. Exact on graphs without loops.

        `estimate` is the Bethe approximation of log Z, differentiable: once converged its gradient by the scores is the
        beliefs, so that it can be trained on. With `best` it is the score of `value`; there is no bound. `damping` in
        [0, 1) is how much of the old message stays: 0.5 helps where messages swing to and fro.

        Args:
            best: whether messages are maxima instead of sums.
            damping: the share of the old message that is kept, in [0, 1).
            tolerance: the largest change of a message at which a row is at rest.
            max_iterations: rounds of messages after which rows are left as they are.

        Returns:
            Beliefs [*batch, n, c], the estimate [*batch], and which rows came to rest.
        """
        if not 0.0 <= damping < 1.0:
            raise ScoreError(f"damping must lie in [0, 1); got {damping}; 0 takes each new message as it is")
        parts = self._parts
        run = propagate(parts, best=best, damping=damping, tolerance=tolerance, max_iterations=max_iterations)
        converged, iterations = self._shaped(run.converged), self._shaped(run.iterations)
        if best:
            values = run.beliefs.argmax(-1)
            score = self._batched(structure.path_score(parts, values))
            return Approximation(score, converged, iterations, value=self._shaped(values))
        top = run.beliefs.amax(-1, keepdim=True)
        log_beliefs = run.beliefs - torch.where(top > -INF, top, 0.0)
        weights = log_beliefs.exp()
        beliefs = weights / weights.sum(-1, keepdim=True).clamp(min=1e-300)
        return Approximation(self._batched(run.log_z), converged, iterations, marginals=self._mask_absent(beliefs))

    def gibbs(
        self,
        n_samples: int = 1000,
        *,
        chains: int = 4,
        burn_in: int = 200,
        thin: int = 1,
        generator: torch.Generator | None = None,
    ) -> Approximation:
        """Run Gibbs sampling: `n_samples` assignments from `chains` chains, each `thin` sweeps apart.

        Geman and Geman (1984), "Stochastic Relaxation, Gibbs Distributions, and the Bayesian Restoration of Images".

        `marginals` are means of conditionals with their `standard_error` between chains; `value` is the best assignment
        kept. `converged` says that chains differ no more than sweeps within a chain do (R-hat below 1.05). Hard
        constraints can keep chains apart, each in its own corner: look at it before you believe the marginals.

        Args:
            n_samples: assignments that are kept, of all chains together.
            chains: how many start apart, two or more.
            burn_in: sweeps of each chain that are not kept.
            thin: sweeps from one assignment that is kept to the next.
            generator: of the random numbers; torch's own if not given.

        Returns:
            Marginals [*batch, n, c] with their standard errors, the best assignment [*batch, n] and its score [*batch].
        """  # [S4.112]
        if chains < 2 or n_samples < chains or burn_in < 0 or thin < 1:
            raise ScoreError(
                "gibbs needs chains >= 2, n_samples >= chains, burn_in >= 0 and thin >= 1; "
                f"got {chains}, {n_samples}, {burn_in} and {thin}"
            )
        n_kept = -(-n_samples // chains)
        run = search.gibbs(
            self._parts, n_kept, n_chains=chains, burn_in=burn_in, thin=thin, generator=generator
        )  # fmt: skip
        self._require_possible(run.scores)
        between = run.means.var(1) if len(run.means) else run.means[:, 0]
        within = run.variances.mean(1)
        r_hat_squared = 1 + torch.where(between <= 1e-12, 0.0, between / within.clamp(min=1e-300))
        rows, n = len(run.samples), self.event_shape[0]
        scores, best = run.scores.flatten(1).max(1)
        flat = run.samples.flatten(1, 2)
        samples = flat[:, :n_samples].movedim(1, 0).reshape(n_samples, *self.batch_shape, n)
        return Approximation(
            self._batched(scores),
            self._shaped(r_hat_squared.flatten(1).amax(1) < 1.05**2),
            self._shaped(torch.full((rows,), burn_in + run.n_sweeps, device=flat.device)),
            value=self._shaped(flat[torch.arange(rows, device=flat.device), best]),
            marginals=self._mask_absent(run.means.mean(1)),
            samples=samples,
            standard_error=self._mask_absent((between / chains).sqrt()),
        )

    def _require_possible(self, scores: Float[Tensor, "rows chains kept"]) -> None:
        impossible = (scores == -INF).flatten(1).any(1)
        if bool(impossible.any()):
            raise ConstraintError(
                f"row {int(impossible.nonzero()[0])}: a chain found no assignment with a score above -inf in burn_in; "
                "raise burn_in, or loosen the constraints: ad3() or argmax show whether there is any"
            )

    def ad3(self, *, max_iterations: int = 1000, tolerance: float = 1e-7) -> Approximation:
        """Return a best assignment by alternating directions dual decomposition, with an upper bound on every score.

        Martins et al. (2015), "AD3: Alternating Directions Dual Decomposition for MAP Inference in Graphical Models".

        `certified` where the bound is reached: always on graphs without loops, given the iterations, and elsewhere
        whenever the linear relaxation is tight. `marginals` is the solution of the relaxation: 0 or 1 where it is. A
        row in which nothing possible was found has an estimate of -inf. It ends when the gap, relative to the score, is
        below `tolerance`.
        """  # [S4.286]
        run = search.ad3(self._parts, max_iterations=max_iterations, tolerance=tolerance)
        values = run.values if self._present is None else torch.where(self._present, run.values, 0)
        return Approximation(
            self._batched(run.scores), self._shaped(run.ended), self._shaped(run.iterations),
            value=self._shaped(values), marginals=self._mask_absent(run.relaxed), bound=self._batched(run.bounds),
        )  # fmt: skip
