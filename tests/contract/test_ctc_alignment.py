"""`CTCAlignment` against the enumeration of all paths that collapse to a label string."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import ctc_alignments as frames
from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close
from trelliswork.distributions import CTCAlignment
from trelliswork.errors import ScoreError


class TestCTCAlignment(StructureContract):
    gradient_of = "log_probs"

    def instances(self) -> dict[str, Instance]:
        return frames.many()

    def small_instances(self) -> dict[str, Instance]:
        lengths = {"lengths": torch.tensor([4, 3]), "target_lengths": torch.tensor([2, 1])}
        targets = torch.tensor([[1, 1], [2, 0]])
        return {"repeat": frames.labelled(20, (2,), 4, targets=targets, forbidden=((0, 1, 2), (1, 0, 0)), **lengths)}

    def impossible(self) -> tuple[Instance, int]:
        forbidden = tuple((1, t, 2) for t in range(5))
        return frames.labelled(21, forbidden=forbidden, target_lengths=torch.tensor([2, 1, 2])), 1

    def build(self, instance: Instance, backend: str) -> CTCAlignment:
        return CTCAlignment(**instance.scores, **instance.options, backend=backend)

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return frames.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return frames.n_rows(instance)

    def to_plain(self, instance: Instance, value: Tensor) -> list[Plain]:
        rows = value.reshape(self.n_rows(instance), -1).tolist()
        return [tuple(row[:n]) for row, n in zip(rows, frames.frames(instance), strict=True)]

    def to_value(self, instance: Instance, plain: list[Any]) -> Tensor:
        *batch, t, _ = instance.scores["log_probs"].shape
        padded = [[*path, *[77] * (t - len(path))] for path in plain]
        return torch.tensor(padded).reshape(*batch, t)

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["log_probs"].shape[-2:], dtype=torch.float64)
        for t, symbol in enumerate(plain):
            marks[t, symbol] = 1.0
        return marks

    def enumerated_marginals(self, instance: Instance) -> Tensor:
        found = super().enumerated_marginals(instance)
        return found.reshape(instance.scores["log_probs"].shape)

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        shape, nothing = instance.scores["log_probs"].shape, frames.blank(instance)
        begins = [(*string, nothing)[0] for string in frames.strings(instance)]
        known = torch.full(shape[:-1], -100)
        known[..., 0] = torch.tensor(begins).reshape(shape[:-2])
        allowed = torch.ones(shape, dtype=torch.bool)
        allowed[..., -1, nothing] = False
        last = shape[-2] - 1
        return [
            PartialKnowledge(known, lambda row, path: path[0] == begins[row]),
            PartialKnowledge(allowed, lambda row, path: len(path) <= last or path[last] != nothing),
        ]

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        return instance.mapped(lambda part: part + by), [by * n for n in frames.frames(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        scores = instance.scores["log_probs"]
        own = scores.reshape(-1, *scores.shape[-2:])[row, : frames.frames(instance)[row]][None]
        string = torch.tensor([frames.strings(instance)[row]], dtype=torch.long)
        return Instance({"log_probs": own}, {"targets": string, "blank": torch.tensor(frames.blank(instance))})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        scores = instance.scores["log_probs"]
        real = torch.arange(scores.shape[-2]) < torch.tensor(frames.frames(instance))[:, None]
        return instance.with_scores(log_probs=torch.where(real.reshape(scores.shape[:-1])[..., None], scores, garbage))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        scores = instance.scores["log_probs"].clone()
        scores.reshape(-1, *scores.shape[-2:])[row, len(plain) - 1, plain[-1]] = -INF
        return instance.with_scores(log_probs=scores)

    # --- alignments only -------------------------------------------------------------------------------------

    def test_spans_say_where_each_label_lies(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        if len(dist.batch_shape) > 1:
            return
        found = dist.spans(dist.argmax)
        rows = found if dist.batch_shape else [found]
        for spans, path, string in zip(
            rows, self.to_plain(instance, dist.argmax), frames.strings(instance), strict=True
        ):
            assert tuple(span.symbol for span in spans) == string
            for span in spans:
                assert all(path[t] == span.symbol for t in range(span.start, span.end))


# --- how many alignments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("string", [(), (1,), (1, 2), (1, 1), (1, 1, 2), (1, 1, 1)])
def test_the_number_of_alignments(string: tuple[int, ...]) -> None:
    """C(T + U - R, 2U) for U labels with R repeats of the label before."""
    repeats = sum(before == label for before, label in itertools.pairwise(string))
    for t in range(1, 7):
        dist = CTCAlignment(torch.zeros(1, t, 3), [list(string)])
        assert dist.count.item() == math.comb(t + len(string) - repeats, 2 * len(string))


# --- forced alignment ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_forced_alignment_is_optimal_with_ties_and_repeats(backend: str) -> None:
    """Whole-number scores make ties everywhere; the best of all paths is still what comes out."""
    for seed in range(40):
        instance = frames.labelled(
            seed, t=6, targets=torch.tensor([[1, 1, 2], [2, 1, 1], [1, 1, 1]]), lengths=torch.tensor([6, 5, 6])
        ).mapped(lambda part: part.round())
        dist = CTCAlignment(**instance.scores, **instance.options, backend=backend)
        for row, path in enumerate(dist.argmax.tolist()):
            support = frames.support(instance, row)
            assert support[tuple(path[: frames.frames(instance)[row]])] == max(support.values())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_string_that_just_fits_has_one_alignment(backend: str) -> None:
    scores = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0))
    dist = CTCAlignment(scores, [[1, 1, 2, 1]], backend=backend)
    assert dist.argmax.tolist() == [[1, 0, 1, 2, 1]]
    close(dist.entropy(), [0.0])


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_kernel_equals_reference_on_long_inputs(scale: float) -> None:
    generator = torch.Generator().manual_seed(3)
    scores = scale * torch.randn(5, 150, 4, generator=generator, dtype=torch.float64)
    targets = torch.randint(1, 4, (5, 40), generator=generator)
    options = dict(lengths=[150, 90, 149, 60, 0], target_lengths=[40, 30, 0, 1, 0])
    found = []
    for backend in BACKENDS:
        leaf = scores.clone().requires_grad_()
        dist = CTCAlignment(leaf, targets, backend=backend, **options)
        dist.log_partition.sum().backward()
        found.append((dist.log_partition, leaf.grad, dist.argmax))
    close(found[0][0], found[1][0])
    close(found[0][1], found[1][1])
    assert torch.equal(found[0][2], found[1][2])


@pytest.mark.parametrize("mask", [-1e9, -1e30, -3.4e38, -1e300])
def test_finite_masks_are_scores_like_any_other(mask: float) -> None:
    """A path through them is unlikely, not impossible."""
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(4, 30, 4, generator=generator, dtype=torch.float64)
    scores[torch.rand(scores.shape, generator=generator) < 0.3] = mask
    targets = torch.randint(1, 4, (4, 9), generator=generator)
    fast, plain = (CTCAlignment(scores, targets, backend=backend).log_partition for backend in BACKENDS)
    assert (plain > -INF).all()
    torch.testing.assert_close(fast, plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize("string", [[1] * 300 + [2] * 100, [1, 2] * 400])
def test_states_that_matter_long_after_they_were_unlikely(string: list[int]) -> None:
    """The first half of the frames prefers silence by thousands of nats, the second forbids it nearly."""
    scores = torch.zeros(1, 2000, 3, dtype=torch.float64)
    scores[0, :1000, 1], scores[0, 1000:, 0], scores[0, 1000:, 2] = -5.0, -6.0, -1.0
    fast, plain = (CTCAlignment(scores, [string], backend=backend) for backend in BACKENDS)
    close(fast.log_partition, plain.log_partition)
    close(fast.marginals, plain.marginals)


def test_ten_thousand_frames() -> None:
    scores = torch.randn(1, 10_000, 3, generator=torch.Generator().manual_seed(0)).log_softmax(-1).requires_grad_()
    dist = CTCAlignment(scores, [[1, 2] * 400])
    (occupancy,) = torch.autograd.grad(dist.log_partition.sum(), scores)
    close(occupancy.sum(-1), torch.ones(1, 10_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(log_probs=torch.zeros(3), targets=[[1]]), r"\[batch, t, c\]"),
        (dict(log_probs=torch.zeros(1, 2, 3).long(), targets=[[1]]), "floating point"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1]], blank=3), r"blank must lie in 0..2; got 3"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1, 0]]), r"not be the blank, 0; got 0 at row 0, label 1"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1, 3]]), r"lie in 0..2 .* got 3 at row 0, label 1"),
        (dict(log_probs=torch.zeros(2, 2, 3), targets=[[1]]), r"each of the rows \(2,\); got 1"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=torch.ones(2, 1).long()), r"one label string a row; got"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=torch.ones(1, 1)), "whole numbers; got torch.float32"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1]], lengths=[3]), r"lengths must lie in 0..2; got 3 at row 0"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1]], target_lengths=[1]), "lists have lengths of their own"),
        (dict(log_probs=torch.full((1, 2, 3), math.nan), targets=[[1]]), r"got nan at row 0, frame 0, symbol 0"),
        (dict(log_probs=torch.full((1, 2, 3), INF), targets=[[1]]), r"got inf at row 0, frame 0, symbol 0"),
        (dict(log_probs=torch.zeros(1, 2, 3), targets=[[1]], backend="cuda"), "backend must be"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        CTCAlignment(**arguments)


DIST = CTCAlignment(torch.zeros(1, 3, 3), [[1, 2]])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: DIST.log_prob(torch.tensor([[1, 0, 1]])),
            r"collapse to the labels \[1, 2\] of row 0; got .* \[1, 1\]",
        ),
        (lambda: DIST.log_prob(torch.tensor([[1, 0, 3]])), r"symbols in 0..2; got 3 at row 0, frame 2"),
        (lambda: DIST.log_prob(torch.tensor([[1, 0]])), r"paths must be \[..., 1, 3\]; got \(1, 2\)"),
        (lambda: DIST.log_prob(torch.zeros(1, 3)), "whole numbers"),
        (lambda: DIST.top_k(0), "k must be at least 1"),
        (lambda: DIST.expected(torch.zeros(3, 3)), r"costs must be \(1, 3, 3\)"),
        (lambda: DIST.constrain(torch.ones(1, 3).bool()), r"allowed symbols must be \(1, 3, 3\)"),
        (lambda: DIST.constrain(torch.full((1, 3), 3)), r"0..2 or be -100"),
        (lambda: torch.distributions.kl_divergence(DIST, CTCAlignment(torch.zeros(1, 3, 3), [[1]])), "same shape"),
    ],
)
def test_questions_without_an_answer_are_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


def test_expand_keeps_the_distribution() -> None:
    instance = frames.labelled(51, **frames.RAGGED)
    dist = CTCAlignment(**instance.scores, **instance.options)
    wide = dist.expand((2, 3))
    assert torch.equal(wide.log_partition, dist.log_partition.expand(2, 3))
    assert torch.equal(wide.argmax, dist.argmax.expand(2, 3, 5))
