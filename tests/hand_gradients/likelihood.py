"""Gradients of log-likelihoods written out by hand: observed less expected, with a prior, and with latent variables.

Training uses automatic differentiation; the tests compare it with these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from trelliswork.runtime.arrays import Float

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


def penalised_gradient(
    observed: Float[Tensor, "data k"], expected: Float[Tensor, "data k"], theta: Float[Tensor, "k"], variance: float
) -> Float[Tensor, "k"]:
    """∂/∂θ of Σ_i ln p(y_i | x_i) - |θ|² / 2σ², from the features of each y_i and their expectations given all of x_i.

    N (E_data[f] - E_model[f]) - θ / σ² [S4.121, 127]; erratum 22.
    """
    return len(observed) * (observed.mean(0) - expected.mean(0)) - theta / variance


def latent_gradient(chain: LinearChain, partial: Tensor) -> tuple[Float[Tensor, "*batch n c"], Tensor]:
    """∂/∂score of ln p(known part | x): posteriors given the known part, less posteriors [S4.132-133]; erratum 23.

    By emissions and by the transitions into each position. A CRF with latent z is a chain over pairs (y, z), and
    `partial` allows all z of the known y: what it leaves is p(z | y, x), with Z(y, x) for its Z [S4.128-130].
    """
    known = chain.constrain(partial)
    return known.marginals - chain.marginals, known.pairwise_marginals - chain.pairwise_marginals
