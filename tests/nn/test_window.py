"""The window encoder of [S3] and the context scorer of [S1]."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders import UNKNOWN, LookupTables, WindowEncoder
from trelliswork.nn.scorers import ContextScorer, LinearScorer
from trelliswork.training import hand_gradients as hand


def make_encoder(window: int = 3, **options: float) -> WindowEncoder:
    torch.manual_seed(1)
    return WindowEncoder([20, 5], [6, 2], window=window, hidden=7, **options).double()  # type: ignore[arg-type]


def make_features(batch: int, n: int) -> Tensor:
    return torch.stack([torch.randint(1, 20, (batch, n)), torch.randint(1, 5, (batch, n))], dim=-1)


@pytest.mark.parametrize("window", [1, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_shape(window: int, n: int) -> None:
    assert make_encoder(window)(make_features(4, n)).shape == (4, n, 7)


def test_equals_the_hand_written_window() -> None:
    encoder, words = make_encoder(5), torch.tensor([4, 9, 17, 2])
    encoder.lookup = LookupTables([20], [8]).double()
    around = hand.window_words(words, 5)
    tokens = encoder.lookup.tables[0].weight[around].reshape(4, -1)
    expected = hand.hardtanh(hand.linear(tokens, encoder.linear.weight, encoder.linear.bias))
    torch.testing.assert_close(encoder(words[None, :, None])[0], expected)


@pytest.mark.parametrize("scorer_class", [LinearScorer, ContextScorer])
def test_padding_never_changes_a_result(scorer_class: type[LinearScorer] | type[ContextScorer]) -> None:
    encoder, features = make_encoder(5), make_features(3, 4)
    scorer = scorer_class(7, 3).double()
    alone = scorer(encoder(features))
    for width in (4, 5, 11):
        wide = make_features(3, width)  # arbitrary valid indices stand in the padding
        wide[:, :4] = features
        mask = (torch.arange(width) < 4).expand(3, width)
        torch.testing.assert_close(scorer(encoder(wide, mask), mask)[:, :4], alone)


def test_a_token_sees_exactly_its_window() -> None:
    encoder, features = make_encoder(5), make_features(1, 9)
    changed = features.clone()
    changed[0, 4] = features[0, 4] % 4 + 1
    moved = (encoder(features) != encoder(changed)).any(-1)[0]
    assert moved.tolist() == [False, False, True, True, True, True, True, False, False]


def test_gradient() -> None:
    encoder, features = make_encoder(3), make_features(2, 4)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])

    def loss(weight: Tensor) -> Tensor:
        return torch.func.functional_call(encoder, {"linear.weight": weight}, (features, mask)).square().sum()

    weight = encoder.linear.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(loss, weight)


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
        WindowEncoder([4], [2], window=4)
    with pytest.raises(ScoreError, match="one dimension per table; got 2 sizes and 1 dims"):
        LookupTables([4, 4], [2])
    with pytest.raises(ScoreError, match=r"shape \(batch, n, 2\); got \(1, 3, 1\)"):
        make_encoder()(torch.ones(1, 3, 1, dtype=torch.long))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_context_scorer_equals_the_equation(n: int) -> None:
    torch.manual_seed(2)
    scorer, x = ContextScorer(4, 3).double(), torch.randn(n, 4, dtype=torch.float64)
    weights = hand.ContextWeights(scorer.here.bias, scorer.here.weight, scorer.previous.weight, scorer.following.weight)
    torch.testing.assert_close(scorer(x[None])[0], hand.context_scores(x, weights))
