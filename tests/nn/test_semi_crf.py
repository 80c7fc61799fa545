"""`nn.SemiCRF`: the likelihood against enumeration, three kinds of scores, names, limits, training, the fast way."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from tests.oracles import segments as oracle
from trelliswork.distributions import SemiMarkov
from trelliswork.errors import ScoreError
from trelliswork.nn import SemiCRF
from trelliswork.runtime import threads

INF = float("inf")
BATCH, N, K, C, DIM = 2, 5, 3, 2, 4
LENGTHS = torch.tensor([5, 3])
GOLD: list[list[Any]] = [[(0, 2, 1), (2, 5, 0)], [(0, 3, 1)]]


def layer(seed: int = 0, **options: Any) -> SemiCRF:
    torch.manual_seed(seed)
    crf = SemiCRF(C, K, **options).double()
    for parameter in crf.parameters():
        nn.init.normal_(parameter)
    return crf


def scores_for(kind: str, seed: int = 1) -> Tensor:
    shape = {"segments": (BATCH, N, K, C), "tokens": (BATCH, N, C), "encodings": (BATCH, N, DIM)}[kind]
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def enumerated(dist: SemiMarkov, row: int, gold: Any) -> float:
    every, values = oracle.scores(dist._parts, row), oracle.segmentations(dist._parts, row)
    return float((every[values.index(tuple(gold))] - every.logsumexp(0)).detach())


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", ["segments", "tokens", "encodings"])
def test_the_likelihood_against_enumeration(kind: str, order: int) -> None:
    crf = layer(order=order, encoding_dim=DIM if kind == "encodings" else None)
    scores = scores_for(kind)
    wanted = [enumerated(crf.distribution(scores, LENGTHS), row, gold) for row, gold in enumerate(GOLD)]
    torch.testing.assert_close(crf(scores, GOLD, LENGTHS, "none").detach(), torch.tensor(wanted, dtype=torch.float64))
    assert math.isclose(crf(scores, GOLD, LENGTHS).item(), sum(wanted))
    assert math.isclose(crf.loss(scores, GOLD, LENGTHS).item(), -sum(wanted))
    assert math.isclose(crf(scores, GOLD, LENGTHS, "token_mean").item(), sum(wanted) / 8)
    dist = crf.distribution(scores, LENGTHS)
    assert crf.decode(scores, LENGTHS) == dist.argmax
    torch.testing.assert_close(crf.marginals(scores, LENGTHS), dist.marginals)
    assert crf.top_k(scores, 2, LENGTHS)[0] == dist.top_k(2)[0]
    torch.testing.assert_close(crf.span_probability(scores, 0, 2, 1), crf.marginals(scores)[:, 0, 1, 1])


def test_every_parameter_learns() -> None:
    crf = layer(encoding_dim=DIM)
    crf.loss(scores_for("encodings"), GOLD, LENGTHS).backward()
    for name, parameter in crf.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_training_finds_the_gold_segmentations() -> None:
    torch.manual_seed(0)
    crf = SemiCRF.from_labels(["O", "PER"], K, encoding_dim=DIM, outside="O")
    encodings, gold = torch.randn(BATCH, N, DIM), [[(1, 3, "PER")], [(0, 3, "PER")]]
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        loss = crf.loss(encodings, gold, LENGTHS)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    found = crf.decode(encodings, LENGTHS)
    assert found == [[(0, 1, "O"), (1, 3, "PER"), (3, 4, "O"), (4, 5, "O")], [(0, 3, "PER")]]
    assert crf.span_probability(encodings, 1, 3, "PER", LENGTHS)[0] > 0.9


def test_a_layer_with_names_speaks_in_names() -> None:
    crf = SemiCRF.from_labels(["O", "PER"], K, outside="O", max_lengths={"PER": 2})
    scores = torch.zeros(BATCH, N, K, 2)
    by_name = crf(scores, [[(1, 3, "PER")], [(0, 1, "O"), (1, 2, "O")]], LENGTHS, "none")
    whole = [[(0, 1, 0), (1, 3, 1), (3, 4, 0), (4, 5, 0)], [(0, 1, 0), (1, 2, 0), (2, 3, 0)]]
    torch.testing.assert_close(by_name, crf.distribution(scores, LENGTHS).log_prob(whole))
    values, _ = crf.top_k(scores, 2, LENGTHS)
    assert {label for rank in values for row in rank for _, _, label in row} <= {"O", "PER"}
    assert not crf.marginals(scores)[:, :, 1:, 0].any()  # outside is one token long
    assert not crf.marginals(scores)[:, :, 2, 1].any()


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([[(0, 4, 1), (4, 5, 0)], GOLD[1]], r"labelled 1 may cover at most 3 positions; got \(0, 4, 1\) at row 0"),
        (torch.tensor([[1, -1, -1, -1, 0], [1, -1, -1, -1, -1]]), r"at most 3 positions; got \(0, 4, 1\) at row 0"),
        ([[(0, 2, 1)], GOLD[1]], r"must cover the row; got an end at 2 of row 0"),
        ([[(0, 2, 2), (2, 5, 0)], GOLD[1]], r"labels must lie in 0..1; got \(0, 2, 2\)"),
        ([[(0, 2, "X"), (2, 5, 0)], GOLD[1]], r"labels must be indices or one of None; got 'X' at row 0"),
        ([[(0, 5)], GOLD[1]], r"segments must be \(start, end, label\); got \(0, 5\) at row 0"),
        (GOLD[:1], r"one list a row, 2; got 1"),
        (torch.zeros(2, 4).long(), r"starts must be \(2, 5\)"),
    ],
)
def test_wrong_segmentations_are_named(segments: Any, message: str) -> None:
    for kind in ("segments", "tokens"):
        with pytest.raises(ScoreError, match=message):
            layer()(scores_for(kind), segments, LENGTHS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SemiCRF(0, 3), "num_labels and max_length must be at least 1"),
        (lambda: SemiCRF(2, 3, order=2), "order must be 1"),
        (lambda: SemiCRF.from_labels(["A", "A"], 3), "labels must differ"),
        (lambda: SemiCRF.from_labels(["A"], 3, outside="O"), r"'O' must be one of the labels \['A'\]"),
        (lambda: layer().decode(torch.zeros(2, 5, 4, 2).double()), r"\[batch, n, 3, 2\] \(segments\) or"),
        (lambda: layer(encoding_dim=4).decode(torch.zeros(2, 5, 2).double()), r"\[batch, n, 4\] \(encodings\)"),
        (lambda: layer()(scores_for("segments"), GOLD, LENGTHS, "max"), "reduction must be one of"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        make()


# --- the fast way --------------------------------------------------------------------------------------------


def parts(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((BATCH, N, K, C), (C, C), (C,), (C,))
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    return tuple(part.requires_grad_() for part in drawn)  # type: ignore[return-value]


def in_one_kernel(scores: tuple[Tensor | None, ...], starts: Tensor, lengths: Tensor = LENGTHS) -> Tensor | None:
    """`log_prob` of a plain batch, None where it takes the general way."""
    dist = SemiMarkov(*scores, lengths=lengths)  # type: ignore[arg-type]
    return dist._fused_log_prob(starts) if dist._is_plain else None


STARTS = torch.tensor([[1, -1, 0, -1, -1], [1, -1, -1, 7, 7]])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("first_order", [True, False])
def test_the_fast_way_is_the_general_way(first_order: bool, dtype: torch.dtype) -> None:
    results = []
    for fast in (True, False):
        segments, transitions, start, end = parts(dtype=dtype)
        given = (segments, transitions if first_order else None, start, end)
        if fast:
            found = in_one_kernel(given, STARTS)
        else:
            found = SemiMarkov(*given, lengths=LENGTHS, backend="torch").log_prob(STARTS.clamp(max=1))
        assert found is not None and found.dtype == dtype
        (found * torch.tensor([1.0, -2.0], dtype=dtype)).sum().backward()
        results.append([found.detach(), *(part.grad for part in given if part is not None)])
    for mine, plain in zip(*results, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-10 if dtype == torch.float64 else 1e-5, atol=1e-6)


def test_derivatives_of_the_fast_way() -> None:
    def result(*scores: Tensor) -> Tensor:
        found = in_one_kernel(scores, STARTS)
        assert found is not None
        return found

    assert gradcheck(result, parts())
    assert gradgradcheck(result, parts())


def test_the_fast_way_leaves_the_rest_to_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    segments, *edges = (part.detach() for part in parts())

    def refused(scores: Tensor = segments, starts: Tensor = STARTS) -> bool:
        return in_one_kernel((scores, *edges), starts) is None

    assert not refused()
    assert refused(segments * 1000)
    assert refused(torch.where(torch.arange(N)[:, None, None] == 2, -INF, segments))  # the gold is forbidden
    assert refused(starts=torch.full((BATCH, N), -1))
    assert refused(starts=torch.tensor([[1, -1, -1, -1, 0], [1, -1, -1, 7, 7]]))
    assert refused(starts=STARTS + 1)
    assert refused(starts=torch.stack([STARTS, STARTS]))
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert refused()


def test_half_precision_goes_the_general_way() -> None:
    scores = tuple(part.detach().half() for part in parts())
    assert in_one_kernel(scores, STARTS) is None
    found = SemiMarkov(*scores, lengths=LENGTHS).log_prob(STARTS)
    torch.testing.assert_close(found, SemiMarkov(*scores, lengths=LENGTHS, backend="torch").log_prob(STARTS))


@pytest.mark.parametrize("wrong", [math.nan, INF])
def test_what_is_no_score_is_refused_before_it_is_summed(wrong: float) -> None:
    segments, *edges = (part.detach() for part in parts())
    with pytest.raises(ScoreError, match="segments must be finite numbers or -inf"):
        SemiMarkov(torch.where(torch.arange(N)[:, None, None] == 2, wrong, segments), *edges, lengths=LENGTHS)


@pytest.mark.parametrize("lengths", [[6, 3], [5, 0], [5], [5.0, 3.0]])
def test_wrong_lengths_are_refused_by_the_layer(lengths: list[Any]) -> None:
    with pytest.raises(ScoreError, match="lengths must"):
        layer()(scores_for("segments"), STARTS, torch.tensor(lengths))


def test_what_was_asked_before_changes_nothing() -> None:
    scores = parts()
    dist = SemiMarkov(*scores, lengths=LENGTHS)
    first = dist.log_prob(STARTS)
    assert dist.log_partition.isfinite().all()
    again = dist.log_prob(STARTS)
    assert torch.equal(first, again)
    for mine, other in zip(*(torch.autograd.grad(each.sum(), scores) for each in (first, again)), strict=True):
        assert torch.equal(mine, other)
