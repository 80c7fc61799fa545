"""What holds for every encoder: its shape, that padding changes nothing, its gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders import RecurrentEncoder, WindowEncoder
from trelliswork.nn.scorers import ContextScorer, LinearScorer

DIM = 4
ENCODERS: dict[str, Callable[[], nn.Module]] = {
    "window": lambda: WindowEncoder(DIM, window=5, hidden=6),
    "lstm": lambda: RecurrentEncoder(DIM, hidden=3),
    "two layers": lambda: RecurrentEncoder(DIM, hidden=3, layers=2, dropout=0.5),
    "gru": lambda: RecurrentEncoder(DIM, hidden=3, cell="gru"),
}


@pytest.fixture(params=ENCODERS)
def encoder(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(1)
    return ENCODERS[request.param]().double().eval()


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_shape(encoder: nn.Module, n: int) -> None:
    assert encoder(vectors(3, n)).shape == (3, n, encoder.dim)


@pytest.mark.parametrize("scorer_class", [LinearScorer, ContextScorer])
@pytest.mark.parametrize("width", [4, 5, 11])
def test_padding_never_changes_a_result(encoder: nn.Module, scorer_class: type[nn.Module], width: int) -> None:
    scorer, tokens = scorer_class(encoder.dim, 3).double(), vectors(3, 4)
    wide = vectors(3, width)  # anything may stand in the padding
    wide[:, :4] = tokens
    wide[:, 4:] *= 1e3
    mask = (torch.arange(width) < 4).expand(3, width)
    torch.testing.assert_close(scorer(encoder(wide, mask), mask)[:, :4], scorer(encoder(tokens)))


def test_a_sentence_is_encoded_alike_alone_and_in_a_ragged_batch(encoder: nn.Module) -> None:
    lengths = [5, 1, 3]
    sentences = [vectors(n) for n in lengths]
    batch = nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=7.0)
    together = encoder(batch, torch.arange(5) < torch.tensor(lengths)[:, None])
    for row, sentence in zip(together, sentences, strict=True):
        torch.testing.assert_close(row[: len(sentence)], encoder(sentence[None])[0])
        assert not row[len(sentence) :].any()


def test_gradient(encoder: nn.Module) -> None:
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    tokens = vectors(2, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: encoder(x, mask), tokens)
    names = [name for name, _ in encoder.named_parameters()]
    weights = tuple(parameter.detach().requires_grad_() for parameter in encoder.parameters())

    def encoded(*weights: Tensor) -> Tensor:
        return torch.func.functional_call(encoder, dict(zip(names, weights, strict=True)), (tokens.detach(), mask))

    assert torch.autograd.gradcheck(encoded, weights, fast_mode=True)


def test_recurrent_encoders_read_from_both_ends() -> None:
    encoder, tokens = RecurrentEncoder(DIM, hidden=3).double(), vectors(1, 4)
    ahead, _ = encoder.forwards[0](tokens)
    back, _ = encoder.backwards[0](tokens.flip(1))
    torch.testing.assert_close(encoder(tokens), torch.cat([ahead, back.flip(1)], -1))


def test_recurrent_encoders_skip_holes() -> None:
    encoder, tokens = RecurrentEncoder(DIM, hidden=3, layers=2).double(), vectors(1, 5)
    mask = torch.tensor([[True, False, True, True, False]])
    torch.testing.assert_close(encoder(tokens, mask)[mask], encoder(tokens[:, [0, 2, 3]])[0])


def test_variational_dropout_drops_the_same_dimensions_at_all_tokens() -> None:
    encoder = RecurrentEncoder(DIM, hidden=3, layers=2, dropout=0.5)
    dropped = encoder.dropout(torch.ones(4, 6, 3))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert torch.equal(encoder.dropout.eval()(torch.ones(2, 2, 3)), torch.ones(2, 2, 3))


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(ScoreError, match="cell must be one of lstm, gru; got 'rnn'"):
        RecurrentEncoder(DIM, cell="rnn")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="layers must be at least 1; got 0"):
        RecurrentEncoder(DIM, layers=0)
