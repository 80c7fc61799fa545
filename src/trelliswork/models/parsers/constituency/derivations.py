"""From trees of any arity with unary chains to nodes with one label each, and back.

A chain of constituents over the same words has a joint label (S+VP). A constituent of more than two children is its
first child, and an empty node over the others: label 0, which also stands on words without a constituent of their own.
`SpanTree(..., empty=0)` has exactly one value for each tree.

>>> labels = ChainLabels(["", "S", "NP", "S+VP"])
>>> nodes = labels.nodes(3, [(0, 3, "S"), (0, 3, "VP"), (1, 2, "NP")])
>>> nodes
[(0, 3, 3), (0, 1, 0), (1, 3, 0), (1, 2, 2), (2, 3, 0)]
>>> labels.brackets(nodes)
[(0, 3, 'S'), (0, 3, 'VP'), (1, 2, 'NP')]

>>> shares = np.zeros((3, 3, 2))
>>> shares[0, 2, 0], shares[0, 1, 1], shares[1, 2, 1] = 1.0, 0.6, 0.4
>>> expected_brackets(shares)
[(0, 3, [0]), (0, 2, [1])]

Goodman (1996), Parsing algorithms and metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.data.brackets import ROOTS
from trelliswork.distributions.span_tree import SpanTree
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.runtime.arrays import Array, Float
from trelliswork.structures.grammar.tree import chain_of, joint_label

Bracket = tuple[int, int, str]
Node = tuple[int, int, int]
EMPTY = ""


class ChainLabels:
    """The joint labels of a treebank, the empty one first."""

    def __init__(self, names: Sequence[str]):
        self.vocabulary = Vocabulary(names)
        self.chains = [[] if name == EMPTY else chain_of(name) for name in names]

    @staticmethod
    def from_sentences(sentences: Iterable[Sentence]) -> ChainLabels:
        """Return all labels that occur."""
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(label for _, _, label in chains(len(sentence), brackets_of(sentence)))
        return ChainLabels([EMPTY, *Vocabulary.from_counts(counts)])

    def __len__(self) -> int:
        return len(self.chains)

    @property
    def names(self) -> list[str]:
        """With the empty one."""
        return self.vocabulary.to_list()

    def nodes(self, n: int, brackets: Sequence[Bracket]) -> list[Node]:
        """Return the one value of `SpanTree` that a tree over n words is: 2 n - 1 nodes, parents before children."""
        labelled = {(start, end): self._index(label) for start, end, label in chains(n, brackets)}
        spans = {*labelled, *((i, i + 1) for i in range(n))}
        ordered = sorted(spans, key=lambda span: (-span[0], span[1]))  # children before parents, the last first
        nodes: list[Node] = []
        done: list[tuple[int, int]] = []  # spans whose parent is still to come, the last one leftmost
        for start, end in ordered:
            inner = []
            while done and done[-1][0] >= start and done[-1][1] <= end:
                inner.append(done.pop())
            nodes += [(rest[0], end, 0) for rest in inner[1:-1]]
            nodes.append((start, end, labelled.get((start, end), 0)))
            done.append((start, end))
        return sorted(nodes, key=lambda node: (node[0], -node[1]))

    def _index(self, label: str) -> int:
        if label not in self.vocabulary:
            raise TrellisworkError(f"expected one of the labels {', '.join(self.names[1:])}; got {label!r}")
        return self.vocabulary.index(label)

    def brackets(self, nodes: Iterable[Node]) -> list[Bracket]:
        """Return the constituents of a value, outermost first."""
        return [(start, end, label) for start, end, y in nodes for label in self.chains[y]]

    def with_label(self, label: str | None) -> list[bool]:
        """Return for each joint label whether the chain has this one; any if it is None."""
        return [bool(chain) if label is None else label in chain for chain in self.chains]

    @cached_property
    def single(self) -> dict[str, int]:
        """The labels of single constituents, numbered in the order of the alphabet."""
        return {name: i for i, name in enumerate(sorted({name for chain in self.chains for name in chain}))}

    @cached_property
    def having(self) -> Float[Tensor, "single c"]:
        """1 where a chain has a label."""
        return torch.tensor([self.with_label(name) for name in self.single]).float().reshape(-1, len(self))

    @cached_property
    def items(self) -> tuple[Array, Array, int]:
        """The constituents of labels 1, 2, ... as (starts, items, how many there are).

        A name that a chain has twice is two items, so that chains share as many as they have in common.
        """
        number: dict[tuple[str, int], int] = {}
        starts, item_numbers = [0], list[int]()
        for chain in self.chains[1:]:
            item_numbers += [
                number.setdefault((name, chain[:i].count(name)), len(number)) for i, name in enumerate(chain)
            ]
            starts.append(len(item_numbers))
        return np.array(starts, np.int64), np.array(item_numbers, np.int64), len(number)

    @cached_property
    def sizes(self) -> Float[Tensor, "c"]:
        """Number of constituents of each chain."""
        return torch.tensor([float(len(chain)) for chain in self.chains])


def chains(n: int, brackets: Sequence[Bracket]) -> list[Bracket]:
    """Return constituents with joint labels; all words together get TOP if there is nothing above them."""
    whole = n == 1 or (bool(brackets) and brackets[0][:2] == (0, n))
    rooted = list(brackets) if whole else [(0, n, ROOTS[0]), *brackets]
    return [
        (*span, joint_label(label for _, _, label in group)) for span, group in groupby(rooted, lambda each: each[:2])
    ]


def brackets_of(sentence: Sentence) -> tuple[Bracket, ...]:
    """Return the constituents of a sentence, which must be there."""
    if sentence.brackets is None or sentence.tags is None:
        problem = "expected a tree in brackets, got a sentence without; give a treebank"
        raise DataError(sentence.file or "sentence", problem, line=sentence.line)
    return sentence.brackets


# The constituents of one sentence whose expected F1 is largest, from the probability of each of them.

ROUNDS = 6  # at most, until the price of a constituent stays the same
FIRST_PRICE = 0.4


def expected_brackets(shares: Array, known: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int, list[int]]]:
    """Return the spans (start, end, labels) of a tree with the highest 2 E[right] / (predicted + E[gold]).

    `shares` [n, n, label] has the probability of a constituent over tokens i..j. One pays if its probability is above
    half of the F1 that is reached (Dinkelbach 1967, On nonlinear fractional programming), so that the best tree for
    one price gives the next. A span may have several labels, of which the caller knows the order. The spans of tokens
    i..j in `known`, which nothing else crosses, are there with their best label at least.
    """
    expected, price = float(shares.sum()), FIRST_PRICE
    brackets: list[tuple[int, int, list[int]]] = []
    for _ in range(ROUNDS):
        pays = shares > price
        gains = np.where(pays, shares - price, 0.0).sum(-1)
        more = gains.sum() + 1.0  # than all others together
        for i, j in known:
            pays[i, j, shares[i, j].argmax()] = True
            gains[i, j] += more
        spans = _best_spans(gains)
        brackets = [(i, j, np.flatnonzero(pays[i, j - 1]).tolist()) for i, j in spans if pays[i, j - 1].any()]
        right = sum(float(shares[i, j - 1, labels].sum()) for i, j, labels in brackets)
        again = right / max(sum(len(labels) for *_, labels in brackets) + expected, 1e-9)
        if abs(again - price) < 1e-9:
            break
        price = again
    return brackets


def _best_spans(gains: Array) -> list[tuple[int, int]]:
    """Return the spans of a binary tree with the highest sum of gains, parents before children."""
    scores = torch.from_numpy(np.ascontiguousarray(gains))[None, :, :, None]
    (nodes,) = SpanTree(scores).argmax_nodes.tolist()
    return sorted(((start, end) for start, end, _ in nodes if start >= 0), key=lambda span: (span[0], -span[1]))
