"""L-BFGS for smooth objectives, and OWL-QN for those with an L1 term (Andrew & Gao 2007)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trelliswork.training import vector_kernels as vectors
from trelliswork.training.vector_kernels import dot

Array = np.ndarray[Any, Any]
Objective = Callable[[Array], tuple[float, Array]]
Pair = tuple[Array, Array, float]  # a step and the change of the gradient (float32: it only guides), and their product


@dataclass(frozen=True)
class Step:
    """Where an iteration ended. `loss` has the regularizers in it; `evaluations` counts all so far."""

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float
    n_active: int
    evaluations: int


@dataclass(frozen=True)
class LBFGS:
    """Minimises objective(w) + l2 ‖w‖² + l1 ‖w‖₁ (no ½, as CRFsuite has it).

    Stops when ‖gradient‖ < epsilon · max(1, ‖w‖), when the loss fell by less than `delta` (relative) over the last
    `period` iterations, or after `max_iterations`.

    Several processes that each look after a part of the weights share it out: the objective is given and returns parts,
    and `total` sums a number over all processes.
    """

    l2: float = 0.0
    l1: float = 0.0
    memory: int = 10
    epsilon: float = 1e-5
    delta: float = 1e-5
    period: int = 10
    max_iterations: int = 10_000
    max_line_search: int = 20
    total: Callable[[float], float] = float

    def minimise(self, objective: Objective, weights: Array) -> Iterator[Step]:
        """One `Step` an iteration; the last one is the result."""
        point = _Point(self, objective, weights.copy())
        pairs: deque[Pair] = deque()
        losses = [point.loss]
        evaluations = 1
        for iteration in range(1, self.max_iterations + 1):
            direction = self._two_loops(pairs, point.slope)
            if self.l1:
                vectors.keep_descent(direction, point.slope)  # stay in the orthant that the slope points into
            first = 1.0 / max(self._norm(point.slope), 1e-300) if not pairs else 1.0
            after, tries = self._search(objective, point, direction, first)
            evaluations += tries
            if after is None and pairs:  # a stale curvature: start again along the slope
                pairs.clear()
                continue
            if after is None:
                return
            self._remember(pairs, point, after)
            point = after
            losses.append(point.loss)
            norm = self._norm(point.slope)
            n_active = int(self.total(float(np.count_nonzero(point.weights))))
            yield Step(iteration, point.weights, point.loss, norm, n_active, evaluations)
            if norm < self.epsilon * max(1.0, self._norm(point.weights)):
                return
            if len(losses) > self.period and losses[-1 - self.period] - losses[-1] < self.delta * abs(losses[-1]):
                return

    def _remember(self, pairs: deque[Pair], point: _Point, after: _Point) -> None:
        """Add the step and the change of the gradient, in the room of the oldest pair if there is no more."""
        n, full = len(point.weights), len(pairs) == self.memory
        s, y = pairs.popleft()[:2] if full else (np.empty(n, np.float32), np.empty(n, np.float32))
        vectors.difference(after.weights, point.weights, s)
        vectors.difference(after.gradient, point.gradient, y)
        if (curvature := self.dot(s, y)) > 1e-300:
            pairs.append((s, y, curvature))

    def _search(self, objective: Objective, point: _Point, direction: Array, step: float) -> tuple[_Point | None, int]:
        """The first of step, step/2, ... that lowers the loss enough; with L1, steps are cut at sign changes.

        Without L1 a step that is too short for the curvature condition (Wolfe) is lengthened.
        """
        descent = self.dot(point.slope, direction)
        if descent >= 0:
            return None, 0
        low, high = 0.0, np.inf
        for tries in range(1, self.max_line_search + 1):
            weights = np.empty_like(direction)
            vectors.step_along(point.weights, step, direction, weights)
            if self.l1:
                vectors.stay_in_orthant(weights, point.weights, point.slope)
            after = _Point(self, objective, weights)
            wanted = (
                self.dot(point.slope, weights) - self.dot(point.slope, point.weights) if self.l1 else descent * step
            )
            if not after.loss <= point.loss + 1e-4 * wanted:
                high = step
            elif not self.l1 and self.dot(after.gradient, direction) < 0.9 * descent:
                low = step
            else:
                return after, tries
            step = (low + high) / 2 if high < np.inf else 2 * step
        return None, tries

    def dot(self, a: Array, b: Array) -> float:
        """The inner product of whole vectors, given the parts of this process."""
        return self.total(dot(a, b))

    def _norm(self, a: Array) -> float:
        return math.sqrt(self.dot(a, a))

    def _two_loops(self, pairs: deque[Pair], slope: Array) -> Array:
        """-H · slope, H the inverse Hessian that the last pairs (s, y) suggest."""
        direction: Array = -slope
        alphas = []
        for s, y, curvature in reversed(pairs):
            alphas.append(self.dot(s, direction) / curvature)
            vectors.add_scaled(direction, -alphas[-1], y)
        if pairs:
            _, y, curvature = pairs[-1]
            direction *= curvature / self.dot(y, y)
        for (s, y, curvature), alpha in zip(pairs, reversed(alphas), strict=True):
            vectors.add_scaled(direction, alpha - self.dot(y, direction) / curvature, s)
        return direction


class _Point:
    """Weights with the loss and its gradient there. `slope` is the direction of steepest ascent, L1 term included."""

    def __init__(self, settings: LBFGS, objective: Objective, weights: Array) -> None:
        loss, gradient = objective(weights)
        self.weights = weights
        self.loss = loss + settings.l2 * settings.dot(weights, weights)
        if settings.l1:
            self.loss += settings.l1 * settings.total(float(np.abs(weights).sum()))
        if settings.l2:
            vectors.add_scaled(gradient, 2 * settings.l2, weights)
        self.gradient = self.slope = gradient
        if settings.l1:
            self.slope = np.empty_like(gradient)
            vectors.pseudo_gradient(weights, gradient, settings.l1, self.slope)
