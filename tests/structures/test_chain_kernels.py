"""Kernel = reference for every kind of score, and what else the kernels promise: memory, threads, errors."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from trelliswork.distributions import LinearChain, kl_divergence
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.structures.chain import solver

INF = float("inf")
Scores = tuple[Tensor, Tensor, Tensor, Tensor]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
both_types = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float64", "float32"])
both_arcs = pytest.mark.parametrize("by_position", [False, True], ids=["shared", "by position"])


def random_scores(
    batch: int, n: int, c: int, *, scale: float = 1.0, by_position: bool = False, seed: int = 0
) -> Scores:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    return draw(batch, n, c), draw(batch, n - 1, c, c) if by_position else draw(c, c), draw(c), draw(c)


def differentiated(scores: Scores, backend: str, **options: Tensor) -> tuple[Tensor, list[Tensor]]:
    """log Z and the gradients of its sum by emissions, transitions, start and end."""
    leaves = [part.detach().clone().requires_grad_() for part in scores]
    log_z = LinearChain(*leaves, **options, backend=backend).log_partition
    log_z.sum().backward()
    return log_z.detach(), [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]


def agree(found: Tensor, wanted: Tensor, tolerance: float) -> None:
    """Absolute below 1, relative above; NaN equals nothing."""
    torch.testing.assert_close(found.double(), wanted.double(), rtol=tolerance, atol=tolerance)


def kernel_equals_reference(scores: Scores, dtype: torch.dtype = torch.float64, **options: Tensor) -> None:
    """The reference computes in float64, on exactly the numbers that the kernel is given."""
    given = tuple(part.to(dtype) for part in scores)
    log_z, gradients = differentiated(given, "kernel", **options)  # type: ignore[arg-type]
    true_log_z, true_gradients = differentiated(tuple(part.double() for part in given), "torch", **options)  # type: ignore[arg-type]
    assert log_z.dtype == dtype
    agree(log_z, true_log_z, TOLERANCE[dtype])
    for found, wanted in zip(gradients, true_gradients, strict=True):
        assert found.dtype == dtype
        agree(found, wanted, TOLERANCE[dtype])


def wide_rows(*scores: Tensor, **options: Tensor) -> list[int]:
    """Rows that leave scaled exp space."""
    chain = LinearChain(*scores, **options, backend="kernel")._chain
    return solver.run_forward(solver.ChainArrays.of(chain)).wide_rows.tolist()


def enumerated_log_z(emissions: Tensor, transitions: Tensor) -> float:
    n, c = emissions.shape
    totals = []
    for tags in itertools.product(range(c), repeat=n):
        total = sum(emissions[t, tag].item() for t, tag in enumerate(tags))
        totals.append(total + sum(transitions[a, b].item() for a, b in itertools.pairwise(tags)))
    highest = max(totals)
    return highest + math.log(math.fsum(math.exp(total - highest) for total in totals))


# --- scores of every size ------------------------------------------------------------------------------------


@both_types
@both_arcs
@pytest.mark.parametrize("scale", [1.0, 10.0, 30.0, 100.0, 1000.0])
def test_scores_of_every_scale(dtype: torch.dtype, by_position: bool, scale: float) -> None:
    scores = random_scores(4, 25, 6, scale=scale, by_position=by_position)
    kernel_equals_reference(scores, dtype, lengths=torch.tensor([25, 1, 13, 2]))


@both_types
@pytest.mark.parametrize("scale", [10.0, 100.0, 1000.0])
def test_only_some_scores_are_large(dtype: torch.dtype, scale: float) -> None:
    """One in five: most weights lie close together, a few far apart."""
    emissions, transitions, start, end = random_scores(4, 25, 6)
    sparse = torch.rand(emissions.shape, generator=torch.Generator().manual_seed(1)) < 0.2
    kernel_equals_reference((torch.where(sparse, scale * emissions, emissions), transitions, start, end), dtype)


@both_types
@pytest.mark.parametrize("c", [1, 2, 3, 4, 5, 7, 8, 9, 17])
def test_every_number_of_tags(dtype: torch.dtype, c: int) -> None:
    kernel_equals_reference(random_scores(3, 6, c, scale=2.0), dtype, lengths=torch.tensor([6, 4, 1]))


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float64, 1.0), (torch.float32, 10.0)])
def test_ten_thousand_positions(dtype: torch.dtype, scale: float) -> None:
    kernel_equals_reference(random_scores(1, 10_000, 4, scale=scale), dtype)


@both_types
@pytest.mark.parametrize(("n", "scale"), [(600, 1.0), (100, 1e3), (20, 1e30)])
def test_what_rests_on_marginals_is_as_exact_by_reference(dtype: torch.dtype, n: int, scale: float) -> None:
    """The reference serves other devices, so it must not lose a long or wide chain either."""
    emissions, *rest = random_scores(1, n, 4, scale=scale)
    given = tuple(part.to(dtype) for part in (as_if_long(emissions) if scale == 1.0 else emissions, *rest))
    kernel, plain = (LinearChain(*given, backend=backend) for backend in ("kernel", "torch"))
    agree(plain.marginals, kernel.marginals, TOLERANCE[dtype])
    agree(plain.marginals.sum(-1), torch.ones(1, n), TOLERANCE[dtype])
    agree(plain.pairwise_marginals, kernel.pairwise_marginals, TOLERANCE[dtype])
    if scale == 1.0:  # a difference of numbers as large as the scores
        agree(plain.entropy(), kernel.entropy(), TOLERANCE[dtype])


def as_if_long(emissions: Tensor) -> Tensor:
    """The sums of a chain of 600 positions become as large as those of more than 10,000, and lose as many digits."""
    return emissions + 50.0


def test_float32_differences_are_rounded_once() -> None:
    """Entropy, sets, divergences and their gradients are small numbers from large ones."""
    emissions, *rest = random_scores(1, 600, 4)
    given = tuple(part.float() for part in (as_if_long(emissions), *rest))
    known = torch.full((1, 600), -100)
    known[0, ::100] = 1
    found, wanted = [], []
    for scores, answers in ((given, found), (tuple(part.double() for part in given), wanted)):
        leaves = [part.clone().requires_grad_() for part in scores]
        chain = LinearChain(*leaves)
        other = LinearChain(leaves[0] * 0.5, *leaves[1:])
        values = chain.entropy(), chain.log_prob_of_set(known), kl_divergence(chain, other)
        shares = chain.token_log_probs(known)
        gradients = torch.autograd.grad(values[0].sum() + shares.sum(), leaves)
        answers += [*values, shares, *gradients]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32
        agree(one, other, 1e-5)


def test_ten_thousand_positions_in_log_space() -> None:
    """Half of the positions forbid one tag by a wide margin, so that its weight vanishes and comes back."""
    emissions, transitions, start, end = random_scores(1, 10_000, 3)
    emissions[0, ::2, 1] -= 400.0
    transitions = transitions - 400.0 * (1 - torch.eye(3, dtype=torch.float64))
    assert wide_rows(emissions, transitions, start, end) == [0]
    kernel_equals_reference((emissions, transitions, start, end))


def test_ten_thousand_positions_have_a_best_path_and_samples() -> None:
    scores = random_scores(1, 10_000, 3)
    fast_chain, plain = (LinearChain(*scores, backend=backend) for backend in ("kernel", "torch"))
    assert torch.equal(fast_chain.argmax, plain.argmax)
    drawn = fast_chain.sample((2,), generator=torch.Generator().manual_seed(0))
    frequency = torch.nn.functional.one_hot(drawn, 3).double().mean((0, 1, 2))
    agree(frequency, fast_chain.marginals[0].mean(0), 0.03)


def left_to_right(n: int, c: int, forbidden: float, slope: float) -> Scores:
    """Tags only stay or move one on; begin in the first, end in the last; later tags score `slope` more each."""
    emissions, *_ = random_scores(2, n, c)
    arcs = torch.full((c, c), forbidden, dtype=torch.float64)
    arcs[range(c), range(c)] = 0.0
    arcs[range(c - 1), range(1, c)] = -1.0
    first, last = torch.full((2, c), forbidden, dtype=torch.float64)
    first[0], last[-1] = 0.0, 0.0
    return emissions + slope * torch.arange(c), arcs, first, last


@both_types
@pytest.mark.parametrize("forbidden", [-INF, -1e4, -1e9])
@pytest.mark.parametrize("slope", [-20.0, -1.0, 0.0, 20.0])
def test_left_to_right_topologies(dtype: torch.dtype, forbidden: float, slope: float) -> None:
    kernel_equals_reference(
        left_to_right(60, 5, forbidden, slope), dtype, lengths=torch.tensor([60, 23], dtype=torch.long)
    )


@both_types
@both_arcs
def test_pseudo_masks_in_transitions_and_emissions(dtype: torch.dtype, by_position: bool) -> None:
    emissions, transitions, start, end = random_scores(3, 12, 5, by_position=by_position)
    generator = torch.Generator().manual_seed(4)
    transitions = transitions.masked_fill(torch.rand(transitions.shape, generator=generator) < 0.3, -1e9)
    emissions = emissions.masked_fill(torch.rand(emissions.shape, generator=generator) < 0.3, -1e9)
    emissions[:, :, 0] = emissions[:, :, 0].clamp(min=-1.0)  # one tag stays free, and may always be kept
    transitions[..., 0, 0] = 0.0
    kernel_equals_reference((emissions, transitions, start, end), dtype)


@both_types
def test_a_step_masked_altogether_by_a_pseudo_mask(dtype: torch.dtype) -> None:
    """-1e9 for every tag forbids none of them: only log Z moves."""
    emissions, transitions, start, end = (part.to(dtype) for part in random_scores(2, 8, 4))
    level = emissions.clone()
    level[:, 3] = 0.0
    masked = level.clone()
    masked[:, 3] = -1e9
    log_z, gradients = differentiated((level, transitions, start, end), "kernel")
    low_log_z, low_gradients = differentiated((masked, transitions, start, end), "kernel")
    agree(low_log_z, log_z.double() - 1e9, TOLERANCE[dtype])
    for found, wanted in zip(low_gradients, gradients, strict=True):
        agree(found, wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("backend", ["kernel", "torch"])
@both_types
def test_a_path_that_vanishes_at_first_may_win_later(backend: str, dtype: torch.dtype) -> None:
    """The second tag is e^-100 at first, then each step gains e^60 on the first tag; pseudo-masks keep them apart."""
    emissions = torch.tensor([[0.0, -100.0], [-60.0, 0.0], [-60.0, 0.0]], dtype=dtype)
    transitions = torch.tensor([[0.0, -1e9], [-1e9, 0.0]], dtype=dtype)
    log_z, (marginals, *_) = differentiated(
        (emissions[None], transitions, torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype)), backend
    )
    agree(log_z, torch.tensor([enumerated_log_z(emissions, transitions)]), TOLERANCE[dtype])
    assert (marginals[0, :, 1] > 0.99).all()
    assert LinearChain(emissions[None], transitions, backend=backend).argmax.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("depth", [100.0, 500.0, 800.0, 1e4, 1e9])
def test_a_hole_of_any_depth(depth: float) -> None:
    """As above, as deep as you like; enumeration knows the answer."""
    emissions = torch.tensor([[0.0, -depth], [-0.6 * depth, 0.0], [-0.6 * depth, 0.0]], dtype=torch.float64)
    transitions = torch.tensor([[0.0, -1e12], [-1e12, 0.0]], dtype=torch.float64)
    found = LinearChain(emissions[None], transitions, backend="kernel")
    agree(found.log_partition, torch.tensor([enumerated_log_z(emissions, transitions)]), 1e-10)
    assert (found.marginals[0, :, 1] > 0.99).all()


@pytest.mark.parametrize("place", ["start", "end", "transitions"])
@pytest.mark.parametrize("depth", [200.0, 600.0, 900.0, 5000.0])
def test_a_tag_that_only_one_part_disfavours(place: str, depth: float) -> None:
    """The emissions lift tag 1 by as much as another part lowers it: both tags keep their share."""
    emissions = torch.zeros(1, 3, 2, dtype=torch.float64)
    transitions, start, end = torch.zeros(2, 2, dtype=torch.float64), *torch.zeros(2, 2, dtype=torch.float64)
    if place == "start":
        start[1], emissions[0, 1, 1] = -depth, depth
        transitions[0, 1] = transitions[1, 0] = -3 * depth
    elif place == "end":
        end[1], emissions[0, 0, 1] = -depth, depth
        transitions[0, 1] = transitions[1, 0] = -3 * depth
    else:
        transitions[0, 1], emissions[0, 2, 1] = -depth, depth
    kernel_equals_reference((emissions, transitions, start, end))


@both_types
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 3, 20])
@both_arcs
def test_best_paths_of_one_row_and_of_several(dtype: torch.dtype, batch: int, n: int, by_position: bool) -> None:
    scores = [part.to(dtype) for part in random_scores(batch, n, 5, scale=3.0, by_position=by_position, seed=n)]
    found, wanted = (LinearChain(*scores, backend=backend) for backend in ("kernel", "torch"))
    assert torch.equal(found.argmax, wanted.argmax)
    for one, other in zip(found.top_k(4), wanted.top_k(4), strict=True):
        agree(one, other, 1e-5)
    kernel_equals_reference(tuple(scores), dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e6])
def test_best_paths_of_long_rows_lose_no_precision(scale: float) -> None:
    """The best path is found among near ties although its score grows large."""
    emissions, transitions, start, end = random_scores(2, 400, 4)
    found, wanted = (
        LinearChain(emissions + scale, transitions + scale, start, end, backend=b).argmax for b in ("kernel", "torch")
    )
    plain = LinearChain(emissions, transitions, start, end, backend="torch").argmax
    assert torch.equal(found, plain)
    assert torch.equal(wanted, plain)


# --- which rows go to log space ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 40, 600])
def test_real_minus_infinity_never_sends_a_row_to_log_space(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    emissions, transitions, start, end = random_scores(6, n, 7)
    emissions = emissions.masked_fill(torch.rand(emissions.shape, generator=generator) < 0.4, -INF)
    transitions = transitions.masked_fill(torch.rand(transitions.shape, generator=generator) < 0.4, -INF)
    start = start.masked_fill(torch.rand(7, generator=generator) < 0.4, -INF)
    assert wide_rows(emissions, transitions, start, end) == []
    forced = left_to_right(max(n, 5), 5, -INF, 0.0)
    assert wide_rows(*forced) == []


def test_wide_scores_do_and_take_no_other_row_with_them() -> None:
    emissions, transitions, start, end = random_scores(3, 10, 4)
    emissions[1, 4, 2] -= 900.0
    assert wide_rows(emissions, transitions, start, end) == [1]
    kernel_equals_reference((emissions, transitions, start, end))


def test_wide_rows_with_real_minus_infinity_are_exact_as_well() -> None:
    emissions, transitions, start, end = random_scores(4, 9, 4, scale=300.0)
    emissions[0, 3, :2] = -INF
    emissions[1, 8, 1:] = -INF
    emissions[2, 4] = -INF  # nothing is possible in this row
    transitions[2, 3] = transitions[0, 0] = -INF
    start[1], end[2] = -INF, -INF
    assert wide_rows(emissions, transitions, start, end)
    kernel_equals_reference((emissions, transitions, start, end))


@both_arcs
def test_posteriors_of_wide_and_narrow_rows_side_by_side(by_position: bool) -> None:
    emissions, transitions, start, end = random_scores(4, 7, 3, by_position=by_position)
    emissions[::2] *= 400.0
    found, wanted = (LinearChain(emissions, transitions, start, end, backend=b) for b in ("kernel", "torch"))
    assert 0 < len(wide_rows(emissions, transitions, start, end)) < 4
    agree(found.marginals, wanted.marginals, 1e-10)
    agree(found.pairwise_marginals, wanted.pairwise_marginals, 1e-10)
    costs = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    agree(found.expected(transitions=costs), wanted.expected(transitions=costs), 1e-10)


@both_arcs
def test_weighted_gradients_of_wide_and_narrow_rows(by_position: bool) -> None:
    """Rows of a loss may have any weight, negative and zero ones too."""
    scores = random_scores(4, 7, 3, by_position=by_position)
    scores[0][::2] *= 400.0
    gradients = []
    for backend in ("kernel", "torch"):
        leaves = [part.clone().requires_grad_() for part in scores]
        log_z = LinearChain(*leaves, backend=backend).log_partition
        (log_z * torch.tensor([2.0, -0.5, 0.0, 3.0])).sum().backward()
        gradients.append([leaf.grad for leaf in leaves])
    for found, wanted in zip(*gradients, strict=True):
        assert found is not None
        assert wanted is not None
        agree(found, wanted, 1e-10)


@both_arcs
def test_samples_of_wide_and_narrow_rows_have_the_right_frequencies(by_position: bool) -> None:
    """Wide rows are drawn from log space, others from scaled weights; row 2 has one position, row 3 holes of -inf."""
    emissions, transitions, start, end = random_scores(4, 6, 3, by_position=by_position)
    emissions[0, 2, :2] -= 900.0
    emissions[0, 3, 0] -= 900.0
    emissions[3, :, 1], end[2] = -INF, -INF
    lengths = torch.tensor([6, 5, 1, 6])
    assert wide_rows(emissions, transitions, start, end, lengths=lengths) == [0]
    chain = LinearChain(emissions, transitions, start, end, lengths=lengths, backend="kernel")
    n_samples = 20_000
    tags = chain.sample((n_samples,), torch.Generator().manual_seed(0))
    real = torch.arange(6) < lengths[:, None]
    one_hot = torch.nn.functional.one_hot(tags, 3).double() * real[:, :, None]
    for expected, counts in (
        (chain.marginals, one_hot.mean(0)),
        (chain.pairwise_marginals, torch.einsum("sbti,sbtj->btij", one_hot[:, :, :-1], one_hot[:, :, 1:]) / n_samples),
    ):
        deviation = (expected * (1 - expected)).clamp(min=0).sqrt() / n_samples**0.5
        assert ((counts - expected).abs() <= 5 * deviation + 1e-12).all()


# --- memory --------------------------------------------------------------------------------------------------


class LargestTensor(TorchDispatchMode):
    """Remembers how many numbers the largest result of any torch operation had."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        for result in results if isinstance(results, tuple | list) else (results,):
            if isinstance(result, Tensor):
                self.largest = max(self.largest, result.numel())
        return results


