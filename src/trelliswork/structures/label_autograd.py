"""Labels summed out, arc by arc, as an autograd function: kernels once, the reference for what lies beyond."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.arc_labels import LabelledArcs
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.label_kernels import best_labels, label_gradients, sum_labels


class SummedLabels(torch.autograd.Function):
    """arcs + log Σ_y exp(labels) [batch, n+1, n+1] in float64; `SummedLabels.apply(rows, rows.scores, labels)`."""

    @staticmethod
    def forward(ctx: Any, rows: ArcRows, scores: Tensor, labels: Tensor) -> Tensor:
        ctx.rows, ctx.summed = rows, buffers.empty(rows.arrays.scores.shape)
        sum_labels(as_array(labels), rows.arrays.scores, ctx.summed)
        ctx.save_for_backward(scores, labels)
        return torch.from_numpy(ctx.summed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor]:
        scores, labels = ctx.saved_tensors
        if torch.is_grad_enabled():
            summed = LabelledArcs.of(ctx.rows.with_scores(scores).trees, labels).summed
            needed = [each for each in (scores, labels) if each.requires_grad]
            found = iter(torch.autograd.grad(summed, needed, grads[0], create_graph=True))
            return None, *(next(found) if each.requires_grad else None for each in (scores, labels))  # type: ignore[return-value]
        d_scores = torch.empty_like(scores, memory_format=torch.contiguous_format)
        d_labels = torch.empty_like(labels, memory_format=torch.contiguous_format)
        given = as_array(grads[0]), as_array(labels), ctx.rows.arrays.scores, ctx.summed
        label_gradients(*given, d_labels.numpy(), d_scores.numpy())
        return None, d_scores, d_labels


def best_over_labels(rows: ArcRows, labels: Tensor) -> ArcRows:
    """arcs + max_y labels, as rows to search for the best tree."""
    best = buffers.empty(rows.arrays.scores.shape)
    best_labels(as_array(labels), rows.arrays.scores, best)
    return rows.with_scores(torch.from_numpy(best))
