"""Segmentations whose scores are sums over tokens: what is given is [n, c], and [n, k, c] is computed when it is read.

    f(i, d, y) = starts[i, y] + tokens[i, y] + ... + tokens[i+d-1, y] + ends[i+d-1, y] + durations[d-1, y]

The kernels read this form (`part_kernels.py`). The reference makes `Segments` of it, by torch operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Float, Int
from trelliswork.structures.segments.structure import Places, Segments

NAMES = ("tokens", "durations", "starts", "ends", "transitions", "start", "end")


@dataclass(frozen=True)
class Factored:
    """The parts of a batch of segmentations, right-padded; what lies behind a row's length is never read."""

    tokens: Float[Tensor, "batch n c"]
    durations: Float[Tensor, "k c"]
    starts: Float[Tensor, "batch n c"] | None
    ends: Float[Tensor, "batch n c"] | None
    transitions: Float[Tensor, "c c"] | None
    start: Float[Tensor, "c"]
    end: Float[Tensor, "c"]
    lengths: Int[Tensor, "batch"]

    @staticmethod
    def of(scores: Sequence[Tensor | None], lengths: Int[Tensor, "batch"]) -> Factored:
        named: dict[str, Any] = dict(zip(NAMES, scores, strict=True))
        return Factored(**named, lengths=lengths)

    @property
    def scores(self) -> tuple[Tensor | None, ...]:
        """The score tensors, in the order of the fields."""
        return self.tokens, self.durations, self.starts, self.ends, self.transitions, self.start, self.end

    def with_scores(self, *scores: Tensor | None) -> Factored:
        return Factored.of(scores, self.lengths)

    def divided(self, t: float) -> Factored:
        return self.with_scores(*(None if each is None else each / t for each in self.scores))

    def double(self) -> Factored:
        """Return the same in float64, where the device has it: the reference sums as exactly as the kernels do."""
        if self.start.device.type == "mps":
            return self
        exact: list[Any] = [None if each is None else each.double() for each in self.scores]
        return self.with_scores(*exact)

    def whole(self) -> Segments:
        """Return the scores of all segments as one tensor [batch, n, k, c].

        Those that run past the end are any numbers.
        """
        n, k = self.tokens.shape[1], len(self.durations)
        columns, running = [], torch.zeros_like(self.tokens)
        for d in range(min(k, n)):
            running = running + _from(self.tokens, d)
            ended = running if self.ends is None else running + _from(self.ends, d)
            columns.append(ended if self.starts is None else ended + self.starts)
        columns += [running] * (k - len(columns))  # longer than any row
        segments = torch.stack(columns, 2) + self.durations
        return Segments(segments, self.transitions, self.start, self.end, self.lengths)

    def path_score(self, starts: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
        """The score of segmentations: parts are gathered, each token at the label that covers it."""  # [S0, score]
        places = Places.of(starts, self.lengths)
        valid = places.place < self.lengths[:, None]
        score = torch.where(valid, _at(self.tokens, places.covering), 0).sum(1)
        own = self.durations[(places.duration - 1).clamp(max=len(self.durations) - 1), places.label]
        if self.starts is not None:
            own = own + _at(self.starts, places.label)
        if self.ends is not None:
            lasts = (places.place + places.duration - 1).clamp(max=self.tokens.shape[1] - 1)
            rows = torch.arange(len(starts), device=starts.device)[:, None]
            own = own + self.ends[rows, lasts, places.label]
        score = score + torch.where(places.begins, own, 0).sum(1)
        return score + places.edge_score(self.transitions, self.start, self.end)


def _from(scores: Float[Tensor, "batch n c"], d: int) -> Float[Tensor, "batch n c"]:
    """Shift rows: row i of the result is row i + d; 0 behind the end."""
    if d == 0:
        return scores
    return torch.cat([scores[:, d:], scores.new_zeros(len(scores), d, scores.shape[2])], 1)


def _at(scores: Float[Tensor, "batch n c"], labels: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
    return scores.gather(2, labels[..., None]).squeeze(2)