@pytest.mark.parametrize("scale", [1.0, 500.0], ids=["exp space", "log space"])
def test_a_forward_pass_keeps_no_more_than_a_number_for_each_tag(scale: float) -> None:
    batch, n, c = 3, 50, 64
    chain = LinearChain(*random_scores(batch, n, c, scale=scale), backend="kernel")._chain
    kept = [part for part in solver.run_forward(solver.ChainArrays.of(chain)) if isinstance(part, np.ndarray)]
    assert max(part.size for part in kept) <= max(batch * n * c, c * c)
    assert sum(part.size for part in kept) <= 4 * batch * n * c + c * c + 4 * batch


@pytest.mark.parametrize("scale", [1.0, 500.0], ids=["exp space", "log space"])
@pytest.mark.parametrize("query", ["log_partition", "log_prob"])
def test_loss_and_gradient_never_hold_a_number_for_each_arc_of_each_position(scale: float, query: str) -> None:
    batch, n, c = 3, 80, 64
    leaves = [part.requires_grad_() for part in random_scores(batch, n, c, scale=scale)]
    tags = torch.zeros(batch, n, dtype=torch.long)

    def loss_and_gradient() -> None:
        dist = LinearChain(*leaves, backend="kernel")
        (dist.log_partition if query == "log_partition" else dist.log_prob(tags)).sum().backward()

    with LargestTensor() as seen:  # first: it compiles, and the mode loads modules of its own
        loss_and_gradient()
    tracemalloc.start()
    loss_and_gradient()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.largest <= max(batch * n * c, c * c)
    assert peak < 0.3 * 8 * batch * n * c * c


