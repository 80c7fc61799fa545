"""Tests of all inputs, encoders and scorers: shapes, masks, order of the batch, gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from trelliswork.nn import encoders, inputs, scorers
from trelliswork.nn.inputs import TokenBatch, VariationalDropout, WordDropout

DIM, TAGS = 4, 3
ENCODERS: dict[str, Callable[[], nn.Module]] = {
    "WindowEncoder": lambda: encoders.WindowEncoder(DIM, window=5, hidden=6),
    "SentenceConvolution": lambda: encoders.SentenceConvolution(DIM, window=3, hidden=6, max_distance=2),
    "RecurrentEncoder": lambda: encoders.RecurrentEncoder(DIM, hidden=3, layers=2),
    "TransformerEncoder": lambda: encoders.TransformerEncoder(DIM, hidden=8, layers=2, heads=2),
    "DilatedConvolution": lambda: encoders.DilatedConvolution(DIM, hidden=6, layers=2),
    "DeepEncoder": lambda: encoders.DeepEncoder(DIM, window=3, hidden=5, layers=2),
    "IdentityEncoder": lambda: encoders.IdentityEncoder(DIM),
}
OF_SEGMENTS: dict[str, Callable[[], nn.Module]] = {
    "PyramidScorer": lambda: scorers.PyramidScorer(DIM, 5, TAGS, 3),
    "shared": lambda: scorers.PyramidScorer(DIM, 5, TAGS, 3, shared=True),
    "EndpointScorer": lambda: scorers.EndpointScorer(DIM, 5, TAGS, 3),
}
OF_TAGS: dict[str, Callable[[], nn.Module]] = {
    "LinearScorer": lambda: scorers.LinearScorer(DIM, TAGS),
    "ContextScorer": lambda: scorers.ContextScorer(DIM, TAGS),
    "HiddenUnitScorer": lambda: scorers.HiddenUnitScorer(DIM, TAGS, 5),
    "TensorScorer": lambda: scorers.TensorScorer(DIM, TAGS, slices=2),
}
OF_SPELLING: dict[str, Callable[[], nn.Module]] = {
    "CharacterCNN": lambda: inputs.CharacterCNN(7, dim=3, hidden=4),
    "CharacterLSTM": lambda: inputs.CharacterLSTM(7, dim=3, hidden=4),
    "NgramBag": lambda: inputs.NgramBag(6, dim=4),
}
SPELLINGS = torch.tensor([[2, 3, 4, 5], [5, 0, 0, 0], [6, 1, 0, 0]])
TESTED_ELSEWHERE = {
    "TokenEncoder",
    "GatedRecursiveConvolution",
    "BiaffineScorer",
    "NeuralTensor",
    "TransitionScorer",
} | {"RoleScorer"}


def made(parts: dict[str, Callable[[], nn.Module]], name: str) -> nn.Module:
    torch.manual_seed(3)
    return parts[name]().double().eval()


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def weights_pass(module: nn.Module, call: Callable[..., Tensor]) -> bool:
    """Compare the gradient of `call` by the weights of a module with finite differences."""
    names = [name for name, _ in module.named_parameters()]
    weights = tuple(parameter.detach().requires_grad_() for parameter in module.parameters())

    def of_weights(*weights: Tensor) -> Tensor:
        return call(lambda *given: torch.func.functional_call(module, dict(zip(names, weights, strict=True)), given))

    return not weights or torch.autograd.gradcheck(of_weights, weights, fast_mode=True)


def test_no_part_is_forgotten() -> None:
    known = {*ENCODERS, *OF_SEGMENTS, *OF_TAGS, *TESTED_ELSEWHERE}
    classes = {
        name for module in (encoders, scorers) for name in module.__all__ if isinstance(getattr(module, name), type)
    }
    assert classes <= known, (
        "add new encoders and scorers here, and encoders to ENCODERS of test_encoders.py (gradients, padding)"
    )


@pytest.mark.parametrize("name", ENCODERS)
def test_masked_places_never_matter_wherever_they_are(name: str) -> None:
    encoder, tokens = made(ENCODERS, name), vectors(3, 5)
    mask = torch.tensor([[True, False, True, True, False], [False, True, True, True, True], [True] * 5])
    other = torch.where(mask.unsqueeze(-1), tokens, 100 * vectors(3, 5).flip(0))
    encoded = encoder(tokens, mask)
    torch.testing.assert_close(encoder(other, mask), encoded)
    assert not encoded[~mask].any()
    torch.testing.assert_close(encoder(tokens[2:], mask[2:]), encoder(tokens[2:]))


@pytest.mark.parametrize("name", ENCODERS)
def test_sentences_of_a_batch_do_not_see_each_other(name: str) -> None:
    encoder, tokens, order = made(ENCODERS, name), vectors(4, 5), torch.tensor([2, 0, 3, 1])
    mask = torch.arange(5) < torch.tensor([5, 1, 3, 4])[:, None]
    torch.testing.assert_close(encoder(tokens[order], mask[order]), encoder(tokens, mask)[order])


@pytest.mark.parametrize("name", ["DeepEncoder"])
def test_gradient_of_encoders_that_stand_elsewhere(name: str) -> None:
    encoder, mask = made(ENCODERS, name), torch.tensor([[True] * 4, [True, True, False, False]])
    assert encoder(vectors(2, 1)).shape == (2, 1, encoder.dim)
    assert torch.autograd.gradcheck(lambda x: encoder(x, mask), vectors(2, 4).requires_grad_(), fast_mode=True)
    assert weights_pass(encoder, lambda call: call(vectors(2, 4), mask))


@pytest.mark.parametrize("name", OF_TAGS)
def test_scorers_of_tags(name: str) -> None:
    scorer, tokens = made(OF_TAGS, name), vectors(2, 4)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    assert scorer(tokens).shape == (2, 4, TAGS) and scorer(tokens[:, :1]).shape == (2, 1, TAGS)
    torch.testing.assert_close(scorer(tokens, mask)[1, :2], scorer(tokens[1:, :2])[0])
    torch.testing.assert_close(scorer(tokens.flip(0), mask.flip(0)), scorer(tokens, mask).flip(0))
    assert torch.autograd.gradcheck(lambda x: scorer(x, mask), tokens.clone().requires_grad_(), fast_mode=True)
    assert weights_pass(scorer, lambda call: call(tokens, mask))


@pytest.mark.parametrize("name", OF_SEGMENTS)
def test_scorers_of_segments(name: str) -> None:
    scorer, tokens = made(OF_SEGMENTS, name), vectors(2, 5)
    scores = scorer(tokens)
    assert scores.shape == (2, 5, 3, TAGS) and scorer(tokens[:, :1]).shape == (2, 1, 3, TAGS)
    alone = scorer(tokens[:, :4])  # segments inside the first four tokens never see the fifth
    for start in range(4):
        n_inside = min(3, 4 - start)
        torch.testing.assert_close(scores[:, start, :n_inside], alone[:, start, :n_inside])
    torch.testing.assert_close(scorer(tokens.flip(0)), scores.flip(0))
    assert torch.autograd.gradcheck(scorer, tokens.clone().requires_grad_(), fast_mode=True)
    assert weights_pass(scorer, lambda call: call(tokens))


@pytest.mark.parametrize("name", OF_SPELLING)
def test_inputs_of_spellings(name: str) -> None:
    part = made(OF_SPELLING, name)
    vectors = part(SPELLINGS)
    assert vectors.shape == (3, part.dim)
    torch.testing.assert_close(part(nn.functional.pad(SPELLINGS, (0, 3))), vectors)
    torch.testing.assert_close(part(SPELLINGS[[2, 0, 1]]), vectors[[2, 0, 1]])
    torch.testing.assert_close(part(SPELLINGS[1:2, :1]), vectors[1:2])
    assert weights_pass(part, lambda call: call(SPELLINGS))


def test_lookup_tables_and_direct_connections() -> None:
    tables, direct = inputs.LookupTables([5, 3], [2, 3]).double(), inputs.DirectConnections(6, TAGS).double()
    features = torch.tensor([[[2, 1], [4, 0]], [[0, 2], [2, 2]]])
    vectors = tables(features)
    torch.testing.assert_close(vectors[0, 1], torch.cat([tables.tables[0].weight[4], tables.tables[1].weight[0]]))
    torch.testing.assert_close(tables(features.flip(0)), vectors.flip(0))
    assert tables(features[:, :1]).shape == (2, 1, 5)
    assert weights_pass(tables, lambda call: call(features))
    batch = TokenBatch(features, torch.ones(2, 2, dtype=torch.bool), attributes=torch.tensor([[[1, 2], [3, 0]]] * 2))
    assert weights_pass(direct, lambda call: call(batch))


@pytest.mark.parametrize("kind", [VariationalDropout, WordDropout])
def test_dropouts_are_linear_in_what_they_drop(kind: type[nn.Module]) -> None:
    dropout, tokens = kind(0.5), vectors(2, 6)

    def dropped(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        return dropout(x)

    torch.testing.assert_close(dropped(2 * tokens), 2 * dropped(tokens))
    assert torch.autograd.gradcheck(dropped, tokens.clone().requires_grad_(), fast_mode=True)
    assert torch.equal(dropout.eval()(tokens), tokens)
