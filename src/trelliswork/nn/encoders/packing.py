"""Where tokens stand when the sentences of a batch are read step by step, from both ends at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Packing:
    """The m tokens of a batch in the order of steps: what is read first, of the longest sentence to the shortest, what
    is read second, ... Sentences that have ended have no place in later steps.

    The first reader goes from the first token to the last, the second from the last to the first. The states that they
    pass through are kept with those before the first step ahead, which are 0.

        >>> packing = Packing.of(torch.tensor([[True, False], [True, True]]))
        >>> packing.counts, packing.order.tolist(), packing.before.tolist()
        ([2, 1], [[2, 0, 3], [3, 0, 2]], [0, 1, 2])
    """

    counts: list[int]  # of sentences that go on, for each step
    tokens: Int[Tensor, "m"]  # the flat positions of all tokens
    places: Int[Tensor, "2 m"]  # where each of them is packed
    order: Int[Tensor, "2 m"]  # the flat position of the token at each place
    before: Int[Tensor, "m"]  # the row of states before each place
    sources: Int[Tensor, "positions2"]  # the row of states for each position and reader; 0 where there is no token

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch n"]) -> Packing:
        """The packing of the tokens that are True; there must be one."""
        inside = mask.numpy()
        lengths = inside.sum(1)
        rank = np.argsort(np.argsort(-lengths, kind="stable"))
        counts = (lengths > np.arange(lengths.max())[:, None]).sum(1)
        starts, first, m = np.cumsum(counts) - counts, counts[0], counts.sum()
        sentence, step = inside.nonzero()[0], inside.cumsum(1)[inside] - 1
        places = starts[np.stack([step, lengths[sentence] - 1 - step])] + rank[sentence]
        tokens, order, sources = np.flatnonzero(inside), np.empty_like(places), np.zeros((mask.numel(), 2), np.int64)
        np.put_along_axis(order, places, tokens[None], 1)
        sources[tokens] = (places + first + [[0], [first + m]]).T
        before = np.arange(m) + np.repeat(first - np.concatenate([[first], counts[:-1]]), counts)
        found = (torch.from_numpy(each) for each in (tokens, places, order, before, sources.reshape(-1)))
        return cls(counts.tolist(), *found)

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """For each step its first place, the row of the state before that, and how many places it has."""
        start, last = 0, self.counts[0]
        for count in self.counts:
            yield start, self.counts[0] + start - last, count
            start, last = start + count, count

    def pack(self, rows: Float[Tensor, "positions d"]) -> Float[Tensor, "2 m d"]:
        """The row of each position at its places, once for each reader."""
        return rows.index_select(0, self.order.flatten()).unflatten(0, self.order.shape)

    def unpack(self, states: Float[Tensor, "2 m_and_first d"]) -> Float[Tensor, "positions 2d"]:
        """The states of both readers at each position, 0 where there is no token."""
        return states.flatten(0, 1).index_select(0, self.sources).view(-1, 2 * states.shape[2])

    def pack_halves(self, rows: Float[Tensor, "positions 2d"]) -> Float[Tensor, "2 m d"]:
        """The first half of each row at the places of the first reader, the other half at those of the second."""
        halves = 2 * self.order + torch.tensor([[0], [1]])
        return rows.reshape(2 * len(rows), -1).index_select(0, halves.flatten()).unflatten(0, self.order.shape)

    def sum(self, packed: Float[Tensor, "2 m d"], n_positions: int) -> Float[Tensor, "positions d"]:
        """What both readers have for each token, added up at its position; the inverse way of `pack`."""
        both = packed[0].index_select(0, self.places[0]).add_(packed[1].index_select(0, self.places[1]))
        return packed.new_zeros(n_positions, packed.shape[2]).index_copy_(0, self.tokens, both)
