"""The loss in two kernel calls says what the general way says, in value and in every gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from trelliswork.distributions import LinearChain
from trelliswork.runtime import threads
from trelliswork.structures.chain import likelihood, solver
from trelliswork.structures.chain.likelihood import MANY_TAGS, _log_likelihood, log_likelihood

Batch = tuple[tuple[Tensor, ...], Tensor, Tensor]


def batch_of(size: int, n: int, c: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Batch:
    """Scores that want gradients, tags, and a right-padded mask with a row of length 1."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((size, n, c), (c, c), (c,), (c,))
    scores = tuple(torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)
    lengths = torch.randint(1, n + 1, (size,), generator=generator)
    lengths[0], lengths[-1] = n, 1
    return scores, torch.randint(c, (size, n), generator=generator), torch.arange(n) < lengths[:, None]


def by_reference(scores: tuple[Tensor, ...], tags: Tensor, mask: Tensor | None) -> Tensor:
    return LinearChain(*scores, mask=mask, backend="torch").log_prob(tags)


@pytest.mark.parametrize("c", [1, 2, 7, 8, 9, 45, MANY_TAGS, 50])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 13])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradients_are_those_of_the_reference(n: int, c: int, dtype: torch.dtype) -> None:
    scores, tags, mask = batch_of(5, n, c, dtype)
    weights = torch.linspace(-1.0, 2.0, 5, dtype=dtype)  # rows with their own incoming gradient, one of them 0
    weights[2] = 0.0
    found, wanted = log_likelihood(scores, tags, mask=mask), by_reference(scores, tags, mask)
    assert found is not None
    torch.testing.assert_close(found, wanted)
    grads = torch.autograd.grad(found, scores, weights)
    for mine, other in zip(grads, torch.autograd.grad(wanted, scores, weights, materialize_grads=True), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5 if dtype == torch.float32 else 1e-12, rtol=1e-5)


WIDE_SCORES = ["plain", "by tag", "masks", "pretended masks", "left to right", "high", "wide row", "wide"]


