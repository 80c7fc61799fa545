"""Attributes that look at neighbouring labels, as the kernels read them."""

from __future__ import annotations

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.models.taggers.features.crf.parameters import Parameters
from trelliswork.models.taggers.features.kernels.records import EdgeRows
from trelliswork.runtime.arrays import Array


def edge_rows(rows: AttributeRows, parameters: Parameters, tokens: Array | None = None) -> EdgeRows:
    """Return the entries whose attribute has pair weights; tokens in the order of `tokens`, or as they are."""
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
