"""From what a search found to trees: equal hypotheses are one, and arcs have their share of the beam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import TrellisworkError
from trelliswork.models.parsers.dependency.parser import Arc, Parsed, Pins
from trelliswork.models.parsers.dependency.pins import allowed_arcs, pinned_labels
from trelliswork.nn.transitions.kernels import Pinned
from trelliswork.runtime.shapes import Float, Int


class Searched(NamedTuple):
    """Hypotheses of a batch and their probabilities; of greedy search also that of the decision for each arc."""

    heads: Int[Tensor, "batch beam n"]
    labels: Int[Tensor, "batch beam n"]
    probabilities: Float[Tensor, "batch beam"]
    sure: Float[Tensor, "batch n"] | None = None


def probabilities_of(scores: Float[Tensor, "batch beam"], is_global: bool) -> Float[Tensor, "batch beam"]:
    """The probability of each hypothesis: its share of the beam if scores are global, else they are ln p."""
    return scores.softmax(-1) if is_global else scores.exp()


def answers(
    found: Searched,
    lengths: Sequence[int],
    labels: Vocabulary,
    tags: Sequence[Mapping[str, list[str]]],
    top_k: int,
    sure: bool,
) -> list[Parsed]:
    """The tree of each sentence and its `top_k` best; if `sure`, with the probability of each arc.

    A tree that several hypotheses have built has the probability of all of them.
    """
    shares = None if found.sure is None else found.sure.tolist()
    rows = zip(found.heads.tolist(), found.labels.tolist(), found.probabilities.tolist(), strict=True)
    parsed, names = [], labels.to_list()
    for i, (heads, named, weights) in enumerate(rows):
        n, trees = lengths[i], dict[tuple[Arc, ...], float]()
        for tree, numbers, weight in zip(heads, named, weights, strict=True):
            if weight > 0 or not trees:
                arcs = tuple(zip(tree[:n], map(names.__getitem__, numbers[:n]), strict=True))
                trees[arcs] = trees.get(arcs, 0.0) + weight
        best = max(trees, key=trees.__getitem__)
        of_arcs = () if not sure else _shares(best, trees) if shares is None else shares[i][:n]
        ranked = sorted(trees.items(), key=lambda each: -each[1])[:top_k]
        others = [(list(tree), p) for tree, p in ranked]
        parsed.append(Parsed(list(best), trees[best], of_arcs, best=others, tags=tags[i]))
    return parsed


def _shares(best: Sequence[Arc], trees: Mapping[tuple[Arc, ...], float]) -> list[float]:
    """How much of the beam has each arc."""
    total = sum(trees.values()) or 1.0
    return [sum(p for tree, p in trees.items() if tree[i] == arc) / total for i, arc in enumerate(best)]


def pinned_rows(sentences: Sequence[Sentence], pins: Sequence[Pins], labels: Vocabulary, system: str, n: int) -> Pinned:
    """What is known, for kernels; heads need a system that knows which arcs can still be reached."""
    allowed_arcs(sentences, pins, n)  # refuses words and heads that are not there
    heads, names = np.full((len(sentences), n + 1), -1), np.full((len(sentences), n + 1), -1)
    for row, known in enumerate(pins):
        for word, (head, _) in known.items():
            if head is not None:
                heads[row, word + 1] = head
    for row, word, label in pinned_labels(sentences, pins, labels):
        names[row, word + 1] = label
    if system != "arc-hybrid" and (heads >= 0).any():
        problem = f"pinned heads need a parser with arc-hybrid transitions, and this one has {system}"
        raise TrellisworkError(f"{problem}; pin labels alone, or train with --system arc-hybrid")
    return Pinned(heads, names)
