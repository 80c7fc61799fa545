"""Inputs: bags of n-grams and attributes are sums, padding counts nothing, and each dropout drops what it says."""

from __future__ import annotations

import pytest
import torch

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs import (
    CharacterCNN,
    CharacterLSTM,
    DirectConnections,
    LookupTables,
    NgramBag,
    TokenBatch,
    TokenInputs,
    WordDropout,
)

MASK = torch.ones(1, 3, dtype=torch.bool)
FEATURES = torch.tensor([[[2], [3], [2]]])


def test_ngrams_are_summed_and_padding_counts_nothing() -> None:
    bag = NgramBag(9, dim=4)
    vectors = bag(torch.tensor([[1, 5, 5, 0], [9, 0, 0, 0]]))
    table = bag.table.weight
    torch.testing.assert_close(vectors, torch.stack([table[1] + 2 * table[5], table[9]]))
    vectors.sum().backward()
    assert not bag.table.weight.grad[0].any()
    torch.testing.assert_close(bag(torch.tensor([[1, 5, 5]])), vectors[:1])


def test_direct_connections_sum_the_weights_of_attributes() -> None:
    direct = DirectConnections(6, num_labels=3)
    assert not direct.table.weight.any()
    torch.nn.init.normal_(direct.table.weight)
    attributes = torch.tensor([[[2, 5], [0, 3], [0, 0]]])
    weights, scores = direct.table.weight, direct(TokenBatch(FEATURES, MASK, attributes=attributes))
    torch.testing.assert_close(scores, torch.stack([weights[2] + weights[5], weights[3], torch.zeros(3)])[None])
    with pytest.raises(ScoreError, match="must have attributes; got none"):
        direct(TokenBatch(FEATURES, MASK))


@pytest.mark.parametrize("characters", [CharacterCNN, CharacterLSTM])
def test_parts_stand_side_by_side(characters: type[CharacterCNN | CharacterLSTM]) -> None:
    torch.manual_seed(0)
    inputs = TokenInputs(LookupTables([5], [2]), characters(7, dim=3, hidden=4), NgramBag(9, dim=3))
    forms, spellings, ngrams = torch.tensor([[0, 1, 0]]), torch.tensor([[2, 3, 4], [5, 0, 0]]), torch.tensor([[1], [2]])
    vectors = inputs(TokenBatch(FEATURES, MASK, forms, spellings, ngrams))
    assert vectors.shape == (1, 3, inputs.dim) == (1, 3, 9)
    torch.testing.assert_close(vectors[0, 0], vectors[0, 2])
    torch.testing.assert_close(vectors[0, 1, 6:], inputs.ngrams.table.weight[2])
    wider = torch.nn.functional.pad(spellings, (0, 2)), torch.nn.functional.pad(ngrams, (0, 3))
    torch.testing.assert_close(inputs(TokenBatch(FEATURES, MASK, forms, *wider)), vectors)
    with pytest.raises(ScoreError, match="must have forms and spellings; got none"):
        inputs(TokenBatch(FEATURES, MASK))
    with pytest.raises(ScoreError, match="must have forms and ngrams; got none"):
        inputs(TokenBatch(FEATURES, MASK, forms, spellings))


def test_word_dropout_drops_whole_tokens_in_training_only() -> None:
    torch.manual_seed(0)
    dropout = WordDropout(0.25)
    dropped = dropout(torch.ones(20, 100, 3)).sum(-1)
    assert set(dropped.unique().tolist()) == {0.0, 3.0}
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert torch.equal(dropout.eval()(torch.ones(1, 2, 3)), torch.ones(1, 2, 3))
    with pytest.raises(ScoreError, match=r"word_dropout must lie in \[0, 1\); got 1.0"):
        WordDropout(1.0)


def test_embedding_dropout_drops_a_word_wherever_it_comes() -> None:
    torch.manual_seed(0)
    tables = LookupTables([50, 3], [2, 2], embedding_dropout=0.5)
    for table in tables.tables:
        torch.nn.init.ones_(table.weight)
    features = torch.stack([torch.arange(50).repeat(2, 3), torch.ones(2, 150, dtype=torch.long)], -1)
    vectors = tables(features).unflatten(1, (3, 50))
    assert set(vectors[..., :2].unique().tolist()) == {0.0, 2.0}
    assert torch.equal(vectors, vectors[:1, :1].expand_as(vectors))
    assert vectors[..., 2:].eq(1).all()
    assert tables.eval()(features).eq(1).all()


def test_unknown_dropout_leaves_padding_alone() -> None:
    tables = LookupTables([5], [1], unknown_dropout=0.999)
    with torch.no_grad():
        tables.tables[0].weight.copy_(torch.arange(5.0)[:, None])
    vectors = tables(torch.tensor([[[0], [4]]] * 50)).squeeze(-1)
    assert not vectors[:, 0].any()
    assert (vectors[:, 1] == 1).float().mean() > 0.9
