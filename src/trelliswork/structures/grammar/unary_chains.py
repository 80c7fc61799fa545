"""Chains of unary rules: summed in closed form, the best of each pair, and those that meet some symbols."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array

FAINT = 1e-12  # chains of less weight are left out of the sums
Unary = Mapping[tuple[int, int], float]  # weights of rules (parent, child)


class UnaryChain(NamedTuple):
    """Unary rules one below the other: their weight, the symbols above the last, and the last."""

    weight: float
    above: tuple[int, ...]
    bottom: int

    def meets(self, wanted: Collection[int]) -> bool:
        """Return whether one of its symbols is wanted."""
        return self.bottom in wanted or any(symbol in wanted for symbol in self.above)


def summed_chains(unary: Unary) -> dict[tuple[int, int], float]:
    """Return Σ over all chains of one rule or more, (I - U)^-1 - I: the weights of (ancestor, child)."""
    if not unary:
        return {}
    used = np.array(sorted({symbol for pair in unary for symbol in pair}))
    step = step_weights(used, unary)
    if np.abs(np.linalg.eigvals(step)).max() >= 1 - 1e-9:
        raise ScoreError("chains of unary rules must sum to a number; the rules of a cycle have weights of 1 or more")
    total = np.linalg.inv(np.eye(len(used)) - step) - np.eye(len(used))
    return {(int(used[a]), int(used[b])): float(total[a, b]) for a, b in np.argwhere(total > FAINT).tolist()}


def best_chains(unary: Unary) -> dict[tuple[int, int], float]:
    """Return the weight of the best chain of one rule or more from each ancestor to each child."""
    parents: dict[int, list[tuple[int, float]]] = {}
    for (parent, child), weight in unary.items():
        parents.setdefault(child, []).append((parent, weight))
    best: dict[tuple[int, int], float] = {}
    for child in parents:
        heap, done = [(-1.0, child)], set()
        while heap:
            weight, symbol = heapq.heappop(heap)
            if symbol in done:
                continue
            done.add(symbol)
            if symbol != child:
                best[symbol, child] = -weight
            for parent, step in parents.get(symbol, ()):
                if parent not in done:
                    heapq.heappush(heap, (weight * step, parent))
    return best


def simple_chains(symbol: int, below: Mapping[int, Sequence[tuple[int, float]]]) -> list[UnaryChain]:
    """Return every chain down from a symbol that meets none twice."""
    chains, waiting = [], [UnaryChain(1.0, (), symbol)]
    while waiting:
        chain = waiting.pop()
        chains.append(chain)
        above = (*chain.above, chain.bottom)
        waiting += [
            UnaryChain(chain.weight * weight, above, child)
            for child, weight in below.get(chain.bottom, ())
            if child not in above and weight > 0
        ]
    return chains


class Through:
    """Sums over the chains, those of no rule counted, that meet one of the symbols that are `wanted`.

    A chain is cut where it first meets one: what is above meets none, what is below is any chain. So no sum is a
    difference, and small ones are exact.
    """

    def __init__(self, unary: Unary, wanted: Collection[int]):
        self.used = np.array(sorted({symbol for pair in unary for symbol in pair}), np.int64)
        self.others = sorted(set(wanted) - set(self.used.tolist()))  # wanted, and in no rule
        self.is_wanted = np.isin(self.used, list(wanted))
        self.step = step = step_weights(self.used, unary)
        unit, met = np.eye(len(self.used)), self.is_wanted
        self.every = np.linalg.inv(unit - step)
        self.without = np.where(met[:, None] | met, 0.0, np.linalg.inv(unit - np.where(met[:, None] | met, 0.0, step)))
        first = np.where(met, unit + self.without @ step, 0.0)  # down to the first that is wanted
        self.through = first @ self.every

    def chains(self) -> dict[tuple[int, int], float]:
        """Return the weights of (ancestor, child); one may be its own ancestor."""
        pairs = np.argwhere(self.through > 0)
        weights = {(int(self.used[a]), int(self.used[b])): float(self.through[a, b]) for a, b in pairs.tolist()}
        return weights | {(symbol, symbol): 1.0 for symbol in self.others}

    def expected(self, out: Array, base: Array) -> Array:
        """Return the expected number of each symbol in chains from tops of weight `out` to bottoms of weight `base`."""
        expected = np.zeros_like(base)
        expected[self.others] = out[self.others] * base[self.others]
        tops, bottoms = out[self.used], base[self.used]
        below = self.every @ bottoms
        before = (tops @ self.through) * below + (tops @ self.without) * (self.through @ bottoms)
        expected[self.used] = np.where(self.is_wanted, (tops @ self.every) * below, before)
        return expected

    def expected_log_weight(self, out: Array, base: Array, *, is_free: bool) -> float:
        """Return the expected logarithm of the weights of the rules of such chains; of all chains if they are free.

        Args:
            out: weights above the top of a chain [symbols].
            base: weights below the bottom of a chain [symbols].
            is_free: whether all chains count, and not only those that meet a wanted symbol.

        Returns:
            A number.
        """
        tops, bottoms = out[self.used], base[self.used]
        above, below = tops @ self.every, self.every @ bottoms
        counts = np.outer(above, below)
        if not is_free:
            met = np.where(self.is_wanted, above, tops @ self.through)  # above and at the parent of a rule
            counts = np.outer(met, below) + np.outer(tops @ self.without, self.through @ bottoms)
        some = self.step > 0
        return float((counts[some] * self.step[some] * np.log(self.step[some])).sum())


def step_weights(used: Array, unary: Unary) -> Array:
    """Return the weights of rules as a matrix [parent, child] over the symbols that are in some."""
    place = {int(symbol): i for i, symbol in enumerate(used)}
    step = np.zeros((len(used), len(used)))
    for (parent, child), weight in unary.items():
        step[place[parent], place[child]] += weight
    return step


def best_through(chains: Collection[tuple[int, UnaryChain]], wanted: Collection[int]) -> dict[tuple[int, int], float]:
    """Return the weight of the best chain from each symbol to each below that meets one that is wanted."""
    best: dict[tuple[int, int], float] = {}
    for symbol, chain in chains:
        if chain.meets(wanted):
            pair = symbol, chain.bottom
            best[pair] = max(best.get(pair, 0.0), chain.weight)
    return best
