"""The perceptron cycling theorem as a check: do the weights of an online learner stay bounded?

Steps v_t of bounded length with w_t · v_t ≤ 0 keep ‖w_t - w_0‖ below some bound M, and then the mean step, which is
what the averages of gold and predicted features differ by, is at most M / T.

Gelfand, Chen, van der Maaten and Welling (2010), On herding and the perceptron cycling theorem.
"""  # [S4.222]

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array

Verdict = Literal["at rest", "bounded", "slowing", "growing", "too short to tell"]
ENOUGH = 6  # records
BOUNDED, GROWING = 0.2, 0.9  # of the p in T^p; a random walk has 0.5, steps in one direction 1


@dataclass(frozen=True)
class Trajectory:
    """‖w_T - w_0‖ (in steps of rate 1) after T steps, for some T; the highest w · v and the longest v so far."""

    steps: tuple[int, ...] = ()
    distances: tuple[float, ...] = ()
    highest_product: float = -np.inf
    longest_step: float = 0.0

    def then(self, step: int, distance: float, product: float, length: float) -> Trajectory:
        """With one more record."""
        highest, longest = max(self.highest_product, product), max(self.longest_step, length)
        return Trajectory((*self.steps, step), (*self.distances, distance), highest, longest)

    @property
    def moment_error(self) -> float:
        """Return ‖mean of gold features - mean of predicted features‖ over all T steps, right ones included."""
        # [S4.222]
        return self.distances[-1] / self.steps[-1] if self.steps else float("nan")

    @property
    def growth(self) -> float:
        """The p of distance ~ T^p, fitted to the later half of the records; the moment error falls as T^(p - 1)."""
        later = slice(len(self.steps) // 2, None)
        steps, distances = np.array(self.steps[later], float), np.array(self.distances[later])
        known = distances > 0
        if known.sum() < 2:
            return 0.0
        return float(np.polyfit(np.log(steps[known]), np.log(distances[known]), 1)[0])

    @property
    def verdict(self) -> Verdict:
        """True if the weights no longer move, stay bounded, still go on but slower than T, or as fast as that.

        The bound of the theorem may take long to be felt; "slowing" already makes the moment error fall.
        """
        if len(self.steps) < ENOUGH:
            return "too short to tell"
        later = self.distances[len(self.distances) // 2 :]
        if max(later) == min(later):
            return "at rest"
        return "bounded" if self.growth < BOUNDED else "slowing" if self.growth < GROWING else "growing"

    @property
    def satisfies_the_condition(self) -> bool:
        """No step had w · v above 0 (but for rounding): what the theorem asks of them."""
        return self.highest_product <= 1e-9 * max(1.0, self.longest_step) * max(1.0, *self.distances)


@dataclass(frozen=True)
class Herded:
    """The draws of herding: states [steps] with hidden values [steps], and the weights after each step [steps, d]."""

    states: Array
    hidden: Array
    weights: Array


def herd(features: Array, data: Array, steps: int, start: Array | None = None) -> Herded:
    """Draw states whose average features are those of the data, without random numbers.

    `features` are φ(x) [x, d], or φ(x, z) [x, z, d] with values z that are not seen; `data` is p_data(x). The energy is
    -w · φ; each step takes the state of lowest energy and moves w by the data's average features
    less its own, hidden values of the data being the best ones for w.

    >>> herd(np.eye(2), np.array([0.5, 0.5]), 4).states
    array([0, 1, 0, 1])
    """
    # [S4.223-229]
    phi = features[:, None] if features.ndim == 2 else features
    if phi.ndim != 3 or data.shape != phi.shape[:1]:
        raise ScoreError(f"features must be [x, d] or [x, z, d] and data [x]; got {features.shape} and {data.shape}")
    if not (data >= 0).all() or abs(data.sum() - 1) > 1e-9:
        raise ScoreError(f"data must be probabilities that sum to 1; got {data.tolist()}")
    w = np.zeros(phi.shape[2]) if start is None else start.astype(float)
    taken = list(_herd(phi, data, w, steps))
    states, hidden, weights = zip(*taken, strict=True) if taken else ((), (), ())
    return Herded(np.array(states, int), np.array(hidden, int), np.array(weights).reshape(steps, phi.shape[2]))


def _herd(phi: Array, data: Array, w: Array, steps: int) -> Iterator[tuple[int, int, Array]]:
    rows = np.arange(len(phi))
    for _ in range(steps):
        scores = phi @ w
        best_hidden = scores.argmax(1)
        wanted = data @ phi[rows, best_hidden]
        x, z = np.unravel_index(scores.argmax(), scores.shape)
        w = w + wanted - phi[x, z]
        yield int(x), int(z), w
