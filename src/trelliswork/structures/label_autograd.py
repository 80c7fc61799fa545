"""Labels summed out, arc by arc, by kernel; the reference for what lies beyond first derivatives."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array
from trelliswork.structures.arc_labels import LabelledArcs
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.label_kernels import best_labels, label_gradients, sum_labels


def sum_over_labels(rows: ArcRows, labels: Tensor) -> ArcRows:
    """arcs + log Σ_y exp(labels) [batch, n+1, n+1] in float64, as rows to sum over trees."""
    arcs, summed = rows.arrays.scores, buffers.empty(rows.arrays.scores.shape)
    sum_labels(as_array(labels), arcs, summed)

    def vjp(grad: Array) -> tuple[Array, Array]:
        d_scores, d_labels = np.empty(arcs.shape, raw.dtype), np.empty(own.shape, own.dtype)
        label_gradients(grad, own, arcs, summed, d_labels, d_scores)
        return d_scores, d_labels

    def reference(scores: Tensor, labels: Tensor) -> Tensor:
        return LabelledArcs.of(rows.with_scores(scores).trees, labels).summed

    raw, own = as_array(rows.scores), as_array(labels)
    return rows.with_scores(differentiable(torch.from_numpy(summed), (rows.scores, labels), vjp, reference))


def best_over_labels(rows: ArcRows, labels: Tensor) -> ArcRows:
    """arcs + max_y labels, as rows to search for the best tree."""
    best = buffers.empty(rows.arrays.scores.shape)
    best_labels(as_array(labels), rows.arrays.scores, best)
    return rows.with_scores(torch.from_numpy(best))
