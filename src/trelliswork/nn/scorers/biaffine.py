"""Biaffine scores of arcs and their labels, in which each word has a vector as a head and one as a dependent."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.nn.scorers.bilinear_pairs import pair_scores
from trelliswork.runtime.shapes import Float, Int


class BiaffineScorer(nn.Module):
    """Scores arcs[h, m] = u_h · W v_m + b · u_h, with u = ReLU(U x + ..) of heads and v = ReLU(V x + ..) of dependents.

    The x of the root is a parameter, so that scores are [batch, n+1, n+1], as `DependencyCRF` takes them. Labels have
    the scores labels[h, m, y] = u'_h · W_y v'_m + a_y · u'_h + b_y · v'_m + c_y.

    Args:
        dim: Width of the vectors x of words.
        num_labels: Number of labels; 0 scores arcs only.
        arc_dim: Width of u and v.
        label_dim: Width of u' and v'.
        dropout: Share of dimensions of these vectors that are dropped, the same for all words of a sentence.
        initialization: See `initialize_fan_in`.

    Dozat and Manning (2017), Deep biaffine attention for neural dependency parsing.

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
        dropout: float = 0.0,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        if min(dim, arc_dim, label_dim) < 1 or num_labels < 0:
            raise ScoreError(f"sizes must be positive; got dim {dim}, arc_dim {arc_dim}, label_dim {label_dim}")
        self.num_labels = num_labels
        self.root = nn.Parameter(torch.zeros(dim))
        self.dropout = VariationalDropout(dropout)
        self.arc_head, self.arc_dependent = nn.Linear(dim, arc_dim), nn.Linear(dim, arc_dim)
        self.arc_bilinear = nn.Linear(arc_dim, arc_dim)  # W v + b: its bias is that of heads
        if num_labels:
            self.label_head, self.label_dependent = nn.Linear(dim, label_dim), nn.Linear(dim, label_dim)
            self.label_bilinear = nn.Linear(label_dim + 1, num_labels * (label_dim + 1), bias=False)
        initialize_fan_in(self, initialization)

    def forward(self, encoded: Float[Tensor, "batch n d"]) -> Tensor | tuple[Tensor, Tensor]:
        """Return scores of arcs [batch, n+1, n+1], and of labels [batch, n+1, n+1, l] if there are any."""
        nodes = self.nodes(encoded)
        arcs = self.arcs(nodes)
        return arcs if not self.num_labels else (arcs, self.labels(nodes, nodes))

    def nodes(self, encoded: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+1 d"]:
        """Put the vector of the root in front of those of the words."""
        return torch.cat([self.root.expand(len(encoded), 1, -1), encoded], 1)

    def arcs(self, nodes: Float[Tensor, "batch n+1 d"]) -> Float[Tensor, "batch n+1 n+1"]:
        """Return the scores of all arcs, [head, dependent]."""
        heads = self.dropout(self.arc_head(nodes).relu())
        dependents = self.dropout(self.arc_dependent(nodes).relu())
        return heads @ self.arc_bilinear(dependents).transpose(1, 2)

    def labels(
        self, heads: Float[Tensor, "batch h d"], dependents: Float[Tensor, "batch m d"]
    ) -> Float[Tensor, "batch h m l"]:
        """Return the scores of the labels of all arcs from h nodes to m others."""
        return self.labels_between(self.as_heads(heads), self.as_dependents(dependents))

    def labels_at(
        self, nodes: Float[Tensor, "batch n+1 d"], heads: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n l"]:
        """Return the scores of the labels of the arc from `heads` to each word."""
        candidates, dependents = self.as_heads(nodes), self.as_dependents(nodes[:, 1:])
        chosen = candidates.gather(1, heads[..., None].expand(-1, -1, candidates.shape[-1]))
        return self.labels_of_pairs(chosen.flatten(0, 1), dependents.flatten(0, 1)).unflatten(0, heads.shape)

    # The same in two steps: vectors of nodes, then scores of arcs between them

    def as_heads(self, nodes: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """Return the vectors u' of nodes as heads of labelled arcs."""
        return _append_one(self.dropout(self.label_head(nodes).relu()))

    def as_dependents(self, nodes: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """Return the vectors v' of nodes as dependents of labelled arcs."""
        return _append_one(self.dropout(self.label_dependent(nodes).relu()))

    def labels_between(
        self, heads: Float[Tensor, "batch h k"], dependents: Float[Tensor, "batch m k"]
    ) -> Float[Tensor, "batch h m l"]:
        """Return the scores of the labels of all arcs from heads to dependents."""
        products = self.label_bilinear(dependents).unflatten(-1, (self.num_labels, -1))  # W_y v' for each y
        return torch.einsum("bhd,bmyd->bhmy", heads, products)

    def labels_of_pairs(
        self, heads: Float[Tensor, "pairs k"], dependents: Float[Tensor, "pairs k"]
    ) -> Float[Tensor, "pairs l"]:
        """Return the scores of the labels of one arc for each pair."""
        return pair_scores(heads, dependents, self.label_bilinear.weight)


def _append_one(vectors: Tensor) -> Tensor:
    """Append a 1 to each vector, so that a bilinear product of two has linear terms as well."""
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1)
