"""Conditional herding: weights that never settle, whose predictions have the right averages.

An update adds the features of the gold labels and takes off those of the best labels of the moment. The weights stay
bounded (the perceptron cycling theorem, see `Trajectory`), so that the averages of both kinds of features come together
as fast as 1/T. It is the predictions along the way that have these averages: the theory asks for their votes, which
`votes` counts, given the weights of some moments. The average of the weights is the cheap stand-in: one decoding of a
sentence instead of one for each voter.

Gelfand, Chen, van der Maaten and Welling (2010), On herding and the perceptron cycling theorem.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.herding import herding_epoch
from trelliswork.models.taggers.features.kernels.records import Moving
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.runtime.arrays import Array


@dataclass(frozen=True, kw_only=True)
class HerdingEpoch(Progress):
    """With the weights now (`weights` are their average so far), and how far they have gone; loss: wrong labels."""

    now: Array
    trajectory: Trajectory


@dataclass(frozen=True)
class Herding:
    """Passes over the sentences in random order, `batch` of them at a time.

    Every label has `hidden` states, with weights of their own; which one holds is never seen but maximised over.
    Weights begin at 0, with hidden states at random numbers of that `spread`. Only then does the `rate` matter: from 0,
    it scales all weights alike. Passes end after `max_epochs`, or when one has no mistake.
    The weights after each of the last `samples` epochs are kept, to vote.

    Gelfand et al. (2010), On herding and the perceptron cycling theorem.
    """

    # [S4.230]
    max_epochs: int = 50
    batch: int = 1
    rate: float = 1.0
    hidden: int = 1
    spread: float = 1.0
    seed: int = 0
    samples: int = 0

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch", "hidden"):
            if getattr(self, name) < 1:
                raise ScoreError(f"{name} must be at least 1; got {getattr(self, name)}")
        if not 0 < self.rate < np.inf:
            raise ScoreError(f"rate must be above 0 and finite; got {self.rate:g}")

    def learn(self, corpus: Corpus, parameters: Parameters) -> Iterator[HerdingEpoch]:
        """Yield one `HerdingEpoch` a pass; weights are those of `hidden_parameters(parameters, hidden)`."""
        rows, gold, parameters = corpus.rows, corpus.gold, hidden_parameters(parameters, self.hidden)
        random = np.random.default_rng(self.seed)
        start = self.spread * random.normal(size=len(parameters)) if self.hidden > 1 else np.zeros(len(parameters))
        weights, sums, clock = start.copy(), np.zeros(len(parameters)), 1.0
        moving = Moving(weights, sums, np.empty(0))
        order, trajectory = np.flatnonzero(rows.lengths), Trajectory()
        voters: deque[Array] = deque(maxlen=self.samples)
        for number in range(1, self.max_epochs + 1):
            random.shuffle(order)
            clock, n_wrong, product, square = herding_epoch(
                order, rows.arrays, parameters.weight_index, gold, moving, clock, self.rate, self.batch, self.hidden
            )  # fmt: skip
            gone = float(np.linalg.norm(weights - start)) / self.rate
            trajectory = trajectory.then(int(clock) - 1, gone, product, float(np.sqrt(square)))
            now = weights.copy()
            voters.append(now)
            yield HerdingEpoch(
                number, weights - sums / clock, n_wrong / max(len(gold), 1), now=now, trajectory=trajectory,
                measures={"moment error": trajectory.moment_error}, samples=np.array(voters) if voters else None,
            )  # fmt: skip
            if n_wrong == 0:
                return


def hidden_parameters(parameters: Parameters, hidden: int) -> Parameters:
    """Return the same pairs with each label split into `hidden` states, which count as labels of their own."""
    split = replace(parameters, pairs=None).with_latent(hidden)
    return replace(split, latent=1)


def votes(
    rows: AttributeRows, parameters: Parameters, members: Sequence[Array], n_labels: int, hidden: int = 1
) -> Array:
    """Return the share of the weight vectors that predict each label: [tokens, n_labels].

    A member votes with the labels of its best path over states, (y*, z*) of conditional herding.

    Args:
        rows: attributes of the tokens.
        parameters: the weights that there are.
        members: weight vectors.
        n_labels: number of labels.
        hidden: hidden states of each label.

    Returns:
        Shares [tokens, n_labels].
    """
    # [S4.230]
    if not members:
        raise ScoreError("members must be at least one weight vector; got none")
    names = tuple(map(str, range(parameters.n_labels * hidden)))
    shares, split = np.zeros((rows.n_tokens, n_labels)), hidden_parameters(parameters, hidden)
    for weights in members:
        model = FeatureCRF(names, KeyIndex(), split, weights)
        labels = [int(state) // hidden for path in model.predict(rows) for state in path]
        shares[np.arange(rows.n_tokens), labels] += 1.0 / len(members)
    return shares


# The perceptron cycling theorem as a check: do the weights of an online learner stay bounded?
#
# Steps v_t of bounded length with w_t · v_t ≤ 0 keep ‖w_t - w_0‖ below some bound M, and then the mean step, which is
# what the averages of gold and predicted features differ by, is at most M / T [S4.222].


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
        """Return the trajectory with one more record.

        Args:
            step: steps so far.
            distance: ‖w - w_0‖ in steps of rate 1.
            product: the highest w · v since the last record.
            length: the longest v since then.

        Returns:
            The trajectory with the record.
        """
        highest, longest = max(self.highest_product, product), max(self.longest_step, length)
        return Trajectory((*self.steps, step), (*self.distances, distance), highest, longest)

    @property
    def moment_error(self) -> float:
        """‖mean of gold features - mean of predicted features‖ over all T steps, right ones included."""
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
        """Summary of the weights: they no longer move, stay bounded, still go on but slower than T, or as fast as that.

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
    -w · φ; each step takes the state of lowest energy and moves w by the data's average features less its own, hidden
    values of the data being the best ones for w.

    Args:
        features: [x, d], or [x, z, d].
        data: probabilities [x].
        steps: how many states to draw.
        start: the first weights, [d]; 0 if None.

    Returns:
        The draws.

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
