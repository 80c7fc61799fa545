"""A corpus laid out for speed: what a pass over it touches lies side by side.

Attributes with many labels have a *dense* row of weights, one vector addition a token; the weights of the many others
are listed token by token as *loose* (weight, label) entries, the frequent weights next to one another. Sentences are
sorted by length, so that blocks of them waste no room.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.structures.threads import row_ranges

Array = np.ndarray[Any, Any]


class PlannedRows(NamedTuple):
    """What the kernels read; tokens in the order of the plan."""

    lengths: Array  # [sentences]
    starts: Array  # [sentences + 1] first token
    dense_offsets: Array  # [tokens + 1]
    dense_rows: Array  # [dense entries] row of the dense table
    dense_values: Array  # the same, or empty: all 1
    loose_offsets: Array  # [tokens + 1]
    loose_weights: Array  # [loose entries] index into the loose weights
    loose_labels: Array
    loose_values: Array


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
    def of(cls, rows: AttributeRows, parameters: Parameters) -> Plan:
        c = parameters.n_labels
        width = (c + 7) // 8 * 8
        n_of = np.diff(parameters.offsets)
        is_dense = n_of >= max(4, c // 4)
        number = np.where(is_dense, np.cumsum(is_dense) - 1, -1)
        order = np.argsort(rows.lengths, kind="stable")
        tokens, starts = _tokens_of(rows, order)
        ids, values, token_of = _permuted(rows, tokens)
        dense = is_dense[ids]
        attribute_of = np.repeat(np.arange(len(n_of)), n_of)
        in_table = is_dense[attribute_of]
        cells = number[attribute_of[in_table]] * width + parameters.labels[in_table]
        frequency = np.bincount(ids, minlength=len(n_of))
        loose = np.flatnonzero(~in_table)
        loose = loose[np.argsort(-frequency[attribute_of[loose]], kind="stable")]
        place = np.empty(parameters.n_states, np.int32)
        place[loose] = np.arange(len(loose))
        spread = _spread(ids[~dense], parameters.offsets)  # (entry, weight) of each loose weight of each token
        planned = PlannedRows(
            rows.lengths[order],
            starts,
            _offsets(token_of[dense], len(tokens)),
            number[ids[dense]].astype(np.int32),
            values[dense] if len(values) else values,
            _offsets(token_of[~dense][spread[0]], len(tokens)),
            place[spread[1]],
            parameters.labels[spread[1]].astype(np.uint16),
            values[~dense][spread[0]] if len(values) else values,
        )
        return cls(planned, order, tokens, cells, np.flatnonzero(in_table), loose, int(is_dense.sum()), width)

    def shares(self, work: int) -> list[tuple[int, int]]:
        """Ranges of sentences with about the same number of tokens, one a thread; `work` is that of one token.

        Empty ones, which say nothing, are left out: the plan has the shortest first.
        """
        lengths = self.rows.lengths
        done = np.cumsum(lengths)
        n_parts = len(row_ranges(len(lengths), int(done[-1]) * work)) if len(lengths) else 1
        inner = np.searchsorted(done, [done[-1] * k / n_parts for k in range(1, n_parts)]).tolist()
        bounds = [int(np.searchsorted(lengths, 1)), *inner, len(lengths)]
        return list(pairwise(bounds))

    def spread_out(self, weights: Array) -> tuple[Array, Array]:
        """State weights as the dense table and the loose weights."""
        table = np.zeros(self.n_dense * self.width)
        table[self.dense_cells] = weights[self.dense_weights]
        return table.reshape(self.n_dense, self.width), weights[self.loose_weights]

    def collect(self, table: Array, loose: Array, out: Array) -> None:
        """The inverse of `spread_out`: into `out`, one number a state weight."""
        out[self.dense_weights] = table.reshape(-1)[self.dense_cells]
        out[self.loose_weights] = loose


def _tokens_of(rows: AttributeRows, order: Array) -> tuple[Array, Array]:
    lengths, starts = rows.lengths[order], np.concatenate([[0], np.cumsum(rows.lengths[order])])
    return np.arange(starts[-1]) + np.repeat(rows.starts[:-1][order] - starts[:-1], lengths), starts


def _permuted(rows: AttributeRows, tokens: Array) -> tuple[Array, Array, Array]:
    """Entries in the order of `tokens`: ids, values (or none), and the new token of each."""
    counts = np.diff(rows.offsets)[tokens]
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    entries = np.arange(counts.sum()) + np.repeat(rows.offsets[:-1][tokens] - first, counts)
    values = np.empty(0) if rows.values is None else rows.values[entries]
    return rows.ids[entries], values, np.repeat(np.arange(len(tokens)), counts)


def _spread(ids: Array, offsets: Array) -> tuple[Array, Array]:
    """(entry, weight) for each weight of each entry's attribute."""
    counts = offsets[ids + 1] - offsets[ids]
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    weights = np.arange(counts.sum()) + np.repeat(offsets[ids] - first, counts)
    return np.repeat(np.arange(len(ids)), counts), weights


def _offsets(token_of: Array, n_tokens: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(token_of, minlength=n_tokens))])
