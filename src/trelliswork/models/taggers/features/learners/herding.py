"""Conditional herding: weights that never settle, whose predictions have the right averages.

An update adds the features of the gold labels and takes off those of the best labels of the moment. The weights stay
bounded (the perceptron cycling theorem, see `cycling`), so that the averages of both kinds of features come together
as fast as 1/T. It is the predictions along the way that have these averages: the theory asks for their votes, which
`votes` counts, given the weights of some moments. The average of the weights is the cheap stand-in: one decoding of a
sentence instead of one for each voter.

Gelfand, Chen, van der Maaten and Welling (2010), On herding and the perceptron cycling theorem.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.herding import herding_epoch
from trelliswork.models.taggers.features.kernels.records import Moving
from trelliswork.models.taggers.features.learners.base import Corpus, Progress
from trelliswork.models.taggers.features.learners.cycling import Trajectory
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
        """One `HerdingEpoch` a pass; weights are those of `hidden_parameters(parameters, hidden)`."""
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
