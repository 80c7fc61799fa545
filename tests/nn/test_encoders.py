"""Tests of all encoders: the shape of the output, independence of padding, gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders import (
    DilatedConvolution,
    IdentityEncoder,
    RecurrentEncoder,
    SentenceConvolution,
    TransformerEncoder,
    WindowEncoder,
)
from trelliswork.nn.encoders import sentence as sentence_file
from trelliswork.nn.encoders.transformer import sinusoids
from trelliswork.nn.scorers import ContextScorer, LinearScorer

DIM = 4
ENCODERS: dict[str, Callable[[], nn.Module]] = {
    "window": lambda: WindowEncoder(DIM, window=5, hidden=6),
    "lstm": lambda: RecurrentEncoder(DIM, hidden=3),
    "two layers": lambda: RecurrentEncoder(DIM, hidden=3, layers=2, dropout=0.5),
    "gru": lambda: RecurrentEncoder(DIM, hidden=3, cell="gru"),
    "transformer": lambda: TransformerEncoder(DIM, hidden=8, layers=2, heads=2, dropout=0.5),
    "dilated": lambda: DilatedConvolution(DIM, hidden=6, layers=3, dropout=0.5),
    "causal": lambda: DilatedConvolution(DIM, hidden=6, layers=2, width=2, causal=True),
    "sentence": lambda: SentenceConvolution(DIM, window=3, hidden=6, distance_dim=2, max_distance=2),
    "none": lambda: IdentityEncoder(DIM),
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
    assert torch.autograd.gradcheck(lambda x: encoder(x, mask), tokens, fast_mode=True)
    names = [name for name, _ in encoder.named_parameters()]
    weights = tuple(parameter.detach().requires_grad_() for parameter in encoder.parameters())

    def encoded(*weights: Tensor) -> Tensor:
        return torch.func.functional_call(encoder, dict(zip(names, weights, strict=True)), (tokens.detach(), mask))

    assert not weights or torch.autograd.gradcheck(encoded, weights, fast_mode=True)


def test_recurrent_encoders_read_from_both_ends() -> None:
    encoder, tokens = RecurrentEncoder(DIM, hidden=3).double(), vectors(1, 4)
    ahead, _ = encoder.forwards[0](tokens)
    back, _ = encoder.backwards[0](tokens.flip(1))
    torch.testing.assert_close(encoder(tokens), torch.cat([ahead, back.flip(1)], -1))


def test_a_sentence_without_tokens_has_finite_gradients(encoder: nn.Module) -> None:
    tokens, mask = vectors(2, 3).requires_grad_(), torch.tensor([[True] * 3, [False] * 3])
    encoded = encoder(tokens, mask)
    assert not encoded[1].any()
    (grad,) = torch.autograd.grad(encoded.sum(), tokens)
    assert torch.isfinite(grad).all()
    assert not grad[1].any()


@pytest.mark.parametrize("name", ["two layers", "transformer"])
def test_holes_are_skipped(name: str) -> None:
    encoder, tokens = ENCODERS[name]().double().eval(), vectors(1, 5)
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
    with pytest.raises(ScoreError, match="hidden must be a multiple of twice the heads"):
        TransformerEncoder(DIM, hidden=100, heads=4)
    with pytest.raises(ScoreError, match="layers must be at least 1 and width odd"):
        DilatedConvolution(DIM, width=4)
    with pytest.raises(ScoreError, match="window must be odd and max_distance at least 1; got 4 and 30"):
        SentenceConvolution(DIM, window=4)


def test_attention_is_the_equation() -> None:
    torch.manual_seed(1)
    layer, tokens = (
        TransformerEncoder(DIM, hidden=8, layers=1, heads=2).double().layers[0],
        torch.randn(1, 5, 8).double(),
    )
    queries, keys, values = layer.queries_keys_values(tokens)[0].chunk(3, -1)
    mask = torch.tensor([True, True, False, True, True])
    heads = []
    for head in (slice(0, 4), slice(4, 8)):  # [S4.448-449]
        weights = (queries[:, head] @ keys[:, head].T / 2).exp() * mask  # √d_k = 2
        heads.append(weights / weights.sum(1, keepdim=True) @ values[:, head])
    expected = layer.output(torch.cat(heads, 1))
    torch.testing.assert_close(layer.attend(tokens, mask.expand(1, 1, 5, 5))[0], expected)


def test_sinusoids_are_the_equation() -> None:
    vectors = sinusoids(torch.tensor([[0, 3, 7]]), 6)
    for at, place in enumerate((0, 3, 7)):
        for i in range(3):
            angle = torch.tensor(place / 10000 ** (2 * i / 6), dtype=torch.float64)
            torch.testing.assert_close(vectors[0, at, 2 * i : 2 * i + 2], torch.stack([angle.sin(), angle.cos()]))


def reach(encoder: nn.Module, n: int, token: int) -> list[int]:
    """The tokens that token is encoded with."""
    tokens = vectors(1, n).requires_grad_()
    (grad,) = torch.autograd.grad(encoder(tokens)[0, token].sum(), tokens)
    return grad[0].any(-1).nonzero().flatten().tolist()


def test_dilated_convolutions_look_twice_as_far_in_each_layer() -> None:
    torch.manual_seed(1)
    assert reach(DilatedConvolution(DIM, hidden=3, layers=3).double(), 31, 15) == list(range(8, 23))
    causal = DilatedConvolution(DIM, hidden=3, layers=3, width=2, causal=True).double()
    assert reach(causal, 31, 15) == list(range(8, 16))


def test_a_dilated_layer_is_the_equation() -> None:
    torch.manual_seed(1)
    encoder, tokens = DilatedConvolution(DIM, hidden=3, layers=1).double(), vectors(1, 4)
    x, convolution = encoder.entry(tokens)[0], encoder.filters_and_gates[0]
    for t in range(4):
        taps = [(tap, t + tap - 1) for tap in range(3) if 0 <= t + tap - 1 < 4]
        filtered, gate = (convolution.bias + sum(convolution.weight[:, :, tap] @ x[at] for tap, at in taps)).chunk(2)
        expected = x[t] + encoder.outputs[0](filtered.tanh() * gate.sigmoid())
        torch.testing.assert_close(encoder(tokens)[0, t], expected)


@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_the_sentence_approach_is_a_convolution_for_each_token(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_file, "CELLS_AT_ONCE", cells)
    torch.manual_seed(1)
    encoder, tokens = (
        SentenceConvolution(DIM, window=3, hidden=6, distance_dim=2, max_distance=2).double(),
        vectors(2, 7),
    )
    words = nn.functional.pad(tokens, (0, 0, 1, 1))
    weight = torch.cat([encoder.of_words.weight, encoder.of_distances.weight], 1)
    for t in range(7):
        distance = (torch.arange(-1, 8) - t).clamp(-2, 2) + 2
        beside = torch.cat([words, encoder.distances(distance).expand(2, -1, -1)], -1).transpose(1, 2)
        highest = nn.functional.conv1d(beside, weight, encoder.of_words.bias).amax(2)
        torch.testing.assert_close(encoder(tokens)[:, t], nn.functional.hardtanh(encoder.linear(highest)))


def test_the_network_of_a_transformer_layer_is_linear_relu_linear() -> None:
    network = TransformerEncoder(6, hidden=8, heads=2).layers[0].network
    first, second = network[0], network[2]
    x = torch.randn(3, 5, 8)
    wanted = (x @ first.weight.T + first.bias).clamp(min=0) @ second.weight.T + second.bias
    torch.testing.assert_close(network(x), wanted)
