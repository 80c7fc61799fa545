"""Output layers: proper distributions, sampled gradients against the full softmax, draws by their frequencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers import (
    AdaptiveInput,
    AdaptiveSoftmaxLayer,
    HierarchicalSoftmaxLayer,
    NCELayer,
    OutputLayer,
    SampledSoftmaxLayer,
    SoftmaxLayer,
)
from trelliswork.nn.output_layers import softmax as fused_loss
from trelliswork.nn.output_layers.adaptive import clusters_of
from trelliswork.nn.output_layers.sampled import Method, log_uniform, zipf

D, V, M = 6, 11, 9
LAYERS: dict[str, Callable[[], OutputLayer]] = {
    "softmax": lambda: SoftmaxLayer(D, V),
    "candidates": lambda: SampledSoftmaxLayer(D, V, n_samples=4),
    "importance": lambda: SampledSoftmaxLayer(D, V, n_samples=4, method="importance"),
    "nce": lambda: NCELayer(D, V, n_samples=4),
    "hierarchical": lambda: HierarchicalSoftmaxLayer(D, V),
    "classes of one": lambda: HierarchicalSoftmaxLayer(D, V, sizes=[1, 9, 1]),
    "adaptive": lambda: AdaptiveSoftmaxLayer(D, V, cutoffs=[3, 7]),
}


def given() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(4)
    return torch.randn(M, D, generator=random), torch.randint(V, (M,), generator=random)


@pytest.mark.parametrize("name", LAYERS)
def test_probabilities_sum_to_one(name: str) -> None:
    torch.manual_seed(0)
    log_probs = LAYERS[name]().log_probs(given()[0].view(3, 3, D))
    assert log_probs.shape == (3, 3, V)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(3, 3))


@pytest.mark.parametrize("name", ["softmax", "hierarchical", "classes of one", "adaptive"])
def test_the_loss_of_exact_layers_is_minus_the_log_probability(name: str) -> None:
    torch.manual_seed(0)
    layer, (hidden, targets) = LAYERS[name](), given()
    expected = -layer.log_probs(hidden).gather(1, targets[:, None]).squeeze(1)
    torch.testing.assert_close(layer.loss(hidden, targets), expected)


@pytest.mark.parametrize("name", ["hierarchical", "adaptive"])
def test_gradients_of_the_loss_are_those_of_the_log_probability(name: str) -> None:
    torch.manual_seed(0)
    layer, (hidden, targets) = LAYERS[name](), given()
    parameters = list(layer.parameters())
    one = torch.autograd.grad(layer.loss(hidden, targets).sum(), parameters)
    log_probs = layer.log_probs(hidden).gather(1, targets[:, None])
    other = torch.autograd.grad(-log_probs.sum(), parameters)
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


def test_a_class_is_a_factor_of_its_symbols() -> None:
    torch.manual_seed(0)
    layer, hidden = HierarchicalSoftmaxLayer(D, V, sizes=[4, 5, 2]), given()[0][:1]
    log_probs, classes = layer.log_probs(hidden)[0], layer.classes(hidden).softmax(-1)[0]
    for number, symbols in enumerate((slice(0, 4), slice(4, 9), slice(9, 11))):
        torch.testing.assert_close(log_probs[symbols].exp().sum(), classes[number])
        scores = torch.stack([layer.weight[k] @ hidden[0] + layer.bias[k] for k in range(V)[symbols]])
        torch.testing.assert_close(log_probs[symbols].softmax(0), scores.softmax(0))


def test_an_adaptive_softmax_is_full_softmaxes_of_its_parts() -> None:
    """[S4.408]: a full softmax over the head and the clusters, times full softmaxes over the rare symbols."""
    torch.manual_seed(0)
    layer, hidden = AdaptiveSoftmaxLayer(D, V, cutoffs=[3, 7]), given()[0]
    head = SoftmaxLayer(D, 5, tied=layer.layer.head.weight)
    head.bias = layer.layer.head.bias
    parts = [head.log_probs(hidden)[:, :3]]
    for number, (narrow, last) in enumerate(layer.layer.tail):
        of_cluster = SoftmaxLayer(last.in_features, last.out_features, tied=last.weight).log_probs(narrow(hidden))
        parts.append(of_cluster + head.log_probs(hidden)[:, 3 + number, None])
    torch.testing.assert_close(layer.log_probs(hidden), torch.cat(parts, 1))


def test_adaptive_layers_pass_gradcheck() -> None:
    torch.manual_seed(0)
    layer, (hidden, targets) = AdaptiveSoftmaxLayer(D, V, cutoffs=[3, 7]).double(), given()
    hidden, parameters = hidden.double().requires_grad_(), list(layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer.total_loss(x, targets), [hidden, *parameters])
    whole = torch.autograd.grad(layer.total_loss(hidden, targets), [hidden, *parameters])
    rows = torch.autograd.grad(layer.loss(hidden, targets).sum(), [hidden, *parameters])
    for a, b in zip(whole, rows, strict=True):
        torch.testing.assert_close(a, b)
    frequent = layer.total_loss(hidden[:2], torch.tensor([0, 2]))
    torch.testing.assert_close(frequent, layer.loss(hidden[:2], torch.tensor([0, 2])).sum())
    inputs = AdaptiveInput(D, V, cutoffs=[3, 7]).double()
    assert torch.autograd.gradcheck(lambda *_: inputs(targets), list(inputs.parameters()))


@pytest.mark.parametrize("tied", [False, True])
def test_an_adaptive_input_is_a_table_of_projected_vectors(tied: bool) -> None:
    """[S4.409]: the vector of each symbol, looked up one by one."""
    torch.manual_seed(0)
    output = AdaptiveSoftmaxLayer(D, V, cutoffs=[3, 7])
    layer = AdaptiveInput(D, V, cutoffs=[3, 7], tied=output if tied else None)
    head, tail = output.layer.head.weight, output.layer.tail
    tables = [head[:3], *(part[1].weight for part in tail)] if tied else list(layer.tables)
    symbols = torch.arange(V).flip(0).view(1, V)
    for symbol, vector in zip(symbols[0].tolist(), layer(symbols)[0], strict=True):
        cluster = (symbol >= 3) + (symbol >= 7)
        row = tables[cluster][symbol - (0, 3, 7)[cluster]]
        torch.testing.assert_close(vector, layer.projections[cluster].weight @ row)
    assert len(list(layer.parameters())) == (3 if tied else 6)
    layer(symbols).sum().backward()
    assert (tail[0][1].weight.grad is not None) == tied
    assert layer(symbols[:, :0]).shape == (1, 0, D)


def test_clusters_of_any_vocabulary_are_allowed() -> None:
    for n in (2, 3, 7, 100):
        assert AdaptiveSoftmaxLayer(D, n, cutoffs=clusters_of(n)).log_probs(torch.zeros(1, D)).shape == (1, n)
    with pytest.raises(ScoreError, match="must have width 6 and cutoffs"):
        AdaptiveInput(D, V, cutoffs=[2], tied=AdaptiveSoftmaxLayer(D, V, cutoffs=[3]))


def test_label_smoothing_spreads_a_share_over_all_symbols() -> None:
    torch.manual_seed(0)
    layer, (hidden, targets) = SoftmaxLayer(D, V, smoothing=0.2), given()
    log_probs = layer.log_probs(hidden)
    target = log_probs.gather(1, targets[:, None]).squeeze(1)
    torch.testing.assert_close(layer.loss(hidden, targets), -0.8 * target - 0.2 * log_probs.mean(1))
    torch.testing.assert_close(layer.eval().loss(hidden, targets), -target)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_summed_loss_and_its_gradient_are_those_of_all_rows(smoothing: float, monkeypatch: Any) -> None:
    monkeypatch.setattr(fused_loss, "ROWS", 4)  # the nine rows are three parts
    torch.manual_seed(0)
    layer, (hidden, targets) = SoftmaxLayer(D, V, smoothing=smoothing).double(), given()
    hidden = hidden.double().requires_grad_()
    leaves = [hidden, layer.weight, layer.bias]
    whole, parts = layer.loss(hidden, targets).sum(), layer.total_loss(hidden, targets)
    torch.testing.assert_close(whole, parts)
    for a, b in zip(torch.autograd.grad(whole, leaves), torch.autograd.grad(parts, leaves), strict=True):
        torch.testing.assert_close(a, b)
    assert torch.autograd.gradcheck(lambda *x: fused_loss.summed_loss(*x, targets, smoothing), leaves)
    assert torch.autograd.gradgradcheck(
        lambda *x: fused_loss.summed_loss(*x, targets, smoothing), leaves, fast_mode=True
    )
    for name in LAYERS:
        torch.manual_seed(0)
        other = LAYERS[name]()
        torch.manual_seed(1)
        total = other.total_loss(*given())
        torch.manual_seed(1)
        torch.testing.assert_close(total, other.loss(*given()).sum())


def test_a_constant_in_all_scores_changes_no_probability() -> None:
    torch.manual_seed(0)
    layer, (hidden, _) = SoftmaxLayer(D, V), given()
    before = layer.log_probs(hidden)
    with torch.no_grad():
        layer.bias += 3.0
    torch.testing.assert_close(layer.log_probs(hidden), before)


def test_a_tied_table_is_the_weight_itself() -> None:
    table = torch.nn.Embedding(V, D)
    layer = SoftmaxLayer(D, V, tied=table.weight)
    assert layer.weight is table.weight
    torch.testing.assert_close(layer.log_probs(torch.eye(D)), table.weight.T.log_softmax(-1))


def gradients(layer: SoftmaxLayer, loss: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    hidden, targets = given()
    gradients_of_loss = torch.autograd.grad(loss(hidden, targets).sum(), [layer.weight, layer.bias])
    return list(gradients_of_loss)


def full(layer: SoftmaxLayer) -> list[Tensor]:
    return gradients(layer, lambda hidden, targets: SoftmaxLayer.loss(layer, hidden, targets))


def test_candidates_of_all_symbols_are_the_full_softmax() -> None:
    """Where every symbol is always drawn, Q = 1 and F - ln Q is F."""
    torch.manual_seed(0)
    layer = SampledSoftmaxLayer(D, V, n_samples=100_000)
    torch.testing.assert_close(layer.inclusion, torch.ones(V))
    for a, b in zip(gradients(layer, layer.loss), full(layer), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("noise", [None, torch.arange(V, 0, -1)])
def test_importance_sampling_approaches_the_full_softmax(noise: Tensor | None) -> None:
    torch.manual_seed(1)
    layer = SampledSoftmaxLayer(D, V, n_samples=400_000, method="importance", noise=noise)
    for a, b in zip(gradients(layer, layer.loss), full(layer), strict=True):
        torch.testing.assert_close(a, b, atol=0.03, rtol=0.02)
    few = SampledSoftmaxLayer(D, V, n_samples=10, method="importance", noise=noise)
    few.load_state_dict(layer.state_dict())
    assert (gradients(few, few.loss)[1] - full(layer)[1]).abs().max() > 0.1


def test_importance_weights_are_the_printed_ones() -> None:
    """The gradient of the loss is ∇E(y) less the mean of ∇E under ω_k / Σ ω, over the very symbols that were drawn."""
    torch.manual_seed(2)
    layer, (hidden, targets) = SampledSoftmaxLayer(D, V, n_samples=7, method="importance"), given()
    torch.manual_seed(3)
    gradient = torch.autograd.grad(layer.loss(hidden[:1], targets[:1]).sum(), layer.bias)[0]
    torch.manual_seed(3)
    drawn = [targets[0].item(), *(k for k in layer.draw().tolist() if k != targets[0])]
    energy = layer.weight @ hidden[0] + layer.bias
    proposal = 7 * layer.noise
    proposal[targets[0]] = 1.0  # it is there for sure
    omega = (energy[drawn] - proposal[drawn].log()).exp()
    expected = torch.zeros(V)
    for k, share in zip(drawn, (omega / omega.sum()).tolist(), strict=True):
        expected[k] += share
    expected[targets[0]] -= 1
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("method", ["importance", "candidates"])
def test_a_sampled_loss_is_never_negative(method: Method) -> None:
    """Where a target is as good as certain, a sample without it would estimate a far too small Z."""
    torch.manual_seed(2)
    layer, (hidden, targets) = SampledSoftmaxLayer(D, 500, n_samples=5, method=method), given()
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias[targets] = 60.0
    for _ in range(20):
        assert bool((layer.loss(hidden, targets) >= 0).all())


def test_the_estimate_of_importance_sampling_has_no_bias() -> None:
    """Z = exp(E_y) + the mean of exp(E_k) / Q_k over draws that are not y."""
    torch.manual_seed(3)
    layer, (hidden, targets) = SampledSoftmaxLayer(D, V, n_samples=3, method="importance"), given()
    scores = hidden[:1] @ layer.weight.T + layer.bias
    losses = torch.stack([layer.loss(hidden[:1], targets[:1]).detach() for _ in range(20_000)])
    estimates = (losses + scores[0, targets[0]]).exp()
    error = estimates.std() / len(estimates) ** 0.5
    assert (estimates.mean() - scores.exp().sum()).abs() < 4 * error


def test_noise_by_counts_draws_what_is_written() -> None:
    torch.manual_seed(4)
    layer = NCELayer(D, V, n_samples=20_000)
    counts = torch.arange(V) * 5  # symbol 0 is never a target
    layer.draw_by_counts(counts)
    drawn = torch.bincount(layer.draw(), minlength=V)
    assert drawn[0] <= 2
    assert (
        stats.chisquare(drawn[1:].numpy(), (counts[1:].double() * drawn[1:].sum() / counts.sum()).numpy()).pvalue
        > 0.001
    )
    assert bool(layer.loss(*given()).isfinite().all())


def test_nce_with_much_noise_approaches_the_full_softmax() -> None:
    """Where scores are log probabilities already, Z = 1; the gradient of k → ∞ is that of the likelihood."""
    torch.manual_seed(4)
    layer, (hidden, targets) = NCELayer(D, V, n_samples=400_000), given()
    hidden = hidden[:1].expand(M, D)  # one context, so that one bias can normalise it
    with torch.no_grad():
        layer.bias -= (hidden[0] @ layer.weight.T + layer.bias).logsumexp(0)
    one = torch.autograd.grad(layer.loss(hidden, targets).sum(), layer.bias)[0]
    other = torch.autograd.grad(SoftmaxLayer.loss(layer, hidden, targets).sum(), layer.bias)[0]
    torch.testing.assert_close(one, other, atol=0.03, rtol=0.02)


def test_the_loss_of_nce_is_the_equation() -> None:
    torch.manual_seed(5)
    layer, (hidden, targets) = NCELayer(D, V, n_samples=3), given()
    torch.manual_seed(6)
    losses = layer.loss(hidden, targets)
    torch.manual_seed(6)
    drawn = layer.draw()
    unnormalised = (hidden @ layer.weight.T + layer.bias).exp()
    h = unnormalised / (unnormalised + 3 * layer.noise)
    for row in range(M):
        expected = -h[row, targets[row]].log() - sum((1 - h[row, n]).log() for n in drawn)
        torch.testing.assert_close(losses[row], expected)


def test_symbols_are_drawn_from_the_noise() -> None:
    torch.manual_seed(7)
    layer = NCELayer(D, V, n_samples=20_000, noise=torch.arange(1, V + 1))
    counts = torch.bincount(layer.draw(), minlength=V)
    assert (
        stats.chisquare(counts.numpy(), (20_000 * layer.noise.double() / layer.noise.double().sum()).numpy()).pvalue
        > 0.001
    )
    assert stats.chisquare(counts.numpy()).pvalue < 1e-9


def test_candidates_are_included_with_their_own_probability() -> None:
    """1 - (1 - p)^n is what n draws with replacement include."""
    torch.manual_seed(8)
    layer, n_trials = SampledSoftmaxLayer(D, V, n_samples=5), 4000
    drawn = torch.multinomial(layer.noise, 5 * n_trials, replacement=True).view(n_trials, 5)
    included = torch.zeros(n_trials, V).scatter(1, drawn, 1.0).mean(0)
    error = (layer.inclusion * (1 - layer.inclusion) / n_trials).sqrt()
    assert bool(((included - layer.inclusion).abs() < 4 * error).all())


def test_distributions_of_noise() -> None:
    torch.testing.assert_close(log_uniform(V).sum(), torch.tensor(1.0))
    k = torch.arange(V)
    expected = ((k + 2.0).log() - (k + 1.0).log()) / torch.tensor(V + 1.0).log()
    torch.testing.assert_close(log_uniform(V), expected)
    torch.testing.assert_close(zipf(3, 2.0), torch.tensor([1.0, 1 / 4, 1 / 9]) / (1 + 1 / 4 + 1 / 9))


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (lambda: SoftmaxLayer(D, V, smoothing=1.0), "smoothing must lie"),
        (lambda: SoftmaxLayer(D, V, tied=torch.nn.Parameter(torch.zeros(V, D + 1))), "a tied table must be"),
        (lambda: SampledSoftmaxLayer(D, V, n_samples=0), "n_samples must be at least 1"),
        (lambda: SampledSoftmaxLayer(D, V, method="all"), "importance or candidates"),  # type: ignore[arg-type]
        (lambda: NCELayer(D, V, noise=torch.zeros(V)), "noise must be positive"),
        (lambda: HierarchicalSoftmaxLayer(D, V, sizes=[5, 5]), "must have 11 symbols"),
        (lambda: AdaptiveSoftmaxLayer(D, V, cutoffs=[7, 3]), "cutoffs must rise"),
    ],
)
def test_what_cannot_be_made_is_said(made: Callable[[], OutputLayer], part: str) -> None:
    with pytest.raises(ScoreError, match=part):
        made()