def in_float32(kind: str, seed: int) -> Batch:
    """A batch for float32: scores of every kind, 9 rows of up to 70 positions, so that sums are made in two parts."""
    (emissions, transitions, *edges), _, mask = batch_of(9, 70, MANY_TAGS, torch.float32, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        emissions *= {"high": 5.0, "wide": 60.0}.get(kind, 1.0)
        if kind == "by tag":
            emissions += 10 * torch.randn(MANY_TAGS, generator=generator)
        elif kind in ("masks", "pretended masks"):
            forbidden = torch.rand(transitions.shape, generator=generator) < 0.3
            transitions[forbidden] = -math.inf if kind == "masks" else -1e9
        elif kind == "left to right":
            band = torch.ones_like(transitions).triu() - torch.ones_like(transitions).triu(2) > 0
            transitions[~band] = -math.inf
        elif kind == "wide row":
            emissions[4, 0, 1] -= 90.0
    chain = LinearChain(emissions.detach(), transitions.detach(), *(each.detach() for each in edges), mask=mask)
    return (emissions, transitions, *edges), chain.sample(generator=generator), mask


@pytest.mark.parametrize("kind", WIDE_SCORES)
def test_sums_in_float32_are_within_one_in_a_hundred_thousand(kind: str) -> None:
    """Log Z, and the expected number of each part: what a loss and its gradient are differences of."""
    for seed in range(3):
        scores, tags, mask = in_float32(kind, seed)
        doubles = tuple(each.detach().double().requires_grad_() for each in scores)
        found = log_likelihood(scores, tags, mask=mask)
        if found is None:  # too wide for exp space in float64 as well
            assert kind == "wide"
            continue
        log_z, wanted = LinearChain(*doubles, mask=mask).log_partition, by_reference(doubles, tags, mask)
        assert bool(((found.double() - wanted).abs() <= 1e-6 * log_z.abs().clamp(min=10)).all())
        expected = torch.autograd.grad(log_z.sum(), doubles)
        grads = torch.autograd.grad(found.sum(), scores), torch.autograd.grad(wanted.sum(), doubles)
        for mine, other, size in zip(*grads, expected, strict=True):
            assert bool(((mine.double() - other).abs() <= 1e-5 * size.clamp(min=1)).all())


@pytest.mark.parametrize("kind", WIDE_SCORES)
def test_a_row_that_float32_cannot_hold_sends_its_batch_to_float64(kind: str) -> None:
    scores, tags, mask = in_float32(kind, 0)
    found = _log_likelihood(scores, tags, mask, None, np.float32)
    assert (found is None) == (kind in ("left to right", "wide row", "wide"))


def test_few_tags_and_long_rows_stay_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    precisions = []

    def remembered(*arguments: object) -> Tensor | None:
        precisions.append(arguments[-1])
        return _log_likelihood(*arguments)

    monkeypatch.setattr(likelihood, "_log_likelihood", remembered)
    for c, n in ((MANY_TAGS - 1, 20), (MANY_TAGS, 513), (MANY_TAGS, 20)):
        scores, tags, _ = batch_of(2, n, c, torch.float32)
        torch.testing.assert_close(log_likelihood(scores, tags), by_reference(scores, tags, None))
    assert precisions == [np.float64, np.float64, np.float32]


def test_first_and_second_derivatives() -> None:
    scores, tags, mask = batch_of(3, 4, 3)
    assert torch.autograd.gradcheck(lambda *s: log_likelihood(s, tags, mask=mask), scores)
    assert torch.autograd.gradgradcheck(lambda *s: log_likelihood(s, tags, mask=mask), scores)


def test_without_a_mask_every_position_counts() -> None:
    scores, tags, _ = batch_of(4, 6, 5)
    torch.testing.assert_close(log_likelihood(scores, tags), by_reference(scores, tags, None))


def test_threads_share_the_rows(worth_splitting: None) -> None:
    scores, tags, mask = batch_of(7, 9, 5)
    assert len(threads.row_ranges(7, 7 * 9 * 25)) == 2
    found, wanted = log_likelihood(scores, tags, mask=mask), by_reference(scores, tags, mask)
    torch.testing.assert_close(found, wanted)
    grads = torch.autograd.grad(found.sum(), scores)
    for mine, other in zip(grads, torch.autograd.grad(wanted.sum(), scores), strict=True):
        torch.testing.assert_close(mine, other)


def test_forbidden_parts_have_no_gradient_and_impossible_tags_no_probability() -> None:
    scores, tags, mask = batch_of(3, 5, 3)
    emissions = scores[0].detach().clone()
    emissions[:, :, 2] = -math.inf
    emissions.requires_grad_()
    possible = tags % 2
    found = log_likelihood((emissions, *scores[1:]), possible, mask=mask)
    torch.testing.assert_close(found, by_reference((emissions, *scores[1:]), possible, mask))
    (grad,) = torch.autograd.grad(found.sum(), emissions)
    assert bool((grad[:, :, 2] == 0).all())
    assert not grad.isnan().any()
    impossible = possible.index_fill(1, torch.tensor(0), 2)
    found = log_likelihood((emissions, *scores[1:]), impossible, mask=mask)
    assert found.tolist() == [-math.inf] * len(tags)


@pytest.mark.parametrize(
    "change",
    ["hole", "empty row", "nan", "inf", "tag too high", "unknown tag", "wide", "half", "mixed"],
)
def test_what_is_not_plain_is_left_to_the_general_way(change: str) -> None:
    (emissions, *others), tags, mask = batch_of(3, 5, 3)
    emissions = emissions.detach().clone()
    if change == "hole":
        mask[0, 1] = False
    elif change == "empty row":
        mask[1] = False
    elif change in ("nan", "inf"):
        emissions[0, 1, 0] = float(change)
    elif change == "tag too high":
        tags[0, 1] = 3
    elif change == "unknown tag":
        tags[0, 1] = -100
    elif change == "wide":
        emissions[0, 1, 0] = 1e4
    elif change == "half":
        emissions, others = emissions.half(), [each.half() for each in others]
    else:
        emissions = emissions.float()
    assert log_likelihood((emissions, *others), tags, mask=mask) is None


def test_many_samples_are_summed_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is answered in one kernel, the others from one pass over the chain."""
    scores, _, mask = batch_of(3, 5, 3)
    chain = LinearChain(*scores, mask=mask)
    samples = chain.sample((4,))
    passes = []
    run_forward = solver.run_forward
    monkeypatch.setattr(solver, "run_forward", lambda arrays: passes.append(1) or run_forward(arrays))
    fresh = LinearChain(*scores, mask=mask)
    torch.testing.assert_close(fresh.log_prob(samples), by_reference(scores, samples, mask))
    assert len(passes) == 1
