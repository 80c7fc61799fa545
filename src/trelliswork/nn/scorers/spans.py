"""Scores of labelled spans from the encodings at their ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.runtime.arrays import Float, Int

MOST_SPANS = 1 << 12  # spans whose hidden vectors are in memory at a time, if no gradient is needed


class SpanPlaces(NamedTuple):
    """The spans of a batch, one after the other.

    Row b of a batch of n columns has n + 1 fenceposts; that before token i has number b (n + 1) + i.

    Attributes:
        starts: The fencepost where each span starts.
        ends: The fencepost where it ends.
        cells: Its place in a flat table of scores, (b n + first token) n + last token.
    """

    starts: Int[Tensor, "spans"]
    ends: Int[Tensor, "spans"]
    cells: Int[Tensor, "spans"]

    @staticmethod
    def of(lengths: Int[Tensor, "batch"], n: int) -> SpanPlaces:
        """Return all spans of rows of these lengths in n columns, sorted by first and last token."""
        place = torch.arange(n, device=lengths.device)
        real = (place[:, None] <= place) & (place < lengths[:, None, None])
        row, first, last = real.nonzero(as_tuple=True)
        return SpanPlaces(row * (n + 1) + first, row * (n + 1) + last + 1, (row * n + first) * n + last)


class SpanScorer(nn.Module):
    """Scores s(i, j, y) = w_y · relu(V (r_j - r_i)) + b_y of spans of tokens i..j-1.

    r_k, at fencepost k, consists of the first half of the vector of token k - 1, which has read the tokens before it,
    and the second half of that of token k, negated, which has read the tokens after it: of a bidirectional LSTM, these
    are its two directions. V is applied to fenceposts, not to spans. Label 0 is the empty one, with score 0.

    Args:
        dim: Width of the vectors of tokens.
        num_labels: Number of labels, including the empty one.
        hidden: Units of the hidden layer.
        dropout: Share of hidden units that are dropped, the same for all spans of a row.
        initialization: See `initialize_fan_in`.

        >>> SpanScorer(400, num_labels=9)(torch.zeros(2, 7, 400), torch.tensor([7, 3])).shape
        torch.Size([2, 7, 7, 9])

    Stern, Andreas and Klein (2017), A minimal span-based neural constituency parser; Gaddy, Stern and Klein (2018),
    What's going on in neural constituency parsers? An analysis.
    """

    def __init__(
        self,
        dim: int,
        num_labels: int,
        *,
        hidden: int = 250,
        dropout: float = 0.0,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        self.n_before = dim // 2
        self.posts = nn.Linear(dim, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.dropout = VariationalDropout(dropout)
        self.labels = nn.Linear(hidden, num_labels - 1)
        initialize_fan_in(self, initialization)

    def fenceposts(self, encoded: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+1 hidden"]:
        """Return V r_k; beyond the ends of a row, r_k is 0. Padding of `encoded` must be 0."""
        before = nn.functional.pad(encoded[..., : self.n_before], (0, 0, 1, 0))
        behind = nn.functional.pad(encoded[..., self.n_before :], (0, 0, 0, 1))
        posts: Tensor = self.posts(torch.cat([before, -behind], -1))
        return posts

    def ends(self, encoded: Float[Tensor, "batch n d"]) -> tuple[Float[Tensor, "posts h"], Float[Tensor, "posts h"]]:
        """Return the vectors of all fenceposts, row after row, as starts and as ends of spans."""
        keep = self.dropout(encoded.new_ones(len(encoded), 1, len(self.bias)))
        # relu(m x) = m relu(x) for a mask m >= 0 shared by the spans of a row: it is applied to the few fenceposts.
        posts = self.fenceposts(encoded) * keep
        return posts.flatten(0, 1), (posts + self.bias * keep).flatten(0, 1)

    def scores(
        self, ends: tuple[Tensor, Tensor], places: SpanPlaces
    ) -> Iterator[tuple[Int[Tensor, "spans"], Float[Tensor, "spans c-1"]]]:
        """Yield cells of spans and the scores of their labels except the empty one, in parts that fit in memory."""
        most = max(len(places.cells), 1) if torch.is_grad_enabled() else MOST_SPANS
        for starts, behind, cells in zip(*(field.split(most) for field in places), strict=True):
            hidden = ends[1].index_select(0, behind)
            if torch.is_grad_enabled():
                yield cells, self.labels(torch.relu(hidden - ends[0].index_select(0, starts)))
            else:
                yield cells, self.labels(hidden.sub_(ends[0].index_select(0, starts)).relu_())

    def forward(
        self, encoded: Float[Tensor, "batch n d"], lengths: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch n n c"]:
        """Return scores at [first token, last token, label]; 0 where there is no span."""
        batch, n, _ = encoded.shape
        table = encoded.new_zeros(batch * n * n, self.labels.out_features + 1)
        for cells, scores in self.scores(self.ends(encoded), SpanPlaces.of(lengths, n)):
            table[:, 1:].index_copy_(0, cells, scores)
        return table.view(batch, n, n, -1)


# Scores of segments: from a pyramid of gated convolutions, or from their ends, mean and length.


class PyramidScorer(nn.Module):
    """Scores V z + b of segments, whose vectors z are those of a gated recursive convolution.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Width of the vectors of segments.
        num_labels: Number of labels.
        max_length: Largest number of tokens in a segment.
        shared: Whether all lengths share V (erratum 5).

        >>> PyramidScorer(300, hidden=100, num_labels=5, max_length=10)(torch.zeros(2, 7, 300)).shape
        torch.Size([2, 7, 10, 5])

    Zhuo et al. (2016), Segment-level sequence modeling using gated recursive semi-Markov conditional random fields.
    """

    def __init__(self, dim: int, hidden: int, num_labels: int, max_length: int, *, shared: bool = False) -> None:
        super().__init__()
        self.entry = nn.Linear(dim, hidden)
        self.pyramid = GatedRecursiveConvolution(hidden, max_length)
        n_maps = 1 if shared else max_length
        self.maps = nn.Parameter(torch.empty(n_maps, hidden, num_labels).uniform_(-(hidden**-0.5), hidden**-0.5))
        self.bias = nn.Parameter(torch.zeros(max_length, num_labels))

    def forward(self, tokens: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k c"]:
        vectors = self.pyramid(self.entry(tokens).tanh())
        maps = self.maps.expand(vectors.shape[2], -1, -1)
        return torch.einsum("bnkd,kdc->bnkc", vectors, maps) + self.bias


class EndpointScorer(nn.Module):
    """Scores of segments from a hidden layer over their first token, last token, mean and length.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Units of the hidden layer.
        num_labels: Number of labels.
        max_length: Largest number of tokens in a segment.

    >>> EndpointScorer(300, hidden=100, num_labels=5, max_length=10)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 10, 5])
    """

    def __init__(self, dim: int, hidden: int, num_labels: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(dim, hidden, bias=False)
        self.mean, self.length = nn.Linear(dim, hidden, bias=False), nn.Embedding(max_length, hidden)
        self.output = nn.Linear(hidden, num_labels)

    def forward(self, tokens: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k c"]:
        n, k = tokens.shape[1], self.max_length
        start, length = torch.arange(n, device=tokens.device)[:, None], torch.arange(k, device=tokens.device)
        last = (start + length).clamp(max=n - 1)  # scores of segments that extend past the end are never used
        mean = sums_over_segments(self.mean(tokens), k) / (length + 1)[:, None]
        hidden = self.first(tokens).unsqueeze(2) + self.last(tokens)[:, last] + mean + self.length.weight
        return self.output(hidden.tanh())


def sums_over_segments(tokens: Float[Tensor, "batch n c"], max_length: int) -> Float[Tensor, "batch n k c"]:
    """Return at [i, d-1] the sum over tokens i..i+d-1, or over those that exist.

    >>> sums_over_segments(torch.tensor([[[1.0], [2.0], [4.0]]]), 2).squeeze(-1).tolist()
    [[[1.0, 3.0], [2.0, 6.0], [4.0, 4.0]]]
    """
    n = tokens.shape[1]
    start = torch.arange(n, device=tokens.device)
    past = (start[:, None] + torch.arange(1, max_length + 1, device=tokens.device)).clamp(max=n)
    sums = nn.functional.pad(tokens.cumsum(1), (0, 0, 1, 0))
    return sums[:, past] - sums[:, start, None]
