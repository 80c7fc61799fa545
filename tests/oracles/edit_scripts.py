"""An edit transducer by enumeration: every script step by step, with probabilities from the vectors of its cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

DELETE, INSERT, SUBSTITUTE, COPY = range(4)


class SlowTransducer:
    """log p(y | x) of one x, from the network's vectors: `left` of the places of x, and `right` of a prefix of y."""

    def __init__(self, network: Any, source: Tensor, copies: list[int]) -> None:
        self.network, self.copies, self.n = network, copies, len(source)
        self.cells: dict[Any, tuple[list[float], list[float]]] = {}
        self.left = network.encode(source[None], torch.tensor([len(source)]))[0]

    def right(self, prefix: tuple[int, ...]) -> Tensor:
        network = self.network
        known = [y if y < network.n_targets else network.begin + 1 for y in prefix]
        vectors = network.targets(torch.tensor([[network.begin, *known]]))
        states, _ = network.reader(vectors)
        return network.right(torch.cat([states[0, -1], vectors[0, -1]]))

    def cell(self, i: int, prefix: tuple[int, ...]) -> tuple[list[float], list[float]]:
        """Probabilities of the operations and of the symbols."""
        if (i, prefix) in self.cells:
            return self.cells[i, prefix]
        outputs = self.network.outputs(torch.tanh(self.left[i] + self.right(prefix))).double()
        allowed = [True, True, i < self.n, i < self.n and self.copies[i] >= 0]
        operations = outputs[:4].masked_fill(~torch.tensor(allowed), -torch.inf)
        found = self.cells[i, prefix] = operations.softmax(0).tolist(), outputs[4:].softmax(0).tolist()
        return found

    def steps(self, i: int, prefix: tuple[int, ...], y: int) -> Iterator[tuple[float, int]]:
        """The ways to write y here: how probable each is, and how many symbols of x it reads."""
        operations, symbols = self.cell(i, prefix)
        if y < len(symbols):
            yield operations[INSERT] * symbols[y], 0
            yield operations[SUBSTITUTE] * symbols[y], 1
        if i < self.n and self.copies[i] == y:
            yield operations[COPY], 1

    def scripts(self, y: tuple[int, ...], i: int = 0, j: int = 0, whole: bool = True) -> Iterator[float]:
        """The probability of each script that writes y from cell (i, j) on: to the end of x, or of the last symbol."""
        if not whole and j == len(y):
            yield 1.0
            return
        operations, _ = self.cell(i, y[:j])
        if i < self.n:
            yield from (operations[DELETE] * rest for rest in self.scripts(y, i + 1, j, whole))
        elif j == len(y):
            yield operations[DELETE]
        if j < len(y):
            for share, read in self.steps(i, y[:j], y[j]):
                if share > 0:
                    yield from (share * rest for rest in self.scripts(y, i + read, j + 1, whole))

    def strings(self, n_symbols: int, longest: int) -> list[tuple[int, ...]]:
        return [y for m in range(longest + 1) for y in itertools.product(range(n_symbols), repeat=m)]
