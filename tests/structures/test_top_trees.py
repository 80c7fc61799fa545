"""The k best trees where the contract's small trees do not reach: all there are, ties up to rounding, long rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import spantrees
from tests.contract.base import INF, close
from tests.oracles.dependencies import trees
from trelliswork.distributions import ProjectiveTree, SpanningTree, SpanTree, WeightedCFG
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.structures.grammar.grammar import Grammar

families = pytest.mark.parametrize("family", [SpanningTree, ProjectiveTree])
either_root = pytest.mark.parametrize("single_root", [True, False])
GRAMMAR = Grammar.from_rules("S -> S S 1 | A B 2 | 'a' 1\nA -> A B 1 | B S 1 | 'a' 1\nB -> S A 1 | 'a' 1")


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_holes(scores: Tensor) -> Tensor:
    """Without some of the scores; the arcs from one word to the next and the first label stay."""
    forbidden = torch.rand(scores.shape, generator=torch.Generator().manual_seed(1)) < 0.25
    (forbidden[..., 0] if scores.shape[-1] <= 3 else forbidden.diagonal(1, -2, -1)).fill_(False)
    return scores.masked_fill(forbidden, -INF)


def mutual(scores: Tensor) -> Tensor:
    """Words 1 and 2 prefer each other to the rest by 400 nats: every tree leaves a cycle."""
    found = scores.clone()
    found[:, 1, 2] += 400.0
    found[:, 2, 1] += 400.0
    return found


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda scores: scores,
    "holes": with_holes,
    "ties": torch.round,
    "ties up to rounding": lambda scores: scores.round() / 10,
    "all equal": torch.zeros_like,
    "wide": lambda scores: 300 * scores,
    "mutual": mutual,
}


def every_score(family: type[DependencyTree], arcs: Tensor, labels: Tensor | None, single_root: bool) -> dict[Any, Any]:
    """All trees of one row by brute force, as the library writes them, and their scores."""
    found = {}
    n = len(arcs) - 1
    choices = range(1 if labels is None else labels.shape[-1])
    for heads in trees(n, single_root, family is ProjectiveTree):
        for chosen in itertools.product(choices, repeat=n):
            score = 0.0
            for word, (head, label) in enumerate(zip(heads, chosen, strict=True), 1):
                score += float(arcs[head, word]) + (0.0 if labels is None else float(labels[head, word, label]))
            if score > -INF:
                found[heads if labels is None else tuple(zip(heads, chosen, strict=True))] = score
    return found


def as_key(value: list[Any]) -> Any:
    return tuple(tuple(each) if isinstance(each, list) else each for each in value)


@families
@either_root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "n_labels"), [(5, 0), (3, 1), (3, 3)])
def test_all_trees_come_once_and_in_order(
    family: type[DependencyTree], single_root: bool, kind: str, n: int, n_labels: int
) -> None:
    """Ragged rows, and more trees asked for than there are."""
    lengths = [n, 1, n - 1]
    arcs = KINDS[kind](normal(n, 3, n + 1, n + 1))
    labels = KINDS["holes" if kind == "holes" else "ties"](normal(7, 3, n + 1, n + 1, n_labels)) if n_labels else None
    wanted = [
        every_score(family, arcs[b, : m + 1, : m + 1], None if labels is None else labels[b], single_root)
        for b, m in enumerate(lengths)
    ]
    assert all(wanted)
    k = max(map(len, wanted)) + 2
    dist = family(arcs, labels, lengths=torch.tensor(lengths), single_root=single_root)
    values, scores = dist.top_k(k)
    again, _ = dist.top_k(k)
    assert torch.equal(values, again) and len(values) == k
    assert (scores[1:] <= scores[:-1]).all()
    for row, (length, mine) in enumerate(zip(lengths, wanted, strict=True)):
        close(scores[:, row], sorted(mine.values(), reverse=True) + [-INF] * (k - len(mine)))
        kept = [as_key(values[rank, row, :length].tolist()) for rank in range(len(mine))]
        assert set(kept) == set(mine)
        close(scores[: len(mine), row], [mine[each] for each in kept])


def lawler(arcs: Tensor, single_root: bool, k: int) -> list[float]:
    """The k best scores by searching, for each tree and word, the trees that agree before it and differ there."""

    def search(given: Tensor) -> tuple[float, list[int]] | None:
        dist = SpanningTree(given, single_root=single_root)
        if dist.count.item() == 0:
            return None
        return float(dist.score(dist.argmax)), dist.argmax[0].tolist()

    found, sets = [], [(search(arcs), arcs, 0)]
    while len(found) < k:
        best = max(range(len(sets)), key=lambda i: sets[i][0][0])
        (score, heads), given, first = sets.pop(best)
        found.append(score)
        for word in range(first, len(heads)):
            rest = given.clone()
            for fixed in range(first, word):
                rest[0, [h for h in range(len(heads) + 1) if h != heads[fixed]], fixed + 1] = -INF
            rest[0, heads[word], word + 1] = -INF
            if (result := search(rest)) is not None:
                sets.append((result, rest, word))
    return found


@either_root
@pytest.mark.parametrize("kind", ["plain", "holes", "ties", "mutual"])
def test_longer_spanning_trees(single_root: bool, kind: str) -> None:
    arcs = KINDS[kind](normal(3, 1, 13, 13))
    values, scores = SpanningTree(arcs, single_root=single_root).top_k(25)
    assert len({as_key(each) for each in values[:, 0].tolist()}) == 25
    close(scores[:, 0], lawler(arcs, single_root, 25))


LONGER: dict[str, Callable[[Tensor, str], Any]] = {
    "projective": lambda s, backend: ProjectiveTree(s[..., 0], backend=backend),
    "projective, many roots, labels": lambda s, backend: ProjectiveTree(
        s[..., 0], s, single_root=False, backend=backend
    ),
    "span trees": lambda s, backend: SpanTree(s, lengths=torch.tensor([9, 6]), backend=backend),
    "trees of any arity": lambda s, backend: SpanTree(s, empty=1, lengths=torch.tensor([9, 6]), backend=backend),
    "grammar": lambda s, backend: WeightedCFG(
        GRAMMAR, lexical=s[..., 0, :], lengths=torch.tensor([6, 9]), backend=backend
    ),
}  # fmt: skip


@pytest.mark.parametrize("structure", LONGER)
@pytest.mark.parametrize("kind", ["plain", "holes", "ties", "ties up to rounding", "wide"])
def test_charts_agree_with_the_reference(structure: str, kind: str) -> None:
    given = KINDS[kind](normal(11, 2, 9, 9, 3))
    dist, reference = (LONGER[structure](given, backend) for backend in ("kernel", "torch"))
    (values, scores), (_, wanted) = dist.top_k(40), reference.top_k(40)
    close(scores, wanted)
    for row in range(2):
        kept = [repr(each[row]) for rank, each in enumerate(values) if scores[rank, row] > -INF]
        assert len(kept) == len(set(kept))


def test_every_span_tree_there_is() -> None:
    """More derivations than there is room for at first."""
    for kind in ("plain", "ties"):
        instance = spantrees.spans(1, batch=(1,), n=5).mapped(KINDS[kind])
        support = spantrees.support(instance, 0)
        values, scores = SpanTree(instance.scores["spans"]).top_k(len(support) + 1)
        assert {tuple(each[0]) for each in values[:-1]} == set(support)
        close(scores[:, 0], [*sorted(support.values(), reverse=True), -INF])


@families
def test_scores_are_differentiable(family: type[DependencyTree]) -> None:
    arcs = normal(5, 1, 6, 6).requires_grad_()
    values, scores = family(arcs).top_k(7)
    scores[6].sum().backward()
    marks = torch.zeros(6, 6, dtype=torch.float64)
    marks[values[6, 0], torch.arange(1, 6)] = 1
    assert torch.equal(arcs.grad[0], marks)


def test_long_rows_in_reasonable_time() -> None:
    """The targets are 2 s for each; the machine of a test may be busy."""
    arcs, spans = normal(0, 1, 201, 201), normal(1, 1, 200, 200, 5)
    long = [SpanningTree(arcs), SpanningTree(arcs, single_root=False), ProjectiveTree(arcs), SpanTree(spans)]
    for dist in [*long, SpanTree(spans, empty=0)]:
        dist.constrain().top_k(2)
        begun = time.process_time()
        _, scores = dist.top_k(100)
        assert time.process_time() - begun < 8
        assert (scores[1:] <= scores[:-1]).all() and (scores > -INF).all()
