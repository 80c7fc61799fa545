"""Errata 29 and 30: what a perceptron step and the cycling theorem say, and what z is in conditional herding."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.models.taggers.features.learners.herding import Trajectory


def perceptron(points: np.ndarray, labels: np.ndarray, steps: int) -> tuple[np.ndarray, list[int]]:
    """w ← w + x (y - ŷ) with labels ±1: the change x (y - ŷ) of every sample met, and where there was a mistake."""
    random, w = np.random.default_rng(0), np.zeros(points.shape[1])
    changes, mistakes = [], []
    for t in range(steps):
        i = random.integers(len(points))
        change = points[i] * (labels[i] - (1 if w @ points[i] >= 0 else -1))
        w = w + change
        changes.append(change)
        if change.any():
            mistakes.append(t)
    return np.array(changes), mistakes


def test_a_step_moves_the_score_by_twice_the_square() -> None:
    """Erratum 29: with labels ±1, y - ŷ is ±2, and the score of x comes closer by 2‖x‖², not by ‖x‖²."""
    random = np.random.default_rng(1)
    for _ in range(20):
        w, x = random.normal(size=4), random.normal(size=4)
        predicted = 1 if w @ x >= 0 else -1
        after = w + x * (-predicted - predicted)  # [S4.221] after a mistake
        moved = -predicted * (after @ x - w @ x)
        assert moved == pytest.approx(2 * x @ x)
        assert moved != pytest.approx(x @ x)


def test_the_moments_are_over_all_samples() -> None:
    """Erratum 29: N counts every sample met. Where mistakes end, an average over mistakes alone stays where it is."""
    random = np.random.default_rng(2)
    points = random.normal(size=(30, 3))
    separable = np.where(points @ np.array([1.0, -2.0, 0.5]) >= 0, 1, -1)
    changes, mistakes = perceptron(points, separable, 20_000)
    assert mistakes[-1] < 10_000
    over_all = [np.linalg.norm(changes[:n].mean(0)) for n in (10_000, 20_000)]
    assert over_all[1] == pytest.approx(over_all[0] / 2)
    over_mistakes = [np.linalg.norm(changes[[t for t in mistakes if t < n]].mean(0)) for n in (10_000, 20_000)]
    assert over_mistakes[1] == pytest.approx(over_mistakes[0])
    assert over_mistakes[1] > 0.1


def test_without_a_separating_line_the_weights_stay_bounded() -> None:
    """Erratum 29: over all samples the two means come together as 1/N, also if mistakes never end."""
    random = np.random.default_rng(3)
    points, labels = random.normal(size=(30, 3)), random.choice([-1, 1], 30)
    changes, mistakes = perceptron(points, labels, 40_000)
    assert mistakes[-1] > 39_000
    trajectory = Trajectory()
    for n in range(1000, 40_001, 1000):
        trajectory = trajectory.then(n, float(np.linalg.norm(changes[:n].sum(0))), -1.0, 1.0)
    assert trajectory.verdict == "bounded"
    assert trajectory.moment_error < 1e-3


def loss(w: np.ndarray, phi: np.ndarray, y: int) -> float:
    """max over (y', z) less max over z given y: what conditional herding descends on. φ is [y, z, d]."""
    scores = phi @ w
    return float(scores.max() - scores[y].max())


def test_hidden_values_of_the_data_are_the_best_given_the_label() -> None:
    """Erratum 30: with z = argmax of w · φ(x, y, z) the step is a descent direction's; with the z of the joint argmax,
    as the unmarked z of 230 may be read, it is not."""
    random, step, differed = np.random.default_rng(4), 1e-6, 0
    for _ in range(200):
        w, phi, y = random.normal(size=5), random.normal(size=(3, 4, 5)), int(random.integers(3))
        scores = phi @ w
        y_star, z_star = np.unravel_index(scores.argmax(), scores.shape)
        right = phi[y, scores[y].argmax()] - phi[y_star, z_star]
        literal = phi[y, z_star] - phi[y_star, z_star]
        slope = np.array([loss(w + step * e, phi, y) - loss(w - step * e, phi, y) for e in np.eye(5)]) / (2 * step)
        np.testing.assert_allclose(-right, slope, atol=1e-6)
        if y_star != y and scores[y].argmax() != z_star:
            assert np.abs(-literal - slope).max() > 1e-3
            differed += 1
    assert differed > 50


def test_labels_and_hidden_values_are_maximised_together() -> None:
    """Erratum 30: (y*, z*) is one maximum. If y* is the best label for the z of the data, mistakes go unseen."""
    random, unseen = np.random.default_rng(5), 0
    for _ in range(300):
        w, phi, y = random.normal(size=5), random.normal(size=(3, 4, 5)), int(random.integers(3))
        scores = phi @ w
        predicted = int(scores.max(1).argmax())
        apart = int(scores[:, scores[y].argmax()].argmax())
        together, _ = np.unravel_index(scores.argmax(), scores.shape)
        assert together == predicted
        unseen += apart == y != predicted
    assert unseen > 10
