"""Weights drawn from p(w | data) ∝ exp(-Σ -log p - c2 ‖w‖²): what a Bayesian CRF averages over.

*Laplace* draws each weight from a normal distribution around the optimum, as narrow as the loss is curved there: free
of cost, and blind to how weights depend on one another. *Hamiltonian* Monte Carlo walks through the true posterior with
exact gradients; samples of it are right whatever the posterior's shape, after enough steps.

Qi, Szummer and Minka (2005), Bayesian conditional random fields.
"""  # [S4.140]

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from trelliswork.data.attributes import AttributeRows, KeyIndex
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.induction import add_variances
from trelliswork.models.taggers.features.learners.config import Method
from trelliswork.runtime.arrays import Array
from trelliswork.training.lbfgs import Objective

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


def curvature(rows: AttributeRows, parameters: Parameters, weights: Array) -> Array:
    """Return the diagonal of the Hessian of Σ -log p: the variance of each feature, summed over tokens.

    Tokens of a sentence are taken for independent here; it is exact for features that occur once in a sentence.

    Args:
        rows: attributes of the tokens.
        parameters: the weights that there are.
        weights: all weights, [weights].

    Returns:
        The diagonal, [weights].
    """
    if len(parameters) != parameters.n_states + len(parameters.arcs):
        raise ScoreError(
            "samples need templates that look at single tags; got one such as B01:%x[0,1]; begin it with U"
        )
    labels = tuple(map(str, range(parameters.n_labels)))
    spread, arcs = np.zeros((rows.n_tokens, len(labels))), np.zeros((len(labels), len(labels)))
    starts = rows.starts
    for batch, chain in FeatureCRF(labels, KeyIndex(), parameters, weights).distributions(rows):
        pairs = cast("LinearChain", chain).pairwise_marginals  # states are labels here
        arcs += (pairs * (1 - pairs)).sum((0, 1)).numpy()
        for s, table in zip(batch, chain.marginals.numpy(), strict=True):
            own = table[: rows.lengths[s]]
            spread[starts[s] : starts[s + 1]] = own * (1 - own)
    out = np.zeros(len(parameters))
    add_variances(rows.arrays, parameters.weight_index, spread, out)
    out[parameters.n_states :] = arcs[tuple(parameters.arcs.T)]
    return out


def laplace(mode: Array, precision: Array, n_samples: int, seed: int) -> Array:
    """Return samples [n_samples, weights] of normal distributions around the mode.

    Args:
        mode: the optimum, [weights].
        precision: one over the variance of each weight.
        n_samples: how many to draw.
        seed: decides which.

    Returns:
        Samples [n_samples, weights].
    """
    random = np.random.default_rng(seed)
    return mode + random.normal(size=(n_samples, len(mode))) / np.sqrt(precision)


@dataclass(frozen=True)
class Hamiltonian:
    """Hamiltonian Monte Carlo on exp(-energy): `n_steps` leapfrog steps, then the end is kept or refused.

    `warmup` rounds come first, in which the step is tuned until about `acceptance` of the ends are kept.
    """

    n_steps: int = 10
    warmup: int = 20
    acceptance: float = 0.8
    step: float = 0.3
    seed: int = 0

    def sample(self, energy: Objective, start: Array, precision: Array, n_samples: int) -> Array:
        """Return samples [n_samples, weights]; `precision` is about the energy's curvature and sets the masses.

        Args:
            energy: minus the log density, with its gradient.
            start: where the walk begins, [weights].
            precision: about the curvature of the energy, [weights].
            n_samples: how many to draw.

        Returns:
            Samples [n_samples, weights].
        """
        random, step = np.random.default_rng(self.seed), self.step
        point, (level, slope), samples = start, energy(start), np.empty((n_samples, len(start)))
        for number in range(-self.warmup, n_samples):
            momentum = random.normal(size=len(start)) * np.sqrt(precision)
            size = step * random.uniform(0.8, 1.2)
            end, end_level, end_slope, end_momentum = self._walk(energy, point, slope, momentum, precision, size)
            gain = level + _kinetic(momentum, precision) - end_level - _kinetic(end_momentum, precision)
            chance = math.exp(min(0.0, gain)) if math.isfinite(gain) else 0.0
            if random.uniform() < chance:
                point, level, slope = end, end_level, end_slope
            if number < 0:
                step *= math.exp((chance - self.acceptance) / (self.warmup + number + 2) ** 0.5)
            else:
                samples[number] = point
        return samples

    def _walk(
        self, energy: Objective, point: Array, slope: Array, momentum: Array, precision: Array, size: float
    ) -> tuple[Array, float, Array, Array]:
        level = 0.0
        for _ in range(self.n_steps):
            momentum = momentum - 0.5 * size * slope
            point = point + size * momentum / precision
            level, slope = energy(point)
            momentum = momentum - 0.5 * size * slope
        return point, level, slope, momentum


def _kinetic(momentum: Array, precision: Array) -> float:
    return 0.5 * float((momentum * momentum / precision).sum())


@dataclass(frozen=True)
class Posterior:
    """The number of weight vectors to draw, and their way; seeds decide which.

    A `temperature` below 1 sharpens the posterior to exp(-loss / temperature): weights stay nearer to the optimum.
    """

    n_samples: int
    method: Method = "laplace"
    temperature: float = 1.0
    seed: int = 0

    def draw(self, likelihood: Objective, c2: float, mode: Array, curved: Array) -> Array:
        """Return samples [n_samples, weights]; `mode` is the optimum, `curved` the likelihood's curvature.

        Args:
            likelihood: the loss without regularizer, with its gradient.
            c2: weight of the L2 penalty.
            mode: the optimum, [weights].
            curved: curvature of the likelihood, [weights].

        Returns:
            Samples [n_samples, weights].
        """
        precision = (curved + 2 * c2) / self.temperature
        if self.method == "laplace":
            return laplace(mode, precision, self.n_samples, self.seed)

        def energy(weights: Array) -> tuple[float, Array]:
            loss, gradient = likelihood(weights)
            loss, gradient = loss + c2 * float(weights @ weights), gradient + 2 * c2 * weights
            return loss / self.temperature, gradient / self.temperature

        return Hamiltonian(seed=self.seed).sample(energy, mode, precision, self.n_samples)
