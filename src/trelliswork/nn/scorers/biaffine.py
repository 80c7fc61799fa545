"""Biaffine scores of arcs and their labels: each word has a vector as a head and one as a dependent."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.shapes import Float


class BiaffineScorer(nn.Module):
    """arcs[h, m] = u_h · W v_m + b · u_h, with u = ReLU(U x + ..) of heads and v = ReLU(V x + ..) of dependents.

    The root's x is a parameter of its own, so scores are [batch, n+1, n+1] as `DependencyCRF` wants them. With
    `num_labels` the result is a pair: arcs, and labels[h, m, y] = u'_h · W_y v'_m + a_y · u'_h + b_y · v'_m + c_y.

    >>> arcs, labels = BiaffineScorer(200, num_labels=30)(torch.zeros(2, 7, 200))
    >>> arcs.shape, labels.shape
    (torch.Size([2, 8, 8]), torch.Size([2, 8, 8, 30]))
    """

    def __init__(
        self,
        dim: int,
        num_labels: int = 0,
        *,
        arc_dim: int = 128,
        label_dim: int = 64,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        if min(dim, arc_dim, label_dim) < 1 or num_labels < 0:
            raise ScoreError(f"sizes must be positive; got dim {dim}, arc_dim {arc_dim}, label_dim {label_dim}")
        self.num_labels = num_labels
        self.root = nn.Parameter(torch.zeros(dim))
        self.arc_head, self.arc_dependent = nn.Linear(dim, arc_dim), nn.Linear(dim, arc_dim)
        self.arc_bilinear = nn.Linear(arc_dim, arc_dim)  # W v + b: its bias is that of heads
        if num_labels:
            self.label_head, self.label_dependent = nn.Linear(dim, label_dim), nn.Linear(dim, label_dim)
            self.label_bilinear = nn.Linear(label_dim + 1, num_labels * (label_dim + 1), bias=False)
        initialize_fan_in(self, initialization)

    def forward(self, encoded: Float[Tensor, "batch n d"]) -> Tensor | tuple[Tensor, Tensor]:
        """Scores of arcs [batch, n+1, n+1], and of labels [batch, n+1, n+1, l] if there are any."""
        nodes = torch.cat([self.root.expand(len(encoded), 1, -1), encoded], 1)
        arcs = self.arc_head(nodes).relu() @ self.arc_bilinear(self.arc_dependent(nodes).relu()).transpose(1, 2)
        if not self.num_labels:
            return arcs
        heads, dependents = _with_one(self.label_head(nodes).relu()), _with_one(self.label_dependent(nodes).relu())
        turned = self.label_bilinear(dependents).unflatten(-1, (self.num_labels, -1))
        return arcs, torch.einsum("bhd,bmyd->bhmy", heads, turned)


def _with_one(vectors: Tensor) -> Tensor:
    """A 1 behind each vector: a product of two then has linear terms as well."""
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1)
