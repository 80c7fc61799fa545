"""Gibbs sampling and AD3 of factor graphs: torch tensors in and out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.factors import ad3_kernels, gibbs_kernels
from trelliswork.structures.factors.graph import graph_arrays
from trelliswork.structures.factors.propagation import propagate
from trelliswork.structures.factors.structure import Factors


class GibbsRun(NamedTuple):
    """Results of Gibbs sampling; the mean and spread of conditionals for each chain."""

    samples: Tensor  # [rows, chains, kept, n]
    scores: Tensor  # [rows, chains, kept]
    means: Tensor  # [rows, chains, n, c]
    variances: Tensor  # [rows, chains, n, c], within the chain
    n_sweeps: int


def gibbs(
    parts: Factors, n_kept: int, *, n_chains: int, burn_in: int, thin: int, generator: torch.Generator | None
) -> GibbsRun:
    """Run chains of sweeps over all variables; the same generator gives the same chains.

    Args:
        parts: scores of the rows.
        n_kept: samples that each chain keeps.
        n_chains: chains of each row.
        burn_in: sweeps before the first sample.
        thin: sweeps from one sample to the next.
        generator: source of random numbers; None for torch's own.

    Returns:
        The samples and their scores.
    """  # [S4.112]
    graph, flat = graph_arrays(parts.graph), as_array(parts.flat.detach().cpu(), np.float64)
    rows, n, c = len(flat), parts.graph.n, parts.graph.c
    seeds = torch.randint(2**62, (rows, n_chains), generator=generator).numpy().astype(np.uint64)
    sums, squares = np.zeros((rows, n_chains, n, c)), np.zeros((rows, n_chains, n, c))
    samples, scores = np.empty((rows, n_chains, n_kept, n), np.int64), np.empty((rows, n_chains, n_kept))
    n_sweeps = n_kept * thin
    work = rows * n_chains * (burn_in + n_sweeps) * n * c * 20
    over_rows(
        gibbs_kernels.gibbs, rows, work,
        flat, graph, seeds, burn_in, thin, (sums, squares), samples, scores,
    )  # fmt: skip
    means = sums / n_sweeps
    variances = np.maximum(squares / n_sweeps - means**2, 0.0)
    device = parts.flat.device
    samples_, scores_, means_, variances_ = (
        torch.from_numpy(each).to(device) for each in (samples, scores, means, variances)
    )
    return GibbsRun(samples_, scores_, means_, variances_, n_sweeps)


class Decomposed(NamedTuple):
    """Results of AD3, a number a row each."""

    values: Tensor  # [rows, n]
    relaxed: Tensor  # [rows, n, c]: the agreed p, integral where the relaxation is tight
    scores: Tensor
    bounds: Tensor
    iterations: Tensor
    ended: Tensor


def ad3(parts: Factors, *, max_iterations: int, tolerance: float) -> Decomposed:
    """Return the best assignment found and an upper bound on the best there is, by dual decomposition.

    Args:
        parts: scores of the rows.
        max_iterations: when to give up.
        tolerance: the difference from agreement that counts as none.

    Returns:
        The assignment, its score and the bound of each row.
    """  # [S4.286]
    graph, flat = graph_arrays(parts.graph), as_array(parts.flat.detach().cpu(), np.float64)
    rows, n, c = len(flat), parts.graph.n, parts.graph.c
    values, relaxed = np.zeros((rows, n), np.int64), np.zeros((rows, n, c))
    scores, bounds = np.empty(rows), np.empty(rows)
    iterations, ended = np.empty(rows, np.int64), np.empty(rows, np.bool_)
    # Affinely independent indicators of a table's entries: at most one for each value of each variable, and one more.
    most_entries = max((sum(parts.graph.shape(scope)) for scope in parts.graph.scopes), default=0) + 2

    def run(first: int, last: int) -> None:
        for row in range(first, last):
            scores[row], bounds[row], iterations[row], ended[row] = ad3_kernels.ad3(
                flat[row], graph, most_entries, max_iterations, tolerance, values[row], relaxed[row]
            )

    over_rows(run, rows, rows * len(parts.graph.scopes) * 1_000_000)
    near = tolerance * np.maximum(1.0, np.abs(scores, where=scores > -np.inf, out=np.zeros(rows)))
    open_rows = (bounds > -np.inf) & (bounds > scores + near)
    if open_rows.any():
        _try_max_product(parts, flat, open_rows, values, scores)
    arrays = (values, relaxed, scores, bounds, iterations, ended)
    return Decomposed(*(torch.from_numpy(each).to(parts.flat.device) for each in arrays))


def _try_max_product(parts: Factors, flat: Array, open_rows: Array, values: Array, scores: Array) -> None:
    """Take the values of max-product where they are better: rounding a relaxation that is not tight is only a guess."""
    rows = np.flatnonzero(open_rows)
    some = parts.with_scores(torch.from_numpy(flat[rows]))
    guess = propagate(some, best=True, damping=0.5, tolerance=1e-4, max_iterations=50).beliefs.argmax(-1).numpy()
    reached = np.empty(len(rows))
    ad3_kernels.polish(0, len(rows), flat[rows], graph_arrays(parts.graph), guess, reached)
    better = reached > scores[rows]
    values[rows[better]], scores[rows[better]] = guess[better], reached[better]
