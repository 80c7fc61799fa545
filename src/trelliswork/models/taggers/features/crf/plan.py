"""A corpus laid out for speed: what a pass over it touches lies side by side.

Attributes with many labels have a *dense* row of weights, one vector addition a token; the weights of the many others
are listed token by token as *loose* (weight, label) entries, the frequent weights next to one another. Attributes that
no token has are left out: of several processes, each has the tokens of its share. Sentences are sorted by length, so
that blocks of them waste no room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.plan import lay_out
from trelliswork.models.taggers.features.kernels.records import EdgeRows, PlannedRows, PlannedWeights
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.buffers import aligned
from trelliswork.runtime.scratch import Scratch
from trelliswork.runtime.threads import row_ranges, side_by_side

IN_MEMORY = Scratch()
SENTENCES_AT_A_TIME = 1 << 13


@dataclass(frozen=True)
class Plan:
    """Planned rows, and where each state weight lives: in the dense table (flat index) or among the loose weights."""

    rows: PlannedRows
    order: Array  # the sentences of the plan, as numbered in the data
    tokens: Array  # the tokens of the plan, as numbered in the data
    dense_cells: Array  # flat indices into the dense table [n_dense, width]
    dense_weights: Array  # the state weights that go there
    loose_weights: Array  # the state weights in the order of the loose ones
    n_dense: int
    width: int

    @classmethod
    def of(cls, rows: AttributeRows, parameters: Parameters, scratch: Scratch = IN_MEMORY) -> Plan:
        """Lay out rows for the parameters of a CRF.

        Args:
            rows: Attributes of all tokens.
            parameters: The weights, by attribute and label.
            scratch: Where large arrays lie.

        Returns:
            The planned rows.
        """
        c = parameters.n_labels
        width = (c + 7) // 8 * 8
        n_of, frequency = np.diff(parameters.offsets), rows.counts(len(parameters.offsets) - 1)
        is_dense = (n_of >= max(4, c // 4)) & (frequency > 0)
        number = np.where(is_dense, np.cumsum(is_dense) - 1, -1)
        order = np.argsort(rows.lengths, kind="stable")
        tokens, starts = _tokens_of(rows, order, scratch)
        attribute_of = np.repeat(np.arange(len(n_of), dtype=np.int32), n_of)
        in_table = is_dense[attribute_of]
        cells = number[attribute_of[in_table]] * width + parameters.labels[in_table]
        loose = np.flatnonzero(~in_table & (frequency > 0)[attribute_of])
        loose = loose[np.argsort(-frequency[attribute_of[loose]], kind="stable")]
        place = np.empty(parameters.n_states, np.int32)
        place[loose] = np.arange(len(loose))
        sizes = int(frequency[is_dense].sum()), int((frequency * n_of)[~is_dense].sum())
        entries = _laid_out(rows, tokens, number.astype(np.int32), (parameters, place), sizes, scratch)
        planned = PlannedRows(rows.lengths[order], starts, *entries)
        return cls(planned, order, tokens, cells, np.flatnonzero(in_table), loose, int(is_dense.sum()), width)

    def shares(self, work: int) -> list[tuple[int, int]]:
        """Return ranges of sentences with about the same number of tokens, one a thread; `work` is that of one token.

        Empty ones, which say nothing, are left out: the plan has the shortest first.
        """
        lengths = self.rows.lengths
        done = np.cumsum(lengths)
        n_parts = len(row_ranges(len(lengths), int(done[-1]) * work)) if len(lengths) else 1
        inner = np.searchsorted(done, [done[-1] * k / n_parts for k in range(1, n_parts)]).tolist()
        bounds = [int(np.searchsorted(lengths, 1)), *inner, len(lengths)]
        return list(pairwise(bounds))

    def spread_out(self, weights: Array, transitions: Array, pairs: Array) -> PlannedWeights:
        """Return weights as the kernels take them; `transitions` [c, c] and `pairs` are not part of the plan.

        Args:
            weights: all weights, [weights].
            transitions: scores of pairs of states, [c, c].
            pairs: weights of attributes that look at two neighbours.

        Returns:
            The weights as they are laid out.
        """
        table = aligned((self.n_dense, self.width))
        table[:] = 0.0
        table.reshape(-1)[self.dense_cells] = weights[self.dense_weights]
        loose = weights[self.loose_weights]
        return PlannedWeights(transitions[None, None], table, loose, pairs)

    def collect(self, gradient: PlannedWeights, out: Array) -> None:
        """Undo `spread_out` for the weights of attributes: into `out`, which is 0 where no token has one."""
        out[self.dense_weights] = gradient.table.reshape(-1)[self.dense_cells]
        out[self.loose_weights] = gradient.loose

    def add_up(
        self, pass_over: Callable[[int, int], tuple[float, PlannedWeights]], ranges: Sequence[tuple[int, int]]
    ) -> tuple[float, PlannedWeights]:
        """Return loss and gradient of all ranges of sentences, side by side on threads."""
        passes = side_by_side([partial(pass_over, first, last) for first, last in ranges])
        loss, gradient = passes[0]
        for other_loss, other in passes[1:]:
            loss += other_loss
            for total, part in zip(gradient, other, strict=True):
                total += part
        return loss, gradient


def _tokens_of(rows: AttributeRows, order: Array, scratch: Scratch) -> tuple[Array, Array]:
    lengths, starts = rows.lengths[order], offsets_of(rows.lengths[order])
    tokens = scratch.array(int(starts[-1]), np.int64)
    for first in range(0, len(order), SENTENCES_AT_A_TIME):
        last = min(first + SENTENCES_AT_A_TIME, len(order))
        begin, end = starts[first], starts[last]
        shifts = rows.starts[order[first:last]] - starts[first:last]
        tokens[begin:end] = np.arange(begin, end) + np.repeat(shifts, lengths[first:last])
    return tokens, starts


def _laid_out(
    rows: AttributeRows,
    tokens: Array,
    dense_row: Array,
    weights: tuple[Parameters, Array],
    sizes: tuple[int, int],
    scratch: Scratch,
) -> list[Array]:
    """Return dense and loose entries in the order of `tokens`: the last seven fields of `PlannedRows`."""
    (parameters, place), (n_dense, n_loose), valued = weights, sizes, rows.values is not None
    offsets = [scratch.array(len(tokens) + 1, np.int64) for _ in sizes]
    dense = offsets[0], scratch.array(n_dense, np.int32), scratch.array(n_dense * valued, np.float64)
    places, labels = scratch.array(n_loose, np.int32), scratch.array(n_loose, np.uint16)
    loose = offsets[1], places, labels, scratch.array(n_loose * valued, np.float64)
    lay_out(tokens, rows.arrays, dense_row, parameters.weight_index, place, dense, loose)
    return [*dense, *loose]


# Attributes that look at neighbouring labels, as the kernels read them.


def edge_rows(rows: AttributeRows, parameters: Parameters, tokens: Array | None = None) -> EdgeRows:
    """Return the entries whose attribute has pair weights; tokens in the order of `tokens`, or as they are.

    Args:
        rows: attributes of the tokens.
        parameters: the weights of the model.
        tokens: the order of the tokens; None for theirs.

    Returns:
        The entries, as the kernels read them.
    """
    none, pairs = np.zeros(1, np.int64), parameters.pairs
    if pairs is None or not len(pairs.arcs):
        return EdgeRows(none, np.empty(0, np.int32), np.empty(0), none, np.empty(0, np.int32))
    token_of = rows.tokens()
    wanted = np.diff(pairs.offsets)[rows.ids] > 0
    ids, owners = rows.ids[wanted], token_of[wanted]
    values = np.empty(0) if rows.values is None else rows.values[wanted]
    if tokens is not None:
        place = np.empty(rows.n_tokens, np.int64)
        place[tokens] = np.arange(len(tokens))
        order = np.argsort(place[owners], kind="stable")
        ids, owners = ids[order], place[owners][order]
        values = values[order] if len(values) else values
    offsets = offsets_of(np.bincount(owners, minlength=rows.n_tokens))
    return EdgeRows(offsets, ids.astype(np.int32), values, pairs.offsets, pairs.arcs)
