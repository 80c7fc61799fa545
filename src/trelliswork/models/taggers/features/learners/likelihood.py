"""The negative log-likelihood of a corpus under a feature CRF, and its gradient [S4.113-120]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.taggers.features.crf.edges import edge_rows
from trelliswork.models.taggers.features.crf.observed import follows
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.crf.plan import Plan
from trelliswork.models.taggers.features.crf.states import StateSpace
from trelliswork.models.taggers.features.kernels import likelihood as kernels
from trelliswork.models.taggers.features.kernels import sets as set_kernels
from trelliswork.runtime.threads import side_by_side

Array = np.ndarray[Any, Any]
BLOCK = 8  # sentences whose scores are in the cache at the same time


class Likelihood:
    """`loss, gradient = likelihood(weights)`, without regularizer.

    `gold` has one label a token, or codes for labels that are not known, with `sets` (see `observed`): the loss is
    Σ_s weights_s (log Z_s - log Z_s of the labels that gold allows) [S4.131]. So it is with latent variables, where
    gold allows every state of its label [S4.128-133].
    """

    def __init__(
        self,
        rows: AttributeRows,
        gold: Array,
        parameters: Parameters,
        sentence_weights: Array | None = None,
        sets: Array | None = None,
    ) -> None:
        self.parameters, self.plan, self._space = parameters, Plan.of(rows, parameters), StateSpace.of(parameters)
        codes, self._sets = self._space.gold(gold, sets, follows(rows))
        self._gold = codes[self.plan.tokens].astype(np.int64)
        weights = np.ones(len(rows.lengths)) if sentence_weights is None else sentence_weights.astype(np.float64)
        self._weights = weights[self.plan.order]
        self._ranges = self.plan.shares(self._space.c**2)
        self._edges = edge_rows(rows, parameters, self.plan.tokens)
        self._plain = self._space.is_plain and not parameters.n_pairs and (not len(codes) or int(codes.min()) >= 0)

    def __call__(self, weights: Array) -> tuple[float, Array]:
        pass_over = self._plain_pass(weights) if self._plain else self._set_pass(weights)
        found = side_by_side([partial(pass_over, first, last) for first, last in self._ranges])
        loss, *totals = found[0]
        for other in found[1:]:
            loss += other[0]
            for total, part in zip(totals, other[1:], strict=True):
                total += part
        d_transitions, d_table, d_loose, *d_pairs = totals
        gradient = np.empty(len(self.parameters))
        self.plan.collect(d_table, d_loose, gradient)
        gradient[self.parameters.arc_weights] = self._space.collect(d_transitions)
        if d_pairs:
            gradient[self.parameters.pair_weights] = d_pairs[0]
        return loss, gradient

    def _plain_pass(self, weights: Array) -> Callable[[int, int], Any]:
        table, loose = self.plan.spread_out(weights)
        return partial(
            kernels.loss_and_gradient, rows=self.plan.rows, gold=self._gold, weights=self._weights,
            transitions=self.parameters.transitions(weights)[None, None], table=table, loose=loose, block=BLOCK,
        )  # fmt: skip

    def _set_pass(self, weights: Array) -> Callable[[int, int], Any]:
        space, rows, parameters = self._space, self.plan.rows, self.parameters
        table, loose = self.plan.spread_out(weights)
        transitions = space.transitions(weights[parameters.arc_weights])[None, None]
        pair_weights = np.ascontiguousarray(weights[parameters.pair_weights])

        def pass_over(first: int, last: int) -> Any:
            longest = int(rows.lengths[first:last].max(initial=0))
            room = set_kernels.room_for(longest, space.c, bool(len(self._edges.ids)))
            return set_kernels.loss_and_gradient(
                first, last, rows, self._edges, self._gold, self._sets, self._weights, space.columns, space.start,
                transitions, table, loose, pair_weights, room,
            )  # fmt: skip

        return pass_over
