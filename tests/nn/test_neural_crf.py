"""The parts of a neural CRF: deep features of a window, transitions that depend on the input."""

from __future__ import annotations

import itertools

import pytest
import torch

from trelliswork.errors import ScoreError
from trelliswork.nn import CRF, DeepEncoder, PretrainingConfig, TransitionScorer


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_padding_never_changes_a_result(activation: str) -> None:
    torch.manual_seed(0)
    encoder = DeepEncoder(4, window=3, hidden=6, layers=2, activation=activation).double()  # type: ignore[arg-type]
    short = torch.randn(1, 3, 4, dtype=torch.float64)
    padded = torch.cat([short, torch.randn(1, 2, 4, dtype=torch.float64)], 1)
    encoded = encoder(padded, torch.tensor([[True, True, True, False, False]]))
    torch.testing.assert_close(encoded[:, :3], encoder(short))
    assert not encoded[:, 3:].any()


def test_each_layer_is_the_activation_of_a_linear_map_of_the_window() -> None:
    torch.manual_seed(1)
    encoder = DeepEncoder(2, window=3, hidden=4, layers=2)
    tokens = torch.randn(1, 3, 2)
    window = torch.cat([torch.zeros(2), tokens[0, 0], tokens[0, 1]])
    first = torch.sigmoid(encoder.layers[0](window))
    torch.testing.assert_close(encoder(tokens)[0, 0], torch.sigmoid(encoder.layers[1](first)))


def test_gradients_of_the_encoder() -> None:
    torch.manual_seed(2)
    encoder = DeepEncoder(2, window=3, hidden=3, layers=2).double()
    assert torch.autograd.gradcheck(encoder, (torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True),))


def test_pretraining_makes_every_layer_anew_and_needs_binary_units() -> None:
    torch.manual_seed(3)
    encoder = DeepEncoder(4, window=3, hidden=5, layers=2)
    before = [layer.weight.clone() for layer in encoder.layers]
    tokens, mask = torch.rand(6, 5, 4).round(), torch.ones(6, 5, dtype=torch.bool)
    errors = encoder.pretrain(tokens, mask, PretrainingConfig(epochs=2, batch=10))
    assert len(errors) == 2
    assert all(not torch.equal(a, layer.weight) for a, layer in zip(before, encoder.layers, strict=True))
    with pytest.raises(ScoreError, match='activation="sigmoid"'):
        DeepEncoder(4, activation="relu").pretrain(tokens, mask)


def test_pair_scores_join_the_energy_of_every_tag_sequence() -> None:
    """p(y | x) ∝ exp(-Σ_t E_loc - Σ_{t≥2} E_trans), by enumeration."""
    torch.manual_seed(4)
    crf, pairs = CRF(3, batch_first=True).double(), TransitionScorer(5, 3).double()
    torch.nn.init.normal_(pairs.linear.weight)
    features, emissions = torch.randn(2, 4, 5).double(), torch.randn(2, 4, 3).double()
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    chain = crf.distribution(emissions, mask, pair_scores=pairs(features))
    for row, n in ((0, 4), (1, 3)):
        energies = {}
        for tags in itertools.product(range(3), repeat=n):
            score = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
            score = score + sum(emissions[row, t, tags[t]] for t in range(n))
            for t in range(1, n):
                weights = pairs.linear.weight.view(3, 3, 5)[tags[t - 1], tags[t]]
                score = score + crf.transitions[tags[t - 1], tags[t]] + weights @ features[row, t]
            energies[tags] = score
        log_z = torch.stack(list(energies.values())).logsumexp(0)
        torch.testing.assert_close(chain.log_partition[row], log_z)
        best = max(energies, key=lambda tags: energies[tags].item())
        assert tuple(chain.argmax[row, :n].tolist()) == best


def test_errors_of_the_energies_are_marginals_less_gold() -> None:
    """∂L/∂E is what is sent back through the network: p(y) - 1[y] of tags, p(y', y) - 1[y', y] of pairs."""
    torch.manual_seed(5)
    crf = CRF(3, batch_first=True).double()
    emissions = torch.randn(1, 4, 3, dtype=torch.float64, requires_grad=True)
    pair_scores = torch.randn(1, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    gold = torch.tensor([[0, 2, 2, 1]])
    chain = crf.distribution(emissions, pair_scores=pair_scores)
    of_tags, of_pairs = torch.autograd.grad(-chain.log_prob(gold).sum(), (emissions, pair_scores))
    torch.testing.assert_close(of_tags, chain.marginals - torch.nn.functional.one_hot(gold, 3))
    seen = torch.zeros(1, 3, 3, 3, dtype=torch.float64)
    seen[0, torch.arange(3), gold[0, :-1], gold[0, 1:]] = 1
    torch.testing.assert_close(of_pairs + seen, chain.pairwise_marginals)


def test_gradients_of_the_transition_scorer() -> None:
    scorer = TransitionScorer(3, 2).double()
    torch.nn.init.normal_(scorer.linear.weight)
    assert torch.autograd.gradcheck(scorer, (torch.randn(1, 3, 3, dtype=torch.float64, requires_grad=True),))


def test_wrong_settings_are_explained() -> None:
    with pytest.raises(ScoreError, match="window must be odd"):
        DeepEncoder(4, window=2)
    with pytest.raises(ScoreError, match="activation must be one of"):
        DeepEncoder(4, activation="tanh")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="layers must be at least 1"):
        DeepEncoder(4, layers=0)
