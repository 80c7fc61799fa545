"""L-BFGS and OWL-QN: the optimum of quadratics, where it is known."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.training.lbfgs import LBFGS, Objective, Step, _History, _Point


def quadratic(matrix: np.ndarray, centre: np.ndarray) -> Objective:
    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        slope = matrix @ (w - centre)
        return 0.5 * float((w - centre) @ slope), slope

    return objective


def last(learner: LBFGS, objective: Objective, n: int) -> Step:
    *_, step = learner.minimise(objective, np.zeros(n))
    return step


@pytest.mark.parametrize("memory", [1, 6, 20])
def test_quadratic_with_l2(memory: int) -> None:
    random = np.random.default_rng(0)
    root, centre = random.normal(size=(12, 12)), random.normal(size=12)
    matrix = root @ root.T + np.eye(12)
    step = last(LBFGS(l2=0.5, memory=memory, delta=0.0, epsilon=1e-9), quadratic(matrix, centre), 12)
    wanted = np.linalg.solve(matrix + np.eye(12), matrix @ centre)
    np.testing.assert_allclose(step.weights, wanted, atol=1e-7)


def test_soft_threshold() -> None:
    """For a diagonal quadratic the optimum with L1 is known: each weight shrinks by l1 / curvature, down to 0."""
    random = np.random.default_rng(1)
    curvature, centre, l1 = random.uniform(0.5, 4, 40), random.normal(size=40), 0.8
    objective = quadratic(np.diag(curvature), centre)
    step = last(LBFGS(l1=l1, delta=0.0, epsilon=1e-9, max_iterations=200), objective, 40)
    wanted = np.sign(centre) * np.maximum(np.abs(centre) - l1 / curvature, 0)
    np.testing.assert_allclose(step.weights, wanted, atol=1e-6)
    assert 0 < step.n_active == np.count_nonzero(wanted) < 40


def test_stops_when_the_loss_no_longer_falls() -> None:
    random = np.random.default_rng(2)
    curvature = np.geomspace(1e-4, 1e4, 50)
    objective = quadratic(np.diag(curvature), random.normal(size=50))
    assert last(LBFGS(delta=0.5), objective, 50).iteration < last(LBFGS(delta=1e-12), objective, 50).iteration


def test_the_gradient_of_the_caller_may_be_read_again() -> None:
    """Steps keep their own weights: those of an earlier one do not change."""
    steps = list(LBFGS(l2=0.1).minimise(quadratic(np.diag([1.0, 9.0, 30.0]), np.ones(3)), np.zeros(3)))
    kept = [step.weights.copy() for step in steps]
    assert len({tuple(w) for w in kept}) == len(steps)
    assert all((step.weights == w).all() for step, w in zip(steps, kept, strict=True))


def two_loops(pairs: list[tuple[np.ndarray, np.ndarray]], slope: np.ndarray) -> np.ndarray:
    """-H · slope over the vectors themselves (Nocedal & Wright 2006, Numerical optimization, algorithm 7.4)."""
    found, alphas = -slope, []
    for s, y in reversed(pairs):
        alphas.append(s @ found / (s @ y))
        found = found - alphas[-1] * y
    s, y = pairs[-1]
    found = found * (s @ y) / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        found = found + (alpha - y @ found / (s @ y)) * s
    return found


@pytest.mark.parametrize("n_steps", [1, 3, 4, 11])
def test_directions_are_those_of_the_two_loops(n_steps: int) -> None:
    """Of 3,000 weights, more than a block, with room for four pairs, and one step that must not be kept."""
    random, n = np.random.default_rng(n_steps), 3000
    curvature = np.geomspace(0.1, 10, n)
    settings = LBFGS(memory=4)
    history, kept = _History(4, n, settings.sums), list[tuple[np.ndarray, np.ndarray]]()
    point = _Point(settings, quadratic(np.diag(curvature), random.normal(size=n)), random.normal(size=n))
    for i in range(n_steps):
        after = _Point(settings, quadratic(np.diag(curvature), np.zeros(n)), point.weights + random.normal(size=n))
        after.gradient = point.gradient + (-1 if i == 2 else 1) * curvature * (after.weights - point.weights)
        history.add(point, after)
        if i != 2:  # there the gradient falls along the step
            pair = after.weights - point.weights, after.gradient - point.gradient
            kept = [*kept, tuple(each.astype(np.float32).astype(float) for each in pair)][-4:]  # type: ignore[list-item]
        else:
            kept = kept[-3:]
        point = after
    assert len(history) == len(kept)
    slope = random.normal(size=n)
    np.testing.assert_allclose(history.direction(slope), two_loops(kept, slope), atol=1e-9)
    history.clear()
    np.testing.assert_array_equal(history.direction(slope), -slope)
