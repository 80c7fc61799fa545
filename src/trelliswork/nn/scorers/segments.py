"""Scores of segments: from a pyramid of gated convolutions, or from their ends, mean and length."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.encoders.grconv import GatedRecursiveConvolution
from trelliswork.runtime.shapes import Float


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
