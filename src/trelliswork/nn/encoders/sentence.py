"""The sentence approach: for each token, a convolution over the whole sentence and its maximum over time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.arrays import Bool, Float, Int

CELLS_AT_ONCE = 1 << 22  # limit of the size of [batch, some tokens, n, hidden], over which the maximum is taken


class SentenceConvolution(TokenEncoder):
    """Convolution over words and their distances to the token at hand, maximum over the sentence, linear, HardTanh.

    A filter is linear, so its value at word i for token t is a_i + b_(i-t): it takes 2 n values, not n². Only the
    maximum compares all pairs, for some tokens at a time, and its gradient needs only the position of the maximum.
    Words outside the sentence are 0.

    Args:
        dim: Width of the vectors of tokens.
        window: Number of words under a filter, odd.
        hidden: Number of filters.
        distance_dim: Width of the vectors of distances.
        max_distance: Largest distance with a vector of its own; larger ones share it.
        initialization: See `initialize_fan_in`.

        >>> SentenceConvolution(55, window=5, hidden=300)(torch.zeros(2, 7, 55)).shape
        torch.Size([2, 7, 300])

    Collobert et al. (2011), Natural language processing (almost) from scratch.
    """

    # [S3, Max Layer; S3.13; S3.4]

    def __init__(
        self,
        dim: int,
        *,
        window: int = 5,
        hidden: int = 300,
        distance_dim: int = 5,
        max_distance: int = 30,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        if window < 1 or window % 2 == 0 or max_distance < 1:
            raise ScoreError(
                f"window must be odd and max_distance at least 1; got {window} and {max_distance}; try 5 and 30"
            )
        self.dim, self.window, self.max_distance = hidden, window, max_distance
        self.distances = nn.Embedding(2 * max_distance + 1, distance_dim)
        self.of_words = nn.Conv1d(dim, hidden, window)
        self.of_distances = nn.Conv1d(distance_dim, hidden, window, bias=False)
        self.linear = nn.Linear(hidden, hidden)
        initialize_fan_in(self, initialization)

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions count as outside and give zeros."""
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device) if mask is None else mask
        half = self.window // 2
        words = F.pad(tokens.masked_fill(~mask.unsqueeze(-1), 0.0).transpose(1, 2), (half, half))
        by_word = self.of_words(words).transpose(1, 2)  # (batch, n, hidden)
        by_distance = self._by_distance()
        # The positions of the maxima need no gradient; the values there are gathered again, with one.
        best = self._best(by_word.detach(), by_distance.detach(), mask)
        at = torch.arange(tokens.shape[1], device=tokens.device)[:, None]
        maxima = by_word.gather(1, best) + by_distance.gather(0, self._row(best - at).flatten(0, 1)).view_as(best)
        return F.hardtanh(self.linear(maxima)) * mask.unsqueeze(-1)

    def _by_distance(self) -> Float[Tensor, "r hidden"]:
        """Return the values of the filters at distances -(m + w/2) .. m + w/2; the table has -m .. m."""
        ends = 2 * (self.window // 2)
        place = torch.arange(-ends, 2 * self.max_distance + 1 + ends, device=self.distances.weight.device)
        vectors = self.distances(place.clamp(0, 2 * self.max_distance))
        return self.of_distances(vectors.T.unsqueeze(0)).squeeze(0).T

    def _row(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        furthest = self.max_distance + self.window // 2
        return distance.clamp(-furthest, furthest) + furthest

    def _best(
        self, by_word: Float[Tensor, "batch n hidden"], by_distance: Float[Tensor, "r hidden"], mask: Tensor
    ) -> Int[Tensor, "batch n hidden"]:
        """Return for each token and filter the word where the filter is highest."""
        batch, n, hidden = by_word.shape
        at = torch.arange(n, device=by_word.device)
        by_word = by_word.masked_fill(~mask.unsqueeze(-1), -torch.inf)
        if torch.jit.is_tracing():  # the number of tokens is not fixed then, so no block size can be computed
            return _best_one_by_one(by_word, by_distance[self._row(at - at[:, None])])
        some = max(1, CELLS_AT_ONCE // (batch * n * hidden))
        best = [
            (by_word.unsqueeze(1) + by_distance[self._row(at - first[:, None])]).argmax(2) for first in at.split(some)
        ]
        return torch.cat(best, 1)


@torch.jit.script_if_tracing
def _best_one_by_one(by_word: Tensor, by_distance: Tensor) -> Tensor:
    """Compute `SentenceConvolution._best` in a loop that can be traced; `by_distance` is [n, n, hidden]."""
    best = [(by_word + by_distance[0]).argmax(1)]
    for t in range(1, by_distance.shape[0]):
        best.append((by_word + by_distance[t]).argmax(1))
    return torch.stack(best, 1)
