"""The layer over constituency trees: losses of whole and partial trees, decoding, learning."""

from __future__ import annotations

import pytest
import torch

from trelliswork.distributions import SpanTree
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.nn import TreeCRF

LENGTHS = torch.tensor([4, 2])


def scores() -> torch.Tensor:
    return torch.randn(2, 4, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_log_likelihood_of_gold_trees() -> None:
    spans = scores()
    dist = SpanTree(spans, lengths=LENGTHS)
    trees = dist.sample(generator=torch.Generator().manual_seed(1))
    wanted = dist.log_prob(trees)
    for reduction, value in {
        "none": wanted,
        "sum": wanted.sum(),
        "mean": wanted.mean(),
        "token_mean": wanted.sum() / 6,
    }.items():
        layer = TreeCRF(3)
        torch.testing.assert_close(layer(spans, trees, LENGTHS, reduction), value)
        torch.testing.assert_close(layer(spans, dist.to_nodes(trees), LENGTHS, reduction), value)


def test_a_partial_tree_sums_over_what_agrees() -> None:
    spans = scores()
    flat = [[(0, 4, 1), (1, 3, None)], [(0, 2, 0)]]
    found = TreeCRF(3)(spans, flat, LENGTHS, "none")
    torch.testing.assert_close(found, SpanTree(spans, lengths=LENGTHS).log_prob_of_set(flat))


def test_it_learns_the_trees_it_is_shown() -> None:
    spans = torch.zeros(2, 4, 4, 3, dtype=torch.float64, requires_grad=True)
    layer = TreeCRF(3)
    trees = SpanTree(scores(), lengths=LENGTHS).argmax
    optimizer = torch.optim.SGD([spans], lr=5.0)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = -layer(spans, trees, LENGTHS)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < losses[0]
    assert layer.decode(spans, LENGTHS) == trees
    marginals = layer.marginals(spans, LENGTHS)
    assert marginals.requires_grad and bool((marginals >= 0).all())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: TreeCRF(0), "num_labels must be at least 1"),
        (lambda: TreeCRF(1)(torch.zeros(1, 1, 1, 1), [[(0, 1, 0)]], None, "avg"), "reduction must be"),
        (lambda: TreeCRF(2).decode(torch.zeros(1, 2, 2, 3)), "must score 2 labels"),
    ],
)
def test_what_cannot_be_is_explained(ask, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ScoreError, match=message):
        ask()


@pytest.mark.parametrize("wrong", [(0, 2), (0, 2, "NP"), 7, (0.0, 2, 1)])
def test_what_is_no_node_is_named(wrong: object) -> None:
    with pytest.raises(ScoreError, match=r"nodes must be \(start, end, label\)"):
        TreeCRF(3)(scores(), [[wrong], []], LENGTHS)  # type: ignore[list-item]
    with pytest.raises(ScoreError):
        SpanTree(scores(), lengths=LENGTHS).log_prob([[wrong], [(0, 2, 0), (0, 1, 0), (1, 2, 0)]])


def test_impossible_trees_are_named() -> None:
    with pytest.raises(ConstraintError, match="the tree of row 1 is impossible"):
        TreeCRF(3)(scores(), [[], [(0, 3, 0), (1, 4, 0)]])


def test_a_batch_without_rows_has_a_loss_of_zero() -> None:
    assert TreeCRF(3)(torch.zeros(0, 4, 4, 3), []) == 0
    assert SpanTree(torch.zeros(0, 4, 4, 3), backend="torch").log_prob([]).shape == (0,)
