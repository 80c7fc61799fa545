"""Edge observations [S4.81]: weights for (attribute, label before, label)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import feature_oracle as oracle
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.parameters import Parameters

ON_PAIRS = np.arange(12) % 3 == 0


def slope(likelihood: Likelihood, weights: np.ndarray, direction: np.ndarray) -> float:
    step = 1e-5
    return (likelihood(weights + step * direction)[0] - likelihood(weights - step * direction)[0]) / (2 * step)


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("scale", [0.5, 300.0])
@pytest.mark.parametrize("all_states", [False, True])
def test_loss_and_gradient(valued: bool, scale: float, all_states: bool) -> None:
    rows, gold = oracle.corpus(3, valued=valued)
    parameters = Parameters.of(rows, gold, 12, 3, all_states=all_states, on_pairs=ON_PAIRS)
    assert parameters.n_pairs > 0
    random = np.random.default_rng(1)
    weights, direction = random.normal(size=(2, len(parameters)))
    likelihood = Likelihood(rows, gold, parameters)
    loss, gradient = likelihood(scale * weights)
    assert loss == pytest.approx(oracle.loss(rows, gold, parameters, scale * weights), rel=1e-10)
    assert slope(likelihood, scale * weights, direction) == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-4)
