"""L-BFGS for smooth objectives, and OWL-QN for those with an L1 term (Andrew & Gao 2007)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.training import vector_kernels as vectors

Objective = Callable[[Array], tuple[float, Array]]
Sums = Callable[[Array], Array]  # of each number over all processes


def _alone(numbers: Array) -> Array:
    return numbers


def dot(a: Array, b: Array) -> float:
    """Return Σ a b, without the threads that `np.dot` may use."""
    return float(np.einsum("i,i", a, b))


@dataclass(frozen=True)
class Step:
    """State at the end of an iteration. `loss` has the regularizers in it; `evaluations` counts all so far."""

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float
    n_active: int
    evaluations: int


@dataclass(frozen=True)
class LBFGS:
    """Minimises objective(w) + l2 ‖w‖² + l1 ‖w‖₁ (no ½, as in CRFsuite).

    Stops when ‖gradient‖ < epsilon · max(1, ‖w‖), when the loss fell by less than `delta` (relative) over the last
    `period` iterations, or after `max_iterations`.

    Several processes that each look after a part of the weights share it out: the objective is given and returns parts,
    and `sums` adds numbers over all processes, which wait for each other there: it is called as rarely as possible.
    """

    l2: float = 0.0
    l1: float = 0.0
    memory: int = 10
    epsilon: float = 1e-5
    delta: float = 1e-5
    period: int = 10
    max_iterations: int = 10_000
    max_line_search: int = 20
    sums: Sums = _alone

    def minimise(self, objective: Objective, weights: Array) -> Iterator[Step]:
        """Yield one `Step` an iteration; the last one is the result."""
        point = _Point(self, objective, weights.copy())
        history = _History(self.memory, len(weights), self.sums)
        losses = [point.loss]
        evaluations = 1
        for iteration in range(1, self.max_iterations + 1):
            direction = history.direction(point.slope)
            if self.l1:
                vectors.keep_descent(direction, point.slope)  # stay in the orthant that the slope points into
            first = 1.0 if history else 1.0 / max(point.slope_norm, 1e-300)
            after, tries = self._search(objective, point, direction, first)
            evaluations += tries
            if after is None and history:  # a stale curvature: start again along the slope
                history.clear()
                continue
            if after is None:
                return
            history.add(point, after)
            point = after
            losses.append(point.loss)
            yield Step(iteration, point.weights, point.loss, point.slope_norm, point.n_active, evaluations)
            if point.slope_norm < self.epsilon * max(1.0, point.norm):
                return
            if len(losses) > self.period and losses[-1 - self.period] - losses[-1] < self.delta * abs(losses[-1]):
                return

    def _search(self, objective: Objective, point: _Point, direction: Array, step: float) -> tuple[_Point | None, int]:
        """Return the first of step, step/2, ... that lowers the loss enough; with L1, steps are cut at sign changes.

        Without L1 a step that is too short for the curvature condition (Wolfe) is lengthened.
        """
        descent = self._total(dot(point.slope, direction))
        if descent >= 0:
            return None, 0
        low, high = 0.0, np.inf
        for tries in range(1, self.max_line_search + 1):
            weights = step * direction
            weights += point.weights
            if self.l1:
                vectors.stay_in_orthant(weights, point.weights, point.slope)
            after = _Point(self, objective, weights, direction)
            wanted = self._total(dot(point.slope, weights - point.weights)) if self.l1 else descent * step
            if not after.loss <= point.loss + 1e-4 * wanted:
                high = step
            elif not self.l1 and after.along < 0.9 * descent:
                low = step
            else:
                return after, tries
            step = (low + high) / 2 if high < np.inf else 2 * step
        return None, tries

    def _total(self, number: float) -> float:
        return float(self.sums(np.array([number]))[0])


class _Point:
    """Weights with the loss and its gradient there. `slope` is the direction of steepest ascent, L1 term included.

    `along` is the product of the gradient with the direction that led here.
    """

    def __init__(self, settings: LBFGS, objective: Objective, weights: Array, direction: Array | None = None) -> None:
        loss, gradient = objective(weights)
        if settings.l2:
            gradient += 2 * settings.l2 * weights
        self.weights, self.gradient, self.slope = weights, gradient, gradient
        if settings.l1:
            self.slope = np.empty_like(gradient)
            vectors.pseudo_gradient(weights, gradient, settings.l1, self.slope)
        along = 0.0 if direction is None else dot(gradient, direction)
        size = float(np.abs(weights).sum()) if settings.l1 else 0.0
        totals = settings.sums(
            np.array([dot(weights, weights), size, np.count_nonzero(weights), dot(self.slope, self.slope), along])
        )
        squares, size, n_active, slope_squares, self.along = totals.tolist()
        self.loss = loss + settings.l2 * squares + settings.l1 * size
        self.norm, self.slope_norm, self.n_active = math.sqrt(squares), math.sqrt(slope_squares), int(n_active)


class _History:
    """The last steps s and changes of the gradient y (float32: they only guide), and their inner products.

    The two loops need no more of the vectors than their inner products, and what they return is a sum of these vectors
    (Chen, Wang & Zhou 2014, Large-scale L-BFGS using MapReduce): one exchange of numbers for each direction.
    """

    def __init__(self, memory: int, n: int, sums: Sums) -> None:
        self._s, self._y = np.empty((memory, n), np.float32), np.empty((memory, n), np.float32)
        self._sy, self._yy = np.empty((memory, memory)), np.empty((memory, memory))  # s_i · y_j, y_i · y_j
        self._places = list[int]()  # of the pairs, the oldest first
        self._sums = sums

    def __len__(self) -> int:
        return len(self._places)

    def clear(self) -> None:
        """Forget all pairs."""
        self._places.clear()

    def add(self, before: _Point, after: _Point) -> None:
        """Keep a step and the change of the gradient, in place of the oldest pair if there is no room."""
        if len(self) == len(self._s):
            self._places.pop(0)
        place = next(i for i in range(len(self._s)) if i not in self._places)
        s, y = self._s[place], self._y[place]
        np.subtract(after.weights, before.weights, out=s, casting="same_kind")
        np.subtract(after.gradient, before.gradient, out=y, casting="same_kind")
        n = max([*self._places, place]) + 1
        products = np.empty((3, n))
        for out, matrix, vector in zip(products, (self._s, self._y, self._y), (y, s, y), strict=True):
            vectors.products(matrix, vector.astype(np.float64), out)
        products = self._sums(products)
        if products[0, place] > 1e-300:
            self._sy[:n, place], self._sy[place, :n], self._yy[:n, place] = products
            self._yy[place, :n] = products[2]
            self._places.append(place)

    def direction(self, slope: Array) -> Array:
        """Return -H · slope, H the inverse Hessian that the last pairs (s, y) suggest."""
        direction: Array = -slope
        if not self._places:
            return direction
        order = np.array(self._places)
        n = order.max() + 1
        local = np.empty((2, n))
        vectors.products(self._s, slope, local[0])
        vectors.products(self._y, slope, local[1])
        s_slope, y_slope = self._sums(local)[:, order]
        sy, yy = self._sy[np.ix_(order, order)], self._yy[np.ix_(order, order)]
        alpha, of_s = np.zeros(len(order)), np.zeros(len(order))
        for i in reversed(range(len(order))):  # α_i = s_i · (-slope - Σ_j α_j y_j) / s_i · y_i
            alpha[i] = (-s_slope[i] - sy[i] @ alpha) / sy[i, i]
        scale = sy[-1, -1] / yy[-1, -1]
        for i in range(len(order)):  # β_i = y_i · (scale (-slope - Σ_j α_j y_j) + Σ_j (α_j - β_j) s_j) / s_i · y_i
            beta = (scale * (-y_slope[i] - yy[i] @ alpha) + of_s @ sy[:, i]) / sy[i, i]
            of_s[i] = alpha[i] - beta
        direction *= scale
        vectors.add_rows(direction, self._s, order, of_s)
        vectors.add_rows(direction, self._y, order, -scale * alpha)
        return direction
