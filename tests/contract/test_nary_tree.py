"""Every query of `SpanTree` with an empty label against enumeration: trees of any arity, each exactly one value."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch

from tests.contract import spantrees, test_span_tree
from tests.contract.base import BACKENDS, INF, Instance, Plain, close
from trelliswork.distributions import SpanTree
from trelliswork.errors import ScoreError

EMPTY = 1


def is_nary(value: Any) -> bool:
    """Whether no node of two or more tokens is empty, but where a right child is."""
    ends = {end for _, end, _ in value}
    parents = {(start, end) for start, end, _ in value}
    for start, end, label in value:
        if end - start > 1 and label == EMPTY:
            inside = [each for each in parents if each[0] < start and each[1] == end]
            if not inside or start not in ends:
                return False
            parent = max(inside, key=lambda each: each[0])
            if (parent[0], start) not in parents:
                return False
    return True


class TestNaryTree(test_span_tree.TestSpanTree):
    def instances(self) -> dict[str, Instance]:
        return {name: each for name, each in spantrees.many().items() if name != "five tokens, one label"} | {
            "four tokens": spantrees.spans(13, batch=(2,), n=4, c=2, lengths=torch.tensor([4, 3]))
        }

    def impossible(self) -> tuple[Instance, int]:
        """Only an empty root is left to the second row."""
        return spantrees.spans(21, lengths=torch.tensor([3, 2, 1]), forbidden=((1, 0, 1, 0),)), 1

    def build(self, instance: Instance, backend: str) -> SpanTree:
        return SpanTree(**instance.scores, **instance.options, empty=EMPTY, backend=backend)  # type: ignore[arg-type]

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return nary_support(instance, row)


@lru_cache(maxsize=4096)
def nary_support(instance: Instance, row: int) -> dict[Plain, float]:
    return {value: score for value, score in spantrees.support(instance, row).items() if is_nary(value)}


def schroeder(n: int) -> int:
    """Trees over n leaves whose inner nodes have two or more children."""
    return [1, 1, 3, 11, 45, 197, 903][n - 1]


@pytest.mark.parametrize("n", range(1, 8))
def test_each_tree_of_any_arity_is_one_value(n: int) -> None:
    """With one label beside the empty one, and none on tokens, the values are Schröder's trees."""
    spans = torch.zeros(1, n, n, 2)
    spans[:, range(n), range(n), 0] = -INF
    assert SpanTree(spans, empty=EMPTY).count.item() == schroeder(n)


@pytest.mark.parametrize("c", [2, 8, 20])
@pytest.mark.parametrize("scale", [0.1, 5.0, 1000.0])
def test_kernel_and_reference_agree_on_long_rows_of_any_range(scale: float, c: int) -> None:
    generator = torch.Generator().manual_seed(c)
    spans = scale * torch.randn(9, 12, 12, c, dtype=torch.float64, generator=generator)
    spans[torch.rand(spans.shape, generator=generator) < 0.02] = -INF
    lengths = torch.tensor([12, 1, 2, 3, 12, 7, 8, 5, 11])
    fast, plain = (SpanTree(spans, lengths=lengths, empty=EMPTY, backend=each) for each in BACKENDS)
    close(fast.log_partition, plain.log_partition, magnitude=scale)
    torch.testing.assert_close(fast.marginals, plain.marginals, rtol=1e-8, atol=1e-10)
    if bool((plain.log_partition > -INF).all()):
        close(fast.top_k(6)[1], plain.top_k(6)[1], magnitude=scale)


def test_an_empty_left_child_is_no_value() -> None:
    dist = SpanTree(torch.zeros(1, 3, 3, 2), empty=EMPTY)
    right = [(0, 3, 0), (0, 1, 0), (1, 3, EMPTY), (1, 2, 0), (2, 3, 0)]
    left = [(0, 3, 0), (0, 2, EMPTY), (0, 1, 0), (1, 2, 0), (2, 3, 0)]
    assert dist.log_prob([right]).isfinite().all()
    with pytest.raises(ScoreError, match="the label 1 on tokens and right children only"):
        dist.log_prob([left])
    with pytest.raises(ScoreError, match=r"empty must be a label in 0..1, or None; got 2"):
        SpanTree(torch.zeros(1, 3, 3, 2), empty=2)
