"""The gradient of marginals by kernel, for structured attention, entropies and risks.

Marginals μ are the gradient of log Z, so their Jacobian is its Hessian, which is symmetric: the product of a vector v
with it is how μ changes when the scores move along v. One pass forwards and one backwards find that, exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import tangent_kernels

if TYPE_CHECKING:
    from trelliswork.structures.chain.fast import ChainArrays, Forward

Array = np.ndarray[Any, Any]


def run_tangents(
    arrays: ChainArrays, forward: Forward, v_emissions: Array, v_arcs: Array
) -> tuple[Array, Array, Array, Array]:
    """Gradients of Σ v · marginals by emissions, transitions, start and end; v_arcs is [1|batch, 1|n-1, c, c]."""
    batch, n, c = arrays.emissions.shape
    is_shared = arrays.transitions.shape[:2] == (1, 1) and forward.arcs.shape[0] == 1
    wide_at = np.full(batch, -1)
    wide_at[forward.wide_rows] = np.arange(len(forward.wide_rows))
    d_emissions = np.zeros((batch, n, c))
    d_transitions = np.zeros((0 if is_shared else batch, n - 1, c, c))
    found = over_rows(
        tangent_kernels.posterior_changes, batch, 4 * arrays.work,
        wide_at, (arrays.transitions, arrays.end, arrays.lengths), forward.arcs,
        (forward.alphas, forward.log_alphas, forward.arrivals, forward.log_z),
        v_emissions, v_arcs, d_emissions, d_transitions,
    )  # fmt: skip
    shared, d_start, d_end = (sum(each) for each in zip(*found, strict=True))
    return d_emissions, shared if is_shared else d_transitions, d_start, d_end
