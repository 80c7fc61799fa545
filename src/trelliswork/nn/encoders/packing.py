"""The order of the tokens of a batch when its sentences are read step by step, from both ends at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Packing:
    """The m tokens of a batch in the order in which two LSTMs read them.

    The tokens of the first step come first, from the longest sentence to the shortest, then those of the second step,
    and so on; sentences that have ended take no part in later steps. Reader 0 goes from the first token to the last,
    reader 1 from the last to the first. Rows of states are the initial ones, which are 0, then those after each token.

    Attributes:
        counts: Number of sentences in each step.
        tokens: Flat positions of all tokens in the batch.
        places: Place of each of them in the order of each reader.
        order: Flat position of the token at each place, for each reader.
        before: Row of the previous state, for each place.
        sources: Row of the state of each reader at each flat position; 0 where there is no token.

        >>> packing = Packing.of(torch.tensor([[True, False], [True, True]]))
        >>> packing.counts, packing.order.tolist(), packing.before.tolist()
        ([2, 1], [[2, 0, 3], [3, 0, 2]], [0, 1, 2])
    """

    counts: list[int]
    tokens: Int[Tensor, "m"]
    places: Int[Tensor, "2 m"]
    order: Int[Tensor, "2 m"]
    before: Int[Tensor, "m"]
    sources: Int[Tensor, "positions2"]

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch n"]) -> Packing:
        """Return the packing of the tokens where `mask` is True, at least one."""
        inside = mask.numpy()
        lengths = inside.sum(1)
        rank = np.argsort(np.argsort(-lengths, kind="stable"))  # of each sentence among those sorted by length
        counts = (lengths > np.arange(lengths.max())[:, None]).sum(1)
        starts, first, m = np.cumsum(counts) - counts, counts[0], counts.sum()
        sentence, step = inside.nonzero()[0], inside.cumsum(1)[inside] - 1
        # Reader 0 reads a token in the step of its position, reader 1 in that of its distance to the last token.
        places = starts[np.stack([step, lengths[sentence] - 1 - step])] + rank[sentence]
        tokens, order, sources = np.flatnonzero(inside), np.empty_like(places), np.zeros((mask.numel(), 2), np.int64)
        np.put_along_axis(order, places, tokens[None], 1)
        sources[tokens] = (places + first + [[0], [first + m]]).T
        # A sentence has the same rank in every step: its previous place is `counts` of the previous step earlier.
        before = np.arange(m) + np.repeat(first - np.concatenate([[first], counts[:-1]]), counts)
        arrays = (tokens, places, order, before, sources.reshape(-1))
        return cls(counts.tolist(), *(torch.from_numpy(array) for array in arrays))

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each step its first place, the row of the state before that, and its number of places."""
        start, last = 0, self.counts[0]
        for count in self.counts:
            yield start, self.counts[0] + start - last, count
            start, last = start + count, count

    def pack(self, rows: Float[Tensor, "positions d"]) -> Float[Tensor, "2 m d"]:
        """Arrange the rows of all positions in the order of each reader."""
        return rows.index_select(0, self.order.flatten()).unflatten(0, self.order.shape)

    def unpack(self, states: Float[Tensor, "2 m_and_first d"]) -> Float[Tensor, "positions 2d"]:
        """Return the states of both readers at each position, side by side; 0 where there is no token."""
        return states.flatten(0, 1).index_select(0, self.sources).view(-1, 2 * states.shape[2])

    def pack_halves(self, rows: Float[Tensor, "positions 2d"]) -> Float[Tensor, "2 m d"]:
        """Arrange the first half of each row in the order of reader 0 and the second half in that of reader 1."""
        halves = 2 * self.order + torch.tensor([[0], [1]])
        return rows.reshape(2 * len(rows), -1).index_select(0, halves.flatten()).unflatten(0, self.order.shape)

    def sum(self, packed: Float[Tensor, "2 m d"], n_positions: int) -> Float[Tensor, "positions d"]:
        """Add the rows of both readers at the position of each token, the transpose of `pack`."""
        both = packed[0].index_select(0, self.places[0]).add_(packed[1].index_select(0, self.places[1]))
        return packed.new_zeros(n_positions, packed.shape[2]).index_copy_(0, self.tokens, both)
