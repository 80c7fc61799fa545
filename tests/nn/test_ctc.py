"""`nn.CTC` against `torch.nn.functional.ctc_loss`: values, gradients, layouts, reductions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from trelliswork.errors import ScoreError
from trelliswork.nn import CTC

INF = float("inf")
BACKENDS = ("kernel", "torch")


def batch(seed: int, blank: int = 0) -> dict[str, Any]:
    """A random ragged batch with repeats among the labels, one empty string and one that just fits."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(20, 6, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 4, (6, 8), generator=generator)
    targets += targets >= blank
    targets[0, 1] = targets[0, 0]
    lengths, sizes = torch.tensor([20, 17, 9, 12, 20, 15]), torch.tensor([8, 5, 3, 0, 1, 7])
    return dict(logits=logits, targets=targets, input_lengths=lengths, target_lengths=sizes)


def both(given: dict[str, Any], backend: str, leaf: str, **options: Any) -> list[tuple[Tensor, Tensor]]:
    """(loss, gradient by logits or by log probabilities) of ours and of torch's."""
    found = []
    labels, lengths, sizes = given["targets"], given["input_lengths"], given["target_lengths"]
    for loss in (CTC(**options, backend=backend), torch.nn.CTCLoss(**options)):
        logits = given["logits"].clone().requires_grad_()
        log_probs = logits.log_softmax(-1)
        by = logits
        if leaf == "log_probs":
            by = log_probs = log_probs.detach().requires_grad_()
        value = loss(log_probs, labels, lengths, sizes)
        weights = torch.linspace(0.5, 2.0, value.numel(), dtype=torch.float64).reshape(value.shape)
        (gradient,) = torch.autograd.grad((value * weights.to(value.dtype)).sum(), by)
        found.append((value, gradient))
    return found


