"""The negative log-likelihood of a corpus under a feature CRF, and its gradient [S4.113-120]."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.feature_crf import kernels
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.plan import Plan
from trelliswork.structures.threads import row_ranges, side_by_side

Array = np.ndarray[Any, Any]
BLOCK = 8  # sentences whose scores are in the cache at the same time


class Likelihood:
    """`loss, gradient = likelihood(weights)`, without regularizer; `gold` has one label a token."""

    def __init__(
        self, rows: AttributeRows, gold: Array, parameters: Parameters, sentence_weights: Array | None = None
    ) -> None:
        self.parameters, self.plan = parameters, Plan.of(rows, parameters)
        self._gold = gold[self.plan.tokens].astype(np.int64)
        weights = np.ones(len(rows.lengths)) if sentence_weights is None else sentence_weights.astype(np.float64)
        self._weights = weights[self.plan.order]
        self._ranges = self._share_out()

    def _share_out(self) -> list[tuple[int, int]]:
        """Ranges of sentences with about the same number of tokens, one a thread; empty ones left out."""
        lengths = self.plan.rows.lengths
        c = self.parameters.n_labels
        done = np.cumsum(lengths)
        n_parts = len(row_ranges(len(lengths), int(done[-1]) * c * c)) if len(lengths) else 1
        filled = int(np.searchsorted(lengths, 1))  # the plan has the shortest first; empty ones say nothing
        bounds = [
            filled,
            *np.searchsorted(done, [done[-1] * k / n_parts for k in range(1, n_parts)]).tolist(),
            len(lengths),
        ]
        return list(pairwise(bounds))

    def __call__(self, weights: Array) -> tuple[float, Array]:
        transitions = self.parameters.transitions(weights)[None, None]
        table, loose = self.plan.spread_out(weights)
        pass_over = partial(
            kernels.loss_and_gradient, rows=self.plan.rows, gold=self._gold, weights=self._weights,
            transitions=transitions, table=table, loose=loose, block=BLOCK,
        )  # fmt: skip
        found = side_by_side([partial(pass_over, first, last) for first, last in self._ranges])
        loss, d_transitions, d_table, d_loose = found[0]
        for other in found[1:]:
            loss += other[0]
            for total, part in zip((d_transitions, d_table, d_loose), other[1:], strict=True):
                total += part
        gradient = np.empty(len(self.parameters))
        self.plan.collect(d_table, d_loose, gradient)
        gradient[self.parameters.n_states :] = d_transitions[0, 0][tuple(self.parameters.arcs.T)]
        return loss, gradient
