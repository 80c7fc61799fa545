"""Kernel = reference for every kind of score, and what else the segment kernels promise: memory, threads, long rows."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch import Tensor

from trelliswork.distributions import SemiMarkov
from trelliswork.runtime import threads
from trelliswork.runtime.kernel_math import log
from trelliswork.structures.segments import solver

INF = float("inf")
Scores = dict[str, Tensor]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
both_types = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float64", "float32"])
both_orders = pytest.mark.parametrize("first_order", [True, False], ids=["first order", "0th order"])


def random_scores(
    batch: int, n: int, k: int, c: int, *, scale: float = 1.0, first_order: bool = True, seed: int = 0
) -> Scores:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    scores = {"segments": draw(batch, n, k, c), "start": draw(c), "end": draw(c)}
    return {**scores, "transitions": draw(c, c)} if first_order else scores


def differentiated(scores: Scores, backend: str, weights: Tensor, **options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """log Z, and the gradients of its weighted sum."""
    leaves = {name: part.detach().clone().requires_grad_() for name, part in scores.items()}
    log_z = SemiMarkov(**leaves, **options, backend=backend).log_partition
    (log_z * weights.to(log_z.dtype)).sum().backward()
    return log_z.detach(), {
        name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()
    }


def agree(found: Tensor, wanted: Tensor, tolerance: float) -> None:
    """Absolute below 1, relative above; NaN equals nothing."""
    torch.testing.assert_close(found.double(), wanted.double(), rtol=tolerance, atol=tolerance)


def kernel_equals_reference(scores: Scores, dtype: torch.dtype = torch.float64, **options: Any) -> None:
    """The reference computes in float64, on exactly the numbers that the kernel is given."""
    given = {name: part.to(dtype) for name, part in scores.items()}
    weights = torch.linspace(-1, 2, len(given["segments"]), dtype=torch.float64)
    log_z, gradients = differentiated(given, "kernel", weights, **options)
    doubled = {name: part.double() for name, part in given.items()}
    true_log_z, true_gradients = differentiated(doubled, "torch", weights, **options)
    assert log_z.dtype == dtype
    agree(log_z, true_log_z, TOLERANCE[dtype])
    for name, found in gradients.items():
        assert found.dtype == dtype
        agree(found, true_gradients[name], TOLERANCE[dtype])


LENGTHS = torch.tensor([17, 1, 9])


@both_types
@both_orders
@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_scores_of_every_size(scale: float, first_order: bool, dtype: torch.dtype) -> None:
    kernel_equals_reference(random_scores(3, 17, 4, 5, scale=scale, first_order=first_order), dtype, lengths=LENGTHS)


@pytest.mark.parametrize("c", [1, 2, 3, 7, 8, 9, 16, 17, 40])
def test_any_number_of_labels(c: int) -> None:
    kernel_equals_reference(random_scores(2, 9, 3, c))


@both_orders
@pytest.mark.parametrize("mask", [-INF, -1e9])
def test_masks_real_and_pretended(mask: float, first_order: bool) -> None:
    scores = random_scores(3, 17, 4, 5, first_order=first_order)
    generator = torch.Generator().manual_seed(1)
    for part in scores.values():
        part[torch.rand(part.shape, generator=generator) < 0.3] = mask
    scores["segments"][:, :, 0, 0] = 0.0
    for name in ("start", "end"):
        scores[name][0] = 0.0
    if first_order:
        scores["transitions"][0, 0] = 0.0
    kernel_equals_reference(scores, lengths=LENGTHS)


def test_left_to_right_labels() -> None:
    """Label y may only be followed by y or y+1, and the row must end in the last."""
    scores = random_scores(2, 12, 3, 4)
    scores["transitions"] = torch.where(torch.ones(4, 4).triu() - torch.ones(4, 4).triu(2) > 0, 0.0, -INF).double()
    scores["start"], scores["end"] = (torch.tensor(edge).double() for edge in ([0, -INF, -INF, -INF], [-INF] * 3 + [0]))
    kernel_equals_reference(scores)


def test_a_label_that_vanishes_at_first_may_win_later() -> None:
    """Label 1 is 2,000 nats behind until the end, which only it may reach."""
    segments = torch.zeros(1, 6, 2, 2, dtype=torch.float64)
    segments[..., 1] = -2000.0
    end = torch.tensor([-INF, 0.0], dtype=torch.float64)
    transitions = torch.tensor([[0.0, -3000.0], [-INF, 0.0]], dtype=torch.float64)
    kernel_equals_reference({"segments": segments, "transitions": transitions, "end": end})
    kernel_equals_reference({"segments": segments, "end": end})


@both_orders
@pytest.mark.parametrize("slope", [-400.0, -150.0, -60.0, -20.0, 20.0, 60.0, 150.0, 400.0])
@pytest.mark.parametrize("by_token", [True, False], ids=["by token", "by segment"])
def test_scores_that_keep_rising_or_falling(slope: float, by_token: bool, first_order: bool) -> None:
    """The level of what is added up must follow, and tell when it cannot."""
    scores = random_scores(2, 30, 6, 3, first_order=first_order)
    scores["segments"] += slope * torch.arange(1, 7)[:, None] if by_token else slope
    kernel_equals_reference(scores)
    scores["segments"][:, 15:] += 90.0
    kernel_equals_reference(scores)


def test_a_high_score_behind_a_closed_door_is_not_heard() -> None:
    """Label 1 is unreachable at first; its high scores there may neither win nor spoil the numbers."""
    for height in (50.0, 300.0, 320.0, 1000.0, 1e30):
        scores = random_scores(1, 12, 4, 3)
        scores["segments"][:, :, :, 0] -= 20.0 * torch.arange(1, 5)
        scores["start"][1] = -INF
        scores["transitions"][:, 1] = -INF
        scores["segments"][:, :, :, 1] = height
        kernel_equals_reference(scores)


def trending(segments: Tensor, kind: int, scale: float, generator: torch.Generator) -> Tensor:
    """Scores that also depend on the position, the label, or the length of a segment; kind 0: not."""
    batch, n, k, c = segments.shape
    shape = [(1, 1, 1, 1), (batch, n, 1, 1), (1, 1, 1, c), (1, 1, k, 1), (1, 1, k, c)][kind]
    return segments + (3 * scale * torch.randn(shape, generator=generator) if kind else 0.0)


def test_random_models_of_every_kind() -> None:
    """Any shape, range of scores from 0.3 to 300, trends, -inf anywhere, also where nothing is left possible."""
    generator = torch.Generator().manual_seed(0)
    for case in range(150):
        batch, n, k, c = (int(torch.randint(1, most, (1,), generator=generator)) for most in (4, 26, 10, 6))
        scale = 10.0 ** float(3 * torch.rand(1, generator=generator) - 0.5)
        scores = random_scores(batch, n, k, c, scale=scale, first_order=case % 3 > 0, seed=case)
        scores["segments"] = trending(scores["segments"], case % 5, scale, generator)
        if case % 2:
            for part in scores.values():
                part[torch.rand(part.shape, generator=generator) < 0.25] = -INF
        lengths = torch.randint(1, n + 1, (batch,), generator=generator)
        lengths[0] = n
        kernel_equals_reference(scores, lengths=lengths)


@both_orders
def test_a_first_or_last_label_that_vanishes_may_be_the_only_one_possible(first_order: bool) -> None:
    for edge in ("start", "end"):
        scores = random_scores(1, 4, 2, 3, first_order=first_order)
        scores[edge][:] = torch.tensor([400.0, -400.0, 0.0])
        scores["segments"][..., [0, 2]] = -INF
        kernel_equals_reference(scores)


def test_moderate_scores_stay_in_exp_space_and_wide_ones_do_not() -> None:
    moderate, wide = (random_scores(2, 30, 6, 3, scale=scale) for scale in (5.0, 300.0))
    wide["segments"][0] = moderate["segments"][0]
    found = [
        solver.run_forward(SemiMarkov(**each)._arrays)
        for each in (moderate, {**moderate, "segments": wide["segments"]})
    ]
    assert [run.wide.tolist() for run in found if isinstance(run, solver.Forward)] == [[False, False], [False, True]]


def test_long_rows_stay_exact() -> None:
    scores = random_scores(1, 1500, 4, 3, scale=3.0)
    kernel_equals_reference(scores)
    kernel_equals_reference(scores, torch.float32)


def test_ten_thousand_positions() -> None:
    """Posteriors of the segments that cover a position sum to 1, at every position."""
    scores = random_scores(1, 10_000, 4, 3, scale=5.0)
    marginals = SemiMarkov(**scores).marginals[0].sum(-1)  # (n, k)
    covered = torch.zeros(10_000, dtype=torch.float64)
    for d in range(1, 5):
        for offset in range(d):
            covered[offset:] += marginals[: 10_000 - offset, d - 1]
    agree(covered, torch.ones(10_000), 1e-9)


def test_autograd_keeps_less_than_the_scores() -> None:
    scores = random_scores(4, 400, 16, 16)
    parts = SemiMarkov(**scores)._parts
    arrays = solver.SegmentArrays.of(parts)
    solver.run_forward(arrays)
    run = solver.run_forward(arrays)
    kept = sum(part.nbytes for part in run if isinstance(part, np.ndarray))
    assert kept < scores["segments"].numel() * 8 / 4
    tracemalloc.start()
    solver.run_backward(arrays, run, np.ones(4))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * scores["segments"].numel() * 8


@both_orders
def test_threads_give_the_same_numbers(first_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = random_scores(5, 12, 3, 4, first_order=first_order)
    weights = torch.ones(5)

    def everything() -> tuple[Any, ...]:
        dist = SemiMarkov(**scores, backend="kernel")
        samples = dist.sample_starts((3,), torch.Generator().manual_seed(0))
        return *differentiated(scores, "kernel", weights), dist.argmax, dist.top_k(3)[1], samples

    alone = everything()
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    together = everything()
    assert torch.equal(alone[0], together[0])
    assert all(torch.equal(alone[1][name], together[1][name]) for name in scores)
    assert alone[2] == together[2]
    assert torch.equal(alone[3], together[3])
    assert torch.equal(alone[4], together[4])


@njit
def _logs(numbers: Any, found: Any) -> None:
    for i in range(len(numbers)):
        found[i] = log(numbers[i])


def test_the_vectorised_logarithm() -> None:
    generator = np.random.default_rng(0)
    wide, near_one = np.exp(generator.uniform(-700, 700, 20_000)), 1 + generator.normal(0, 1e-3, 20_000)
    numbers = np.concatenate([wide, near_one, [1.0, 0.5, 2.0, math.sqrt(0.5)]])
    found = np.empty_like(numbers)
    _logs(numbers, found)
    np.testing.assert_allclose(found, np.log(numbers), rtol=1e-15, atol=0)
    _logs(np.zeros(1), found)
    assert found[0] == -INF


def test_a_graph_may_be_walked_twice() -> None:
    leaves = {name: part.requires_grad_() for name, part in random_scores(2, 6, 3, 3).items()}
    log_z = SemiMarkov(**leaves).log_partition.sum()
    first = torch.autograd.grad(log_z, list(leaves.values()), retain_graph=True)
    second = torch.autograd.grad(log_z, list(leaves.values()))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@both_orders
def test_best_and_top_agree_with_the_reference(first_order: bool) -> None:
    for seed in range(10):
        scores = random_scores(3, 17, 4, 3, first_order=first_order, seed=seed)
        kernel, plain = (SemiMarkov(**scores, lengths=LENGTHS, backend=backend) for backend in ("kernel", "torch"))
        assert kernel.argmax == plain.argmax
        found, wanted = kernel.top_k(5), plain.top_k(5)
        agree(found[1], wanted[1], 1e-10)
        exists = (wanted[1] > -INF).tolist()
        for rank in range(5):
            for row in range(3):
                assert not exists[rank][row] or found[0][rank][row] == wanted[0][rank][row]


@both_orders
def test_ties_are_broken_alike(first_order: bool) -> None:
    for seed in range(20):
        scores = {
            name: part.round() for name, part in random_scores(3, 9, 3, 3, first_order=first_order, seed=seed).items()
        }
        kernel, plain = (SemiMarkov(**scores, backend=backend).argmax for backend in ("kernel", "torch"))
        assert kernel == plain


def test_half_precision_is_computed_in_more() -> None:
    scores = {name: part.bfloat16() for name, part in random_scores(2, 6, 3, 3).items()}
    dist = SemiMarkov(**scores)
    assert dist.log_partition.dtype == dist.marginals.dtype == torch.bfloat16
    wanted = SemiMarkov(**{name: part.double() for name, part in scores.items()}).log_partition
    assert math.isclose(dist.log_partition[0].item(), wanted[0].item(), rel_tol=1e-2)


@both_orders
def test_samples_of_wide_and_narrow_rows_have_the_right_frequencies(first_order: bool) -> None:
    """Wide rows are drawn from log space, others from scaled weights; row 2 has one position, row 3 holes of -inf."""
    scores = random_scores(4, 6, 3, 3, first_order=first_order)
    scores["segments"][0] *= 300.0
    scores["segments"][0, :, :, 1] = scores["segments"][0, :, :, 2] + 1.0  # likely labels are near ties
    scores["segments"][3, :, :, 1] = scores["end"][2] = -INF
    lengths, n_samples = torch.tensor([6, 5, 1, 6]), 20_000
    segmentations = SemiMarkov(**scores, lengths=lengths, backend="kernel")
    run = solver.run_forward(segmentations._arrays)
    assert isinstance(run, solver.Forward) and run.wide.tolist() == [True, False, False, False]
    starts = segmentations.sample_starts((n_samples,), torch.Generator().manual_seed(0))
    counts, ends = torch.zeros(4, 6, 3, 3, dtype=torch.float64), lengths.expand(n_samples, 4).clone()
    for i in range(5, -1, -1):
        for b in range(4):
            label, d = starts[:, b, i], ends[:, b] - i - 1
            begins = label >= 0
            counts[b, i].index_put_((d[begins], label[begins]), torch.ones(1, dtype=torch.float64), accumulate=True)
            ends[:, b] = torch.where(begins, i, ends[:, b])
    expected = segmentations.marginals
    deviation = (expected * (1 - expected)).clamp(min=0).sqrt() / n_samples**0.5
    assert ((counts / n_samples - expected).abs() <= 5 * deviation + 1e-12).all()
