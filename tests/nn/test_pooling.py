"""Dynamic multi-pooling against plain loops; masks; gradients."""

from __future__ import annotations

import torch

from trelliswork.nn import dynamic_multi_pooling


def test_each_part_gives_its_greatest_values() -> None:
    torch.manual_seed(0)
    tokens, first, last = torch.randn(3, 6, 2), torch.tensor([2, 0, 3]), torch.tensor([4, 5, 3])
    pooled = dynamic_multi_pooling(tokens, first, last)
    for row in range(3):
        a, b = int(first[row]), int(last[row])
        parts = [tokens[row, :a], tokens[row, a:b], tokens[row, b:]]
        expected = torch.cat([part.amax(0) if len(part) else torch.zeros(2) for part in parts])
        torch.testing.assert_close(pooled[row], expected)


def test_the_sentence_of_the_source_is_cut_before_the_third_and_the_eighth_word() -> None:
    words = torch.arange(1.0, 15).reshape(1, 14, 1)  # Peterson is the 3rd word, murder the 8th
    assert dynamic_multi_pooling(words, torch.tensor([2]), torch.tensor([7])).tolist() == [[2.0, 7.0, 14.0]]


def test_padding_never_changes_a_result() -> None:
    tokens = torch.randn(1, 4, 3)
    padded, mask = torch.cat([tokens, 9 + torch.rand(1, 2, 3)], 1), torch.arange(6)[None] < 4
    at = torch.tensor([1]), torch.tensor([3])
    torch.testing.assert_close(dynamic_multi_pooling(padded, *at, mask), dynamic_multi_pooling(tokens, *at))


def test_gradients_reach_the_greatest_values_only() -> None:
    tokens = torch.tensor([[[1.0], [5.0], [2.0], [4.0]]], requires_grad=True)
    dynamic_multi_pooling(tokens, torch.tensor([0]), torch.tensor([2])).sum().backward()
    assert tokens.grad is not None
    assert tokens.grad.flatten().tolist() == [0, 1, 0, 1]
