"""Misprints about attention, softmaxes and their samples: the printed form fails, the corrected one is computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trelliswork.nn.decoders import BahdanauDecoder
from trelliswork.nn.decoders.attention import align, attend
from trelliswork.nn.output_layers import NCELayer, SampledSoftmaxLayer, SoftmaxLayer
from trelliswork.nn.output_layers.sampled import zipf

D, V = 4, 6


def test_the_context_is_a_sum_over_all_positions() -> None:
    """Erratum 37: scores and weights are numbered from 0, the sum of the context from 1, which leaves one out."""
    torch.manual_seed(0)
    h, scores = torch.randn(1, 3, D), torch.randn(1, 1, 3)
    weights = align(scores, torch.ones(1, 3, dtype=torch.bool))
    printed = sum(weights[0, 0, j] * h[0, j] for j in range(1, 3))  # a_3 h_3 does not exist
    right = sum(weights[0, 0, j] * h[0, j] for j in range(3))
    torch.testing.assert_close(attend(weights, h)[0, 0], right)
    assert not torch.allclose(torch.as_tensor(printed), torch.as_tensor(right))


def test_the_vector_of_a_probability_is_that_of_its_word() -> None:
    """Erratum 37: with w_t by the time t, two words would have one probability; w_{y_t} tells them apart."""
    torch.manual_seed(1)
    layer, h, t = SoftmaxLayer(D, V), torch.randn(D), 2
    scores = torch.stack([layer.weight[k] @ h + layer.bias[k] for k in range(V)])
    printed = [float((scores[t].exp() / scores.exp().sum()).detach()) for _ in range(V)]
    right = layer.log_probs(h).exp()
    assert abs(sum(printed) - 1) > 0.01
    torch.testing.assert_close(right, scores.exp() / scores.exp().sum())


def test_the_sampled_mean_is_an_approximation() -> None:
    """Erratum 37: the mean over the drawn symbols equals that over all only in the limit, so "=" is "≈"."""
    torch.manual_seed(2)
    layer, h = SampledSoftmaxLayer(D, V, n_samples=5, method="importance"), torch.randn(1, D)
    exact = layer.log_probs(h).exp()[0]
    gaps = []
    for n in (5, 200_000):
        layer.n_samples = n
        loss = layer.loss(h, torch.tensor([0]))
        expected = torch.autograd.grad(loss.sum(), layer.bias)[0] + torch.eye(V)[0]  # E_P[∇E] as it was estimated
        gaps.append(float((expected - exact.detach()).abs().max()))
    assert gaps[0] > 0.05 and gaps[1] < 0.01


def test_the_output_reads_the_new_state() -> None:
    """Erratum 42: p(y_i) = g(y_{i-1}, s_i, c_i), and the layer that is to be g has s_{i-1} in place of s_i."""
    torch.manual_seed(3)
    decoder, h = BahdanauDecoder(2, D, hidden=D).double(), torch.randn(1, 3, D).double()
    memory, y = decoder.remember(h, torch.ones(1, 3, dtype=torch.bool)), torch.randn(1, 1, 2).double()
    before = decoder.initial(memory)
    step = decoder.step(memory, before, y)
    context = attend(step.weights, h)

    def maxout(s: Tensor) -> Tensor:
        u = decoder.output(torch.cat([s, context, y], -1))
        return torch.maximum(u[..., ::2], u[..., 1::2])

    torch.testing.assert_close(step.hidden, maxout(step.state[0]))
    assert not torch.allclose(step.hidden, maxout(before.hidden))
    gates = torch.autograd.grad(maxout(before.hidden).sum(), decoder.proposal.weight, allow_unused=True)[0]
    assert gates is None  # as printed, the GRU of a step would not reach the word of that step


def test_the_weighted_gradients_are_those_of_the_drawn_words() -> None:
    """Erratum 43: Σ_j v(x_j) ∇s(w', h) names a word that is not summed over; it is ∇s(x_j, h)."""
    torch.manual_seed(4)
    layer, h = SampledSoftmaxLayer(D, V, n_samples=100_000, method="importance"), torch.randn(D)
    drawn = layer.draw()
    scores = (layer.weight @ h + layer.bias).detach()
    v = (scores[drawn] - layer.noise[drawn].log()).exp()
    exact, right = scores.softmax(0), torch.zeros(V).index_add(0, drawn, v / v.sum())
    torch.testing.assert_close(right, exact, atol=0.01, rtol=0.02)
    for w in range(V):  # any one word in the place of w'
        printed = torch.zeros(V)
        printed[w] = v.sum() / v.sum()
        assert float((printed - exact).abs().max()) > 0.1


def test_a_zipfian_distribution_has_the_exponent_above_too() -> None:
    """Erratum 43: (1 / w) / Σ 1 / w'^s does not sum to 1 unless s = 1."""
    s, ranks = 2.0, range(1, V + 1)
    total = sum(1 / w**s for w in ranks)
    assert abs(sum(1 / w / total for w in ranks) - 1) > 0.5
    torch.testing.assert_close(zipf(V, s).sum(), torch.tensor(1.0))
    torch.testing.assert_close(zipf(V, s)[2], torch.tensor(1 / 9 / total))


def test_what_nce_minimises_has_a_minus() -> None:
    """Erratum 44: Σ [log h(w) + Σ log(1 - h(n))] is to be maximised: made small, it tells data from noise worst."""
    torch.manual_seed(5)
    layer, h, targets = NCELayer(D, V, n_samples=3), torch.randn(4, D), torch.tensor([0, 1, 2, 3])
    torch.manual_seed(6)
    loss = layer.loss(h, targets).sum()
    gradient = torch.autograd.grad(loss, layer.bias)[0]
    torch.manual_seed(6)
    drawn = layer.draw()
    probabilities = ((h @ layer.weight.T + layer.bias).exp()).detach()
    posterior = probabilities / (probabilities + 3 * layer.noise)
    printed = sum(
        float(posterior[i, t].log()) + sum(float((1 - posterior[i, n]).log()) for n in drawn)
        for i, t in enumerate(targets.tolist())
    )
    assert math.isclose(float(loss.detach()), -printed, rel_tol=1e-4)
    with torch.no_grad():
        layer.bias -= 0.01 * gradient  # a step down the loss makes the printed sum larger
    torch.manual_seed(6)
    assert -float(layer.loss(h, targets).sum().detach()) > printed


def test_the_gradient_of_a_softmax_has_both_of_its_outputs() -> None:
    """Erratum 45: ∂ softmax_d / ∂ x_j = softmax_d (δ_dj - softmax_j); printed is softmax_d twice."""
    x = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    mask = torch.ones(1, 5, dtype=torch.bool)
    found = torch.autograd.functional.jacobian(lambda x: align(x[None, None], mask)[0, 0], x)
    s = x.softmax(0)
    right = torch.stack([torch.stack([s[d] * (float(d == j) - s[j]) for j in range(5)]) for d in range(5)])
    printed = torch.stack([torch.stack([s[d] * (float(d == j) - s[d]) for j in range(5)]) for d in range(5)])
    torch.testing.assert_close(found, right)
    assert not torch.allclose(found, printed)
    torch.testing.assert_close(right.sum(0), torch.zeros(5, dtype=torch.float64))  # probabilities keep their sum
