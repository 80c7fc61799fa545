"""The gradient of segment marginals by kernel: how they change along a direction, as in `chain/tangents.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.segments import tangent_kernels


def run_tangents(scores: tuple[Tensor | None, ...], lengths: Tensor, grads: tuple[Array, ...]) -> tuple[Any, ...]:
    """Gradients of Σ grads · (posteriors of segments, expected label pairs) by segments, transitions, start and end."""
    segments, transitions, start, end = (None if each is None else as_array(each, np.float64) for each in scores)
    assert segments is not None and start is not None and end is not None
    batch, n, k, c = segments.shape
    v_segments, v_arcs = grads
    if transitions is None:  # the 0th order: all arcs score 0, and there are no pairs to ask for
        transitions, v_arcs = np.zeros((c, c)), np.zeros((batch, c, c))
    d_segments = np.zeros((batch, n, k, c))
    found = over_rows(
        tangent_kernels.posterior_changes, batch, 8 * batch * n * c * (k + c),
        segments, transitions, start, end, lengths.numpy(), v_segments, v_arcs, d_segments,
    )  # fmt: skip
    d_arcs, d_start, d_end = (sum(each) for each in zip(*found, strict=True))
    return d_segments, d_arcs, d_start, d_end