@pytest.mark.parametrize("leaf", ["logits", "log_probs"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_equals_torch_in_value_and_gradient(backend: str, blank: int, reduction: str, leaf: str) -> None:
    for seed in range(4):
        ours, theirs = both(batch(seed, blank), backend, leaf, blank=blank, reduction=reduction)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_float32_is_at_least_as_exact_as_torch() -> None:
    given = batch(5)
    exact, _ = both(given, "kernel", "logits", reduction="none")
    ours, theirs = both({**given, "logits": given["logits"].float()}, "kernel", "logits", reduction="none")
    assert ours[0].dtype == ours[1].dtype == torch.float32
    for mine, other, truth in zip(ours, theirs, exact, strict=True):
        assert (mine - truth).abs().max() <= 1e-5 * truth.abs().max()
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_labels_that_do_not_fit(backend: str, zero_infinity: bool) -> None:
    """Torch's gradient of an infinite loss is NaN; ours is 0 and leaves the other rows alone."""
    given = batch(6)
    given["input_lengths"][0] = 3
    logits = given["logits"].clone().requires_grad_()
    labels = given["targets"], given["input_lengths"], given["target_lengths"]
    options = dict(reduction="none", zero_infinity=zero_infinity)
    losses = CTC(**options, backend=backend)(logits.log_softmax(-1), *labels)
    wanted = F.ctc_loss(given["logits"].log_softmax(-1), *labels, **options)
    torch.testing.assert_close(losses, wanted)
    assert losses[0].item() == (0.0 if zero_infinity else INF)
    losses.sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[:, 0] == 0).all()
    if zero_infinity:
        (_, ours), (_, theirs) = both(given, backend, "logits", **options)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_that_are_not_normalised(backend: str) -> None:
    given = batch(7)
    labels = given["targets"], given["input_lengths"], given["target_lengths"]
    scores = [given["logits"].clone().requires_grad_() for _ in range(2)]
    ours, theirs = (
        CTC(reduction="sum", backend=backend)(scores[0], *labels),
        F.ctc_loss(scores[1], *labels, reduction="sum"),
    )
    torch.testing.assert_close(ours, theirs)
    ours.backward()
    theirs.backward()
    torch.testing.assert_close(scores[0].grad, scores[1].grad)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_layouts(reduction: str) -> None:
    """Labels in one row, lengths as tuples, a single sequence without a batch axis."""
    given = batch(8)
    log_probs, sizes = given["logits"].log_softmax(-1), given["target_lengths"]
    row = torch.cat([labels[:n] for labels, n in zip(given["targets"], sizes, strict=True)])
    ours, theirs = CTC(reduction=reduction), torch.nn.CTCLoss(reduction=reduction)
    wanted = theirs(log_probs, given["targets"], given["input_lengths"], sizes)
    lengths = tuple(given["input_lengths"].tolist())
    torch.testing.assert_close(ours(log_probs, row, lengths, tuple(sizes.tolist())), wanted)
    torch.testing.assert_close(
        ours(log_probs, given["targets"].int(), given["input_lengths"].int(), sizes.int()), wanted
    )
    single = log_probs[:, 1], given["targets"][1, :5], torch.tensor(17), torch.tensor(5)
    found, wanted = ours(*single), theirs(*single)
    assert found.shape == wanted.shape
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_first_and_second_derivatives(backend: str) -> None:
    logits = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()

    def loss(logits: Tensor) -> Tensor:
        layer = CTC(reduction="none", backend=backend)
        return layer(logits.log_softmax(-1), torch.tensor([[1, 1], [2, 0]]), [5, 4], [2, 1])

    assert gradcheck(loss, (logits,))
    assert gradgradcheck(loss, (logits,), fast_mode=True)


def test_non_contiguous_and_half_precision_frames() -> None:
    given = batch(9)
    labels = given["targets"], given["input_lengths"], given["target_lengths"]
    log_probs = given["logits"].log_softmax(-1)
    turned = log_probs.transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    straight = log_probs.clone().requires_grad_()
    for frames in (turned, straight):
        CTC()(frames, *labels).backward()
    torch.testing.assert_close(turned.grad, straight.grad)
    half = log_probs.half().requires_grad_()
    loss = CTC()(half, *labels)
    assert loss.dtype == torch.float16
    torch.testing.assert_close(loss.double(), CTC()(half.double(), *labels), rtol=1e-3, atol=1e-3)
    loss.backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.float16


def test_what_stands_behind_a_row_is_not_read() -> None:
    given = batch(10)
    labels = given["targets"], given["input_lengths"], given["target_lengths"]
    log_probs = given["logits"].log_softmax(-1)
    wanted = CTC()(log_probs, *labels)
    padded = torch.arange(20)[:, None] >= given["input_lengths"]
    for garbage in (math.nan, INF, 1e30):
        filled = torch.where(padded[..., None], garbage, log_probs).requires_grad_()
        loss = CTC()(filled, *labels)
        loss.backward()
        assert loss.item() == wanted.item()
        assert filled.grad is not None
        assert (filled.grad.transpose(0, 1)[padded.T] == 0).all()
        assert filled.grad.isfinite().all()


def test_the_layer_leads_to_the_distribution() -> None:
    given = batch(11)
    layer, log_probs = CTC(reduction="none"), given["logits"].log_softmax(-1)
    dist = layer.distribution(log_probs, given["input_lengths"])
    losses = layer(log_probs, given["targets"], given["input_lengths"], given["target_lengths"])
    torch.testing.assert_close(-dist.log_prob(given["targets"], given["target_lengths"]), losses)
    assert "zero_infinity=False" in repr(layer)


GOOD = dict(
    log_probs=torch.zeros(4, 2, 3), targets=torch.ones(2, 2).long(), input_lengths=[4, 4], target_lengths=[1, 2]
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(log_probs=torch.zeros(4)), r"\[t, batch, c\] or \[t, c\]; got \(4,\)"),
        (dict(log_probs=torch.zeros(4, 2, 3).long()), "floating point"),
        (dict(log_probs=torch.full((4, 2, 3), math.nan)), "got nan at row 0, frame 0, symbol 0"),
        (dict(log_probs=torch.full((4, 2, 3), INF)), "got inf at row 0, frame 0, symbol 0"),
        (dict(targets=torch.zeros(2, 2).long()), "not be the blank, 0; got 0 at row 0, label 0"),
        (dict(targets=torch.full((2, 2), 3)), r"lie in 0..2"),
        (dict(targets=torch.ones(2, 2)), "whole numbers; got torch.float32"),
        (dict(targets=torch.ones(3, 2).long()), r"one row for each of the batch; got \(3, 2\)"),
        (dict(targets=torch.ones(4).long()), "must add up to the 4 labels given; got 3"),
        (dict(input_lengths=[5, 4]), "input_lengths must lie in 0..4; got 5 at row 0"),
        (dict(input_lengths=[4]), r"input_lengths must be whole numbers of shape \(2,\)"),
        (dict(target_lengths=[1, 3]), "target_lengths must lie in 0..2; got 3 at row 1"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_input_is_explained(change: dict[str, Any], message: str, backend: str) -> None:
    with pytest.raises(ScoreError, match=message):
        CTC(backend=backend)(**{**GOOD, **change})


def test_bad_options_are_explained() -> None:
    with pytest.raises(ScoreError, match="reduction must be one of none, mean, sum; got 'max'"):
        CTC(reduction="max")
    with pytest.raises(ScoreError, match=r"blank must lie in 0..2; got 7"):
        CTC(blank=7)(**GOOD)


def test_the_distribution_of_a_single_sequence_keeps_its_axes() -> None:
    layer, frames, one = CTC(reduction="none"), torch.randn(5, 4).log_softmax(-1), torch.tensor([1, 2])
    single = layer.distribution(frames, 4)
    assert single.log_probs.shape == (5, 4) and single.batch_shape == ()
    torch.testing.assert_close(-single.log_prob(one), layer(frames, one, 4, 2))
    with pytest.raises(ScoreError, match=r"must be \[t, batch, c\] or \[t, c\]; got \(4,\)"):
        layer.distribution(frames[0])


def test_empty_batches_and_lists_of_targets() -> None:
    none = torch.zeros(0, dtype=torch.long)
    assert CTC(reduction="none")(torch.zeros(5, 0, 4), none, none, none).shape == (0,)
    with pytest.raises(ScoreError, match="targets must be a tensor; got list"):
        CTC()(torch.zeros(5, 2, 4), [[1], [2]], (5, 5), (1, 1))  # type: ignore[arg-type]
