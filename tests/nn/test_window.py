"""The window of [S3], its lookup tables, and the context scorer of [S1]."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.hand_gradients import networks as hand
from trelliswork.errors import ScoreError
from trelliswork.nn.encoders import WindowEncoder
from trelliswork.nn.inputs import UNKNOWN, LookupTables
from trelliswork.nn.scorers import ContextScorer


def make_encoder(window: int = 3) -> WindowEncoder:
    torch.manual_seed(1)
    return WindowEncoder(8, window=window, hidden=7).double()


def make_features(batch: int, n: int) -> Tensor:
    return torch.stack([torch.randint(1, 20, (batch, n)), torch.randint(1, 5, (batch, n))], dim=-1)


def test_equals_the_hand_written_window() -> None:
    encoder, lookup, words = make_encoder(5), LookupTables([20], [8]).double(), torch.tensor([4, 9, 17, 2])
    table = lookup.tables[0].weight
    encoder.outside = torch.nn.Parameter(table[0].detach().clone())
    tokens = table[hand.window_words(words, 5)].reshape(4, -1)
    expected = hand.hardtanh(hand.linear(tokens, encoder.linear.weight, encoder.linear.bias))
    torch.testing.assert_close(encoder(lookup(words[None, :, None]))[0], expected)


def test_a_token_sees_exactly_its_window() -> None:
    encoder, tokens = make_encoder(5), torch.randn(1, 9, 8, dtype=torch.float64)
    changed = tokens.clone()
    changed[0, 4] += 1
    moved = (encoder(tokens) != encoder(changed)).any(-1)[0]
    assert moved.tolist() == [False, False, True, True, True, True, True, False, False]


def test_unknown_dropout_only_while_training_and_never_on_padding() -> None:
    tables = LookupTables([20, 5], [4, 2], unknown_dropout=1.0)
    features = make_features(2, 5)
    features[:, 3:] = 0
    as_unknown = features.clone()
    as_unknown[:, :3, 0] = UNKNOWN
    trained = tables(features)
    tables.eval()
    assert torch.equal(trained, tables(as_unknown))
    assert not torch.equal(trained, tables(features))


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(ScoreError, match="window must be odd and positive; got 4; use 5"):
        WindowEncoder(2, window=4)
    with pytest.raises(ScoreError, match="one dimension per table; got 2 sizes and 1 dims"):
        LookupTables([4, 4], [2])
    with pytest.raises(ScoreError, match=r"shape \(batch, n, 2\); got \(1, 3, 1\)"):
        LookupTables([4, 4], [2, 2])(torch.ones(1, 3, 1, dtype=torch.long))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_context_scorer_equals_the_equation(n: int) -> None:
    torch.manual_seed(2)
    scorer, x = ContextScorer(4, 3).double(), torch.randn(n, 4, dtype=torch.float64)
    weights = hand.ContextWeights(scorer.here.bias, scorer.here.weight, scorer.previous.weight, scorer.following.weight)
    torch.testing.assert_close(scorer(x[None])[0], hand.context_scores(x, weights))