# --- threads -------------------------------------------------------------------------------------------------


def everything(scores: Scores, lengths: Tensor) -> dict[str, Tensor]:
    log_z, gradients = differentiated(scores, "kernel", lengths=lengths)
    dist = LinearChain(*scores, lengths=lengths, backend="kernel")
    paths, path_scores = dist.top_k(3)
    return {
        "log_z": log_z,
        **{f"gradient {i}": gradient for i, gradient in enumerate(gradients)},
        "marginals": dist.marginals,
        "argmax": dist.argmax,
        "paths": paths,
        "path_scores": path_scores,
        "samples": dist.sample((3,), generator=torch.Generator().manual_seed(0)),
    }


@pytest.fixture
def big_batch() -> tuple[Scores, Tensor]:
    scores = random_scores(41, 60, 40)
    scores[0][7, 3] *= 900.0  # a wide row among the others
    return scores, torch.randint(1, 61, (41,), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def by_one_thread(big_batch: tuple[Scores, Tensor]) -> dict[str, Tensor]:
    assert torch.get_num_threads() == 1
    return everything(*big_batch)


def test_two_threads_give_the_results_of_one(
    by_one_thread: dict[str, Tensor], big_batch: tuple[Scores, Tensor], two_threads: None
) -> None:
    assert torch.get_num_threads() == 2
    for name, found in everything(*big_batch).items():
        if found.is_floating_point():
            agree(found, by_one_thread[name], 1e-12)
        else:
            assert torch.equal(found, by_one_thread[name]), name


# --- how tensors may lie -------------------------------------------------------------------------------------


def test_layouts_of_memory_do_not_matter() -> None:
    scores = random_scores(3, 5, 4, by_position=True)
    strange = (
        scores[0].transpose(0, 1).contiguous().transpose(0, 1),
        torch.stack([scores[1], scores[1]], -1)[..., 0],
        torch.stack([scores[2], scores[2]], -1)[:, 1],
        scores[3].flip(0).flip(0),
    )
    assert not strange[0].is_contiguous()
    assert not strange[1].is_contiguous()
    assert not strange[2].is_contiguous()
    log_z, gradients = differentiated(scores, "kernel")
    same_log_z, same_gradients = differentiated(strange, "kernel")
    assert torch.equal(log_z, same_log_z)
    for found, wanted in zip(same_gradients, gradients, strict=True):
        assert torch.equal(found, wanted)
    tags = torch.randint(0, 4, (5, 3), generator=torch.Generator().manual_seed(0)).T
    assert not tags.is_contiguous()
    dist = LinearChain(*scores, backend="kernel")
    assert torch.equal(dist.log_prob(tags), dist.log_prob(tags.contiguous()))
    assert torch.equal(LinearChain(*strange, backend="kernel").argmax, dist.argmax)


@pytest.mark.parametrize("backend", ["kernel", "torch"])
def test_expanded_inputs_gather_the_gradients_of_their_copies(backend: str) -> None:
    emissions, transitions, start, end = random_scores(1, 4, 3)
    one_row = emissions.requires_grad_()
    log_z = LinearChain(one_row.expand(5, 4, 3), transitions, start, end, backend=backend).log_partition
    log_z.sum().backward()
    alone = emissions.detach().clone().requires_grad_()
    LinearChain(alone, transitions, start, end, backend=backend).log_partition.sum().backward()
    assert log_z.shape == (5,)
    assert one_row.grad is not None
    assert alone.grad is not None
    agree(one_row.grad, 5 * alone.grad, 1e-10)


@pytest.mark.parametrize("backend", ["kernel", "torch"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(backend: str, dtype: torch.dtype) -> None:
    """Computed in float32 at least, and rounded only where the result leaves: also in differences of log Z."""
    scores = tuple(part.to(dtype) for part in random_scores(2, 40, 5))
    dist = LinearChain(*scores, backend=backend)
    truth = LinearChain(*(part.double() for part in scores), backend=backend)
    unit = torch.finfo(dtype).eps
    known = torch.full((2, 40), -100)
    known[:, 3] = truth.argmax[:, 3]
    names = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    results = {
        "log_partition": (dist.log_partition, truth.log_partition),
        "marginals": (dist.marginals, truth.marginals),
        "log_prob": (dist.log_prob(dist.argmax), truth.log_prob(dist.argmax)),
        "score": (dist.score(dist.argmax), truth.score(dist.argmax)),
        "entropy": (dist.entropy(), truth.entropy()),
        "log_prob_of_set": (dist.log_prob_of_set(known), truth.log_prob_of_set(known)),
        "kl": (
            torch.distributions.kl_divergence(dist, LinearChain(scores[0] * 0, *scores[1:], backend=backend)),
            torch.distributions.kl_divergence(
                truth, LinearChain(scores[0].double() * 0, *(part.double() for part in scores[1:]), backend=backend)
            ),
        ),
        "span": (
            dist.span_probability(3, 4, "X", tags=names),
            truth.span_probability(3, 4, "X", tags=names),
        ),
    }
    for name, (found, wanted) in results.items():
        assert found.dtype == dtype, name
        error = (found.double() - wanted).abs()
        assert (error <= 2 * unit * wanted.abs() + 1e-4).all(), f"{name}: {found.tolist()} for {wanted.tolist()}"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_has_gradients_of_its_own_type(dtype: torch.dtype) -> None:
    leaves = [part.to(dtype).requires_grad_() for part in random_scores(2, 6, 3)]
    LinearChain(*leaves, backend="kernel").log_partition.sum().backward()
    _, wanted = differentiated(tuple(leaf.detach().double() for leaf in leaves), "torch")  # type: ignore[arg-type]
    for leaf, gradient in zip(leaves, wanted, strict=True):
        assert leaf.grad is not None
        assert leaf.grad.dtype == dtype
        agree(leaf.grad, gradient, 4 * torch.finfo(dtype).eps)


def test_scores_of_different_types_meet_in_the_wider_one() -> None:
    emissions, transitions, start, end = random_scores(2, 4, 3)
    mixed = LinearChain(emissions.half(), transitions.float(), start.bfloat16(), end.float(), backend="kernel")
    assert mixed.log_partition.dtype == torch.float32
    assert LinearChain(emissions.float(), transitions, backend="kernel").log_partition.dtype == torch.float64


# --- autograd ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["log_partition", "log_prob", "marginals", "entropy"])
def test_backward_twice_gives_the_same_gradient_twice(query: str) -> None:
    leaves = [part.requires_grad_() for part in random_scores(3, 5, 4)]
    dist = LinearChain(*leaves, lengths=torch.tensor([5, 2, 4]), backend="kernel")
    result = {
        "log_partition": lambda: dist.log_partition,
        "log_prob": lambda: dist.log_prob(torch.ones(3, 5, dtype=torch.long)),
        "marginals": lambda: dist.marginals[:, :, 0],
        "entropy": lambda: dist.entropy(),
    }[query]().sum()
    first = torch.autograd.grad(result, leaves, retain_graph=True)
    second = torch.autograd.grad(result, leaves, retain_graph=True)
    for one, two in zip(first, second, strict=True):
        assert torch.equal(one, two)


def test_a_gradient_by_some_of_the_scores_only() -> None:
    emissions, transitions, start, end = random_scores(2, 4, 3)
    transitions.requires_grad_()
    LinearChain(emissions, transitions, start, end, backend="kernel").entropy().sum().backward()
    assert transitions.grad is not None
    assert emissions.grad is None


def test_changing_scores_between_forward_and_backward_is_refused() -> None:
    scores = random_scores(2, 4, 3)
    leaf = scores[0].requires_grad_()
    log_z = LinearChain(leaf * 1.0, *scores[1:], backend="kernel").log_partition
    log_z.sum().backward()
    moved = leaf * 1.0
    log_z = LinearChain(moved, *scores[1:], backend="kernel").log_partition
    with torch.no_grad():
        moved += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        log_z.sum().backward()


def test_one_position_has_marginals_with_a_gradient() -> None:
    emissions, transitions, start, end = random_scores(2, 1, 3)
    emissions.requires_grad_()
    LinearChain(emissions, transitions, start, end, backend="kernel").marginals[:, :, 0].sum().backward()
    softmax = torch.softmax((emissions + start + end).detach(), -1)
    assert emissions.grad is not None
    agree(emissions.grad, softmax[..., :1] * (torch.eye(3)[0] - softmax), 1e-10)


# --- input that cannot be right ------------------------------------------------------------------------------

both_backends = pytest.mark.parametrize("backend", ["kernel", "torch"])


@both_backends
@pytest.mark.parametrize("bad", [math.nan, INF])
@pytest.mark.parametrize(
    ("name", "place"), [("emissions", (1, 2, 0)), ("transitions", (2, 1)), ("start", (1,)), ("end", (2,))]
)
def test_nan_and_infinity_are_named_with_their_place(backend: str, bad: float, name: str, place: Any) -> None:
    parts = dict(zip(("emissions", "transitions", "start", "end"), random_scores(2, 4, 3), strict=True))
    parts[name][place] = bad
    where = ", ".join(map(str, place))
    with pytest.raises(ScoreError, match=rf"{name} must be finite numbers or -inf; got {bad} at \[{where}\]; look for"):
        LinearChain(**parts, backend=backend)


@both_backends
def test_the_place_is_the_callers_own_whatever_the_batch_and_the_mask(backend: str) -> None:
    emissions, transitions = torch.zeros(2, 2, 4, 3), torch.zeros(3, 3)
    emissions[1, 0, 2, 1] = math.nan
    with pytest.raises(ScoreError, match=r"at \[1, 0, 2, 1\]"):
        LinearChain(emissions, transitions, backend=backend)
    holes = torch.ones(2, 2, 4, dtype=torch.bool)
    holes[1, 0, 0] = False
    with pytest.raises(ScoreError, match=r"at \[1, 0, 2, 1\]"):
        LinearChain(emissions, transitions, mask=holes, backend=backend)
    arcs = torch.zeros(2, 3, 3, 3)
    arcs[1, 2, 0, 1] = math.nan
    with pytest.raises(ScoreError, match=r"transitions .* at \[1, 2, 0, 1\]"):
        LinearChain(torch.zeros(2, 4, 3), arcs, mask=holes[1], backend=backend)


@both_backends
@pytest.mark.parametrize("query", ["score", "log_prob"])
def test_tags_out_of_range_are_named_with_their_place(backend: str, query: str) -> None:
    dist = LinearChain(torch.zeros(2, 3, 4), torch.zeros(4, 4), lengths=torch.tensor([3, 2]), backend=backend)
    for bad in (4, -1):
        tags = torch.zeros(2, 3, dtype=torch.long)
        tags[1, 1] = bad
        with pytest.raises(ScoreError, match=rf"tags must lie in 0\.\.3; got {bad} at row 1, position 1; map labels"):
            getattr(dist, query)(tags)
    unread = torch.tensor([[0, 0, 0], [0, 0, 9]])
    assert torch.isfinite(getattr(dist, query)(unread)).all()


@both_backends
def test_the_place_of_a_tag_counts_masked_positions(backend: str) -> None:
    mask = torch.tensor([[False, True, False, True]])
    dist = LinearChain(torch.zeros(1, 4, 2), torch.zeros(2, 2), mask=mask, backend=backend)
    with pytest.raises(ScoreError, match="got 7 at row 0, position 3"):
        dist.log_prob(torch.tensor([[0, 1, 0, 7]]))


BAD_CHAINS: dict[str, tuple[dict[str, Any], str]] = {
    "emissions of one axis": ({"emissions": torch.zeros(3)}, r"emissions must be \[batch, n, c\].*got \(3,\)"),
    "no positions": ({"emissions": torch.zeros(2, 0, 3)}, r"n >= 1 and c >= 1; got \(2, 0, 3\); give one row"),
    "no tags": ({"emissions": torch.zeros(2, 3, 0)}, r"n >= 1 and c >= 1; got \(2, 3, 0\)"),
    "transitions of other tags": (
        {"transitions": torch.zeros(4, 4)},
        r"transitions must be \(3, 3\) or, per position, \(2, 4, 3, 3\) .*got \(4, 4\); index them \[from, to\]",
    ),
    "one transition matrix too many": (
        {"transitions": torch.zeros(2, 5, 3, 3)},
        r"per position, \(2, 4, 3, 3\) .*got \(2, 5, 3, 3\)",
    ),
    "start of other tags": ({"start": torch.zeros(2)}, r"start must be \(3,\), one score a tag; got \(2,\)"),
    "end by row": ({"end": torch.zeros(2, 3)}, r"end must be \(3,\), one score a tag; got \(2, 3\)"),
    "whole numbers": (
        {"emissions": torch.zeros(2, 5, 3).long(), "transitions": torch.zeros(3, 3).long()},
        r"scores must be floating point; got torch.int64; call \.float\(\)",
    ),
    "length too long": (
        {"lengths": torch.tensor([5, 6])},
        r"lengths must lie in 1\.\.5; got 6 at row 1; pad the emissions or shorten the row",
    ),
    "length zero": ({"lengths": torch.tensor([0, 5])}, r"lengths must lie in 1\.\.5; got 0 at row 0"),
    "negative length": ({"lengths": torch.tensor([5, -2])}, r"lengths must lie in 1\.\.5; got -2 at row 1"),
    "lengths of another batch": ({"lengths": torch.tensor([5, 5, 5])}, r"whole numbers of shape \(2,\).*\(3,\)"),
    "lengths that are not whole": ({"lengths": torch.tensor([5.0, 2.0])}, r"lengths must be whole numbers.*float32"),
    "mask of another shape": ({"mask": torch.ones(2, 4).bool()}, r"mask must be \(2, 5\), True at valid.*\(2, 4\)"),
    "an empty row": (
        {"mask": torch.tensor([[True] * 5, [False] * 5])},
        "got no valid position at row 1; drop empty rows",
    ),
    "lengths and a mask": (
        {"lengths": torch.tensor([5, 5]), "mask": torch.ones(2, 5).bool()},
        "give lengths or a mask, not both",
    ),
    "an unknown backend": ({"backend": "fortran"}, 'backend must be "auto", "kernel" or "torch"; got \'fortran\''),
}


@pytest.mark.parametrize("case", BAD_CHAINS)
def test_bad_input_gets_one_sentence_with_the_fix(case: str) -> None:
    change, sentence = BAD_CHAINS[case]
    good: dict[str, Any] = {"emissions": torch.zeros(2, 5, 3), "transitions": torch.zeros(3, 3)}
    with pytest.raises(ScoreError, match=sentence) as caught:
        LinearChain(**{**good, **change})
    assert "\n" not in str(caught.value)


BAD_QUERIES: dict[str, tuple[Any, str]] = {
    "tags of floats": (
        lambda dist: dist.log_prob(torch.zeros(2, 5)),
        r"tags must be whole numbers; got torch.float32; call \.long\(\)",
    ),
    "tags of another shape": (
        lambda dist: dist.log_prob(torch.zeros(2, 4, dtype=torch.long)),
        r"tags must be \[\.\.\., 2, 5\]; got \(2, 4\)",
    ),
    "tags of too few axes": (
        lambda dist: dist.log_prob(torch.zeros(5, dtype=torch.long)),
        r"tags must be \[\.\.\., 2, 5\]; got \(5,\)",
    ),
    "no best path": (lambda dist: dist.top_k(0), "k must be at least 1; got 0"),
    "sets of another shape": (
        lambda dist: dist.constrain(torch.ones(2, 5, 2).bool()),
        r"allowed tags must be \(2, 5, 3\), True = allowed; got \(2, 5, 2\)",
    ),
    "partial tags of floats": (
        lambda dist: dist.log_prob_of_set(torch.zeros(2, 5)),
        r"partial tags must be whole numbers \(2, 5\), -100 = unknown; got torch.float32",
    ),
    "partial tags out of range": (
        lambda dist: dist.log_prob_of_set(torch.full((2, 5), 3)),
        r"partial tags must lie in 0\.\.2 or be -100 for unknown; got 3",
    ),
}


@both_backends
@pytest.mark.parametrize("case", BAD_QUERIES)
def test_bad_questions_get_one_sentence_with_the_fix(case: str, backend: str) -> None:
    ask, sentence = BAD_QUERIES[case]
    with pytest.raises(ScoreError, match=sentence):
        ask(LinearChain(torch.zeros(2, 5, 3), torch.zeros(3, 3), backend=backend))


def test_errors_are_value_errors() -> None:
    assert issubclass(ScoreError, ValueError)
    assert issubclass(ConstraintError, ValueError)


@both_backends
def test_an_empty_batch_has_empty_results(backend: str) -> None:
    for options in ({}, {"lengths": torch.zeros(0, dtype=torch.long)}, {"mask": torch.zeros(0, 3).bool()}):
        dist = LinearChain(torch.zeros(0, 3, 2), torch.zeros(2, 2), **options, backend=backend)
        assert dist.log_partition.shape == (0,)
        assert dist.marginals.shape == (0, 3, 2)
        assert dist.argmax.shape == (0, 3)


def test_what_is_handed_out_may_be_changed() -> None:
    """Results do not share memory with what a distribution keeps for its next query."""
    chain = LinearChain(*random_scores(3, 5, 4))
    log_z, marginals = chain.log_partition, chain.marginals
    kept = log_z.clone(), marginals.clone()
    log_z.zero_()
    marginals.zero_()
    assert torch.equal(chain.log_partition, kept[0])
    assert torch.equal(chain.marginals, kept[1])
