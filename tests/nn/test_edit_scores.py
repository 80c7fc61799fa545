"""Scores of edit steps by kernel: against torch, against enumeration of scripts, and as a distribution over strings."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tests.oracles.edit_scripts import SlowTransducer
from trelliswork.nn.edit import network as edit_network
from trelliswork.nn.edit.network import EditNetwork, EditScores, Pairs, Sizes, edit_scores, plain_scores
from trelliswork.runtime.autograd import fused

N_SOURCES, N_TARGETS = 3, 2
UNKNOWN = N_TARGETS  # can only be copied
ROWS = [  # x, what copying writes, y
    ([0, 1, 2], [-1, 1, 0], [1, 0]),
    ([1], [1], [1, 1, 0]),
    ([], [], []),
    ([], [], [0]),
    ([2, 2], [0, UNKNOWN], []),
    ([0, 3], [-1, UNKNOWN], [0, UNKNOWN]),
    ([0], [-1], [UNKNOWN]),  # nothing can write it
]


def network(dtype: torch.dtype = torch.float64, seed: int = 0) -> EditNetwork:
    torch.manual_seed(seed)
    model = EditNetwork(N_SOURCES, N_TARGETS, Sizes(dim=3, hidden=4, joint=5), dropout=0.0).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
    return model


def batch() -> tuple[Tensor, Pairs]:
    def padded(column: int, value: int) -> Tensor:
        return pad_sequence([torch.tensor(row[column], dtype=torch.long) for row in ROWS], True, value)

    lengths, target_lengths = (torch.tensor([len(row[k]) for row in ROWS]) for k in (0, 2))
    return padded(0, 0), Pairs(padded(1, -1), padded(2, -1), lengths, target_lengths)


def vectors(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    torch.manual_seed(1)
    _, pairs = batch()
    n, m = pairs.copies.shape[1], pairs.targets.shape[1]
    sizes = (len(ROWS), n + 1, 5), (len(ROWS), m + 1, 5), (4 + N_TARGETS, 5), (4 + N_TARGETS,)
    return [torch.randn(size, dtype=dtype).requires_grad_() for size in sizes]


def read_cells(steps: Tensor, pairs: Pairs) -> Tensor:
    """0 at the steps into padding, which nobody reads."""
    i, j = torch.arange(steps.shape[1])[:, None], torch.arange(steps.shape[2])
    inside = (i <= pairs.lengths[:, None, None]) & (j <= pairs.target_lengths[:, None, None])
    return torch.where(inside[..., None] & (steps > -torch.inf), steps, 0.0)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_equal_those_of_torch(dtype: torch.dtype, close: float) -> None:
    _, pairs = batch()
    given = vectors(dtype)
    actual, expected = edit_scores(*given, pairs), plain_scores(*given, pairs)
    torch.manual_seed(2)
    weights = torch.randn(actual[0].shape, dtype=torch.float64)
    losses = []
    for steps, ends in (actual, expected):
        losses.append((read_cells(steps, pairs) * weights).sum() + ends.sum())
    assert torch.allclose(losses[0], losses[1], atol=close * 10)
    assert torch.allclose(read_cells(actual[0], pairs), read_cells(expected[0], pairs), atol=close)
    assert torch.allclose(actual[1], expected[1], atol=close)
    for one, other in zip(*(torch.autograd.grad(loss, given) for loss in losses), strict=True):
        assert torch.allclose(one, other, atol=close * 10)


def test_derivatives() -> None:
    _, whole = batch()
    rows = torch.tensor([0, 1, 5])
    pairs = Pairs(whole.copies[rows], whole.targets[rows], whole.lengths[rows], whole.target_lengths[rows])
    left, right, weight, bias = (each.detach() for each in vectors())
    given = [each.clone().requires_grad_() for each in (left[rows, :, :2], right[rows, :, :2], weight[:, :2], bias)]

    def loss(*given: Tensor) -> Tensor:
        steps, ends = fused(EditScores(pairs), *given)
        return read_cells(steps, pairs).sum() + (2 * ends).sum()

    assert torch.autograd.gradcheck(loss, given)
    assert torch.autograd.gradgradcheck(loss, given, fast_mode=True)


def test_a_graph_can_be_walked_twice() -> None:
    _, pairs = batch()
    given = vectors()
    steps, ends = edit_scores(*given, pairs)
    loss = read_cells(steps, pairs).sum() + ends.sum()
    first, second = (torch.autograd.grad(loss, given, retain_graph=True) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.allclose(one, other)


def test_tiny_gradients_are_no_denormal_numbers() -> None:
    _, pairs = batch()
    left, right, weight, bias = vectors(torch.float32)
    steps, _ = edit_scores(left, right, weight, bias, pairs)
    (gradient,) = torch.autograd.grad((read_cells(steps, pairs) * 1e-30).sum(), bias)
    assert not gradient.any()


def test_sums_over_all_scripts() -> None:
    model, (sources, pairs) = network(), batch()
    written = model(sources, pairs)
    for row, (x, copies, y) in enumerate(ROWS):
        slow = SlowTransducer(model, torch.tensor(x, dtype=torch.long), copies)
        scripts = list(slow.scripts(tuple(y)))
        expected = math.log(sum(scripts)) if scripts else -math.inf
        assert float(written.log_prob()[row].detach()) == pytest.approx(expected, abs=1e-9), ROWS[row]


def test_one_path_is_the_best_of_all_scripts() -> None:
    model, (sources, pairs) = network(), batch()
    kept = [row for row in range(len(ROWS)) if UNKNOWN not in ROWS[row][1]]  # a copy beside a substitution is one step
    scores = model(sources, pairs)
    possible = scores.scripts.log_partition > -torch.inf
    assert possible.tolist() == [row[2] != [UNKNOWN] for row in ROWS]
    rows = torch.tensor(kept[:4])
    part = Pairs(torch.full_like(pairs.copies[rows], -1), pairs.targets[rows], pairs.lengths[rows],
                 pairs.target_lengths[rows])  # fmt: skip
    best = model(sources[rows], part).log_prob(best=True)
    for index, row in enumerate(rows.tolist()):
        x, _, y = ROWS[row]
        slow = SlowTransducer(model, torch.tensor(x, dtype=torch.long), [-1] * len(x))
        assert float(best[index].detach()) == pytest.approx(math.log(max(slow.scripts(tuple(y)))), abs=1e-9)


@pytest.mark.parametrize("x", [([], []), ([1], [1]), ([0, 3], [-1, UNKNOWN])])
def test_strings_have_all_the_probability(x: tuple[list[int], list[int]]) -> None:
    """Σ p(y | x) over strings up to a length, and the mass of all longer prefixes, is 1."""
    slow = SlowTransducer(network(seed=3), torch.tensor(x[0], dtype=torch.long), x[1])
    strings = slow.strings(N_TARGETS + 1, 3)
    whole = sum(sum(slow.scripts(y)) for y in strings if len(y) < 3)
    longer = sum(sum(slow.scripts(y, whole=False)) for y in strings if len(y) == 3)
    assert whole + longer == pytest.approx(1.0, abs=1e-9)


def test_the_whole_network_learns_by_its_exact_gradient() -> None:
    model, (sources, pairs) = network(), batch()
    rows = torch.arange(len(ROWS) - 1)  # those that can be written
    part = Pairs(pairs.copies[rows], pairs.targets[rows], pairs.lengths[rows], pairs.target_lengths[rows])
    parameters = dict(model.named_parameters())
    loss = model(sources[rows], part).log_prob().sum()
    gradients = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    torch.manual_seed(0)
    for name, parameter in parameters.items():
        direction, before = torch.randn_like(parameter), parameter.detach().clone()
        values = []
        for side in (1e-6, -1e-6):
            parameter.data = before + side * direction
            values.append(float(model(sources[rows], part).log_prob().sum().detach()))
        parameter.data = before
        slope = float((gradients[name] * direction).sum())
        assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("most", [1, 60, 1000])
def test_blocks_of_columns_are_the_whole(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(edit_network, "MOST_CELLS", most)
    _, pairs = batch()
    given = vectors()
    steps, ends = edit_scores(*given, pairs)
    with torch.no_grad():
        again, at_end = edit_scores(*given, pairs)
    near = {"rtol": 1e-12, "atol": 1e-12}  # products of other shapes may be rounded otherwise
    torch.testing.assert_close(read_cells(again, pairs), read_cells(steps.detach(), pairs), **near)
    torch.testing.assert_close(at_end, ends.detach(), **near)
