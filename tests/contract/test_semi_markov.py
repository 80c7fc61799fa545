"""Every query of `SemiMarkov` against enumeration: the generic contract, then what only segmentations have."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import segmentations as semis
from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close, covariance
from trelliswork.distributions import SemiMarkov, kl_divergence
from trelliswork.errors import ScoreError


class TestSemiMarkov(StructureContract):
    gradient_of = "segments"

    def instances(self) -> dict[str, Instance]:
        return semis.many()

    def small_instances(self) -> dict[str, Instance]:
        return semis.small()

    def impossible(self) -> tuple[Instance, int]:
        closed = semis.semi(21, lengths=torch.tensor([4, 2, 3]))
        return semis.with_forbidden(closed, segments=[(1, 0, 0), (1, 0, 1, 0), (1, 0, 1, 1)], transitions=[(0, 1)]), 1

    def build(self, instance: Instance, backend: str) -> SemiMarkov:
        return SemiMarkov(**instance.scores, **instance.options, backend=backend)

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return semis.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return semis.n_rows(instance)

    def batch_shape(self, instance: Instance) -> tuple[int, ...]:
        return tuple(instance.scores["segments"].shape[:-3])

    def to_plain(self, instance: Instance, value: Any) -> list[Plain]:
        for _ in self.batch_shape(instance)[1:]:
            value = [row for rows in value for row in rows]
        rows = value if self.batch_shape(instance) else [value]
        return [tuple(row) for row in rows]

    def to_value(self, instance: Instance, plain: list[Any]) -> Any:
        rows = [list(row) for row in plain]
        if len(self.batch_shape(instance)) == 2:
            size = self.batch_shape(instance)[1]
            return [rows[i : i + size] for i in range(0, len(rows), size)]
        return rows if self.batch_shape(instance) else rows[0]

    def indicator(self, instance: Instance, row: int, plain: Any) -> Tensor:
        marks = torch.zeros(instance.scores["segments"].shape[-3:], dtype=torch.float64)
        for i, j, y in plain:
            marks[i, j - i - 1, y] = 1.0
        return marks

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.tokens(instance), self.sets(instance), self.segments(instance), self.nothing_known(instance)]

    def best(self, instance: Instance) -> list[Any]:
        supports = self.supports(instance)
        return [max(found.items(), key=lambda pair: pair[1])[0] if found else ((0, 1, 0),) for found in supports]

    def tokens(self, instance: Instance) -> PartialKnowledge:
        """The label of each row's first token is known."""
        known = [segments[0][2] for segments in self.best(instance)]
        shape = instance.scores["segments"].shape[:-2]
        partial = torch.full((self.n_rows(instance), shape[-1]), -100)
        partial[:, 0] = torch.tensor(known)
        return PartialKnowledge(partial.reshape(shape), lambda row, value: value[0][2] == known[row])

    def sets(self, instance: Instance) -> PartialKnowledge:
        """No segment starts at position 1; what is not read is not allowed."""
        allowed = semis.read(instance).clone()
        allowed[:, 1:2] = False
        shape = instance.scores["segments"].shape
        return PartialKnowledge(allowed.reshape(shape), lambda row, value: all(i != 1 for i, _, _ in value))

    def segments(self, instance: Instance) -> PartialKnowledge:
        """The last segment of each row is known; in row 0 without its label."""
        last = [segments[-1] for segments in self.best(instance)]
        known = [[(i, j, y if row else None)] for row, (i, j, y) in enumerate(last)]

        def agrees(row: int, value: Any) -> bool:
            (segment,) = known[row]
            return any(each[:2] == segment[:2] and segment[2] in (None, each[2]) for each in value)

        return PartialKnowledge(self.to_value(instance, known), agrees)

    def nothing_known(self, instance: Instance) -> PartialKnowledge:
        return PartialKnowledge(self.to_value(instance, [()] * self.n_rows(instance)), lambda row, value: True)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        """Every position adds `by` to the segment that covers it."""
        durations = torch.arange(1, instance.scores["segments"].shape[-2] + 1)[:, None]
        moved = instance.with_scores(segments=instance.scores["segments"] + by * durations)
        return moved, [by * length for length in semis.lengths(instance)]

    def one_row(self, instance: Instance, row: int) -> Instance:
        n, k, c = instance.scores["segments"].shape[-3:]
        length = semis.lengths(instance)[row]
        segments = instance.scores["segments"].reshape(-1, n, k, c)[row, :length][None]
        options = {name: part for name, part in instance.options.items() if name == "max_lengths"}
        return Instance({**instance.scores, "segments": segments}, options)

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        segments = instance.scores["segments"]
        return instance.with_scores(
            segments=torch.where(semis.read(instance).reshape(segments.shape), segments, garbage)
        )

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        i, j, y = plain[-1]
        segments = instance.scores["segments"].clone()
        segments.reshape(-1, *segments.shape[-3:])[row, i, j - i - 1, y] = -INF
        return instance.with_scores(segments=segments)

    def test_samples_come_in_the_shape_asked_for(self, instance: Instance, backend: str) -> None:
        """Values are lists, so their nesting is compared; the tensor form has the usual shape."""
        dist = self.build(instance, backend)
        assert dist.sample_starts().shape == dist.batch_shape + dist.event_shape
        assert dist.sample_starts((2, 3)).shape == (2, 3, *dist.batch_shape, *dist.event_shape)
        assert dist.sample_starts((0,)).shape == (0, *dist.batch_shape, *dist.event_shape)
        assert dist.sample((0,)) == []
        sample = dist.sample((2, 3))
        assert (len(sample), {len(each) for each in sample}) == (2, {3})
        assert all(len(self.to_plain(instance, each)) == self.n_rows(instance) for row in sample for each in row)

    # --- segmentations only ----------------------------------------------------------------------------------

    def test_the_gradient_by_transitions_start_and_end(self, instance: Instance, backend: str) -> None:
        leaves = instance.leaves()
        self.build(leaves, backend).log_partition.sum().backward()
        wanted = {name: torch.zeros(part.shape, dtype=torch.float64) for name, part in instance.scores.items()}
        for row in range(self.n_rows(instance)):
            for value, p in self.probabilities(instance, row).items():
                labels = [y for _, _, y in value]
                for name, places in (("start", labels[:1]), ("end", labels[-1:])):
                    if name in wanted:
                        wanted[name][places[0]] += p
                if "transitions" in wanted:
                    for before, after in itertools.pairwise(labels):
                        wanted["transitions"][before, after] += p
        for name in set(wanted) - {"segments"}:
            part = leaves.scores[name]
            close(torch.zeros_like(part) if part.grad is None else part.grad, wanted[name])

    def test_token_marginals(self, instance: Instance, backend: str) -> None:
        *_, n, _, c = instance.scores["segments"].shape
        wanted = torch.zeros(self.n_rows(instance), n, c, dtype=torch.float64)
        for row in range(self.n_rows(instance)):
            for value, p in self.probabilities(instance, row).items():
                for i, j, y in value:
                    wanted[row, i:j, y] += p
        close(self.build(instance, backend).token_marginals, wanted)

    @pytest.mark.parametrize("kinds", [["costs"], ["transitions"], ["start"], ["end"], ["costs", "transitions", "end"]])
    def test_expected_costs(self, instance: Instance, backend: str, kinds: list[str]) -> None:
        *batch, n, k, c = instance.scores["segments"].shape
        costs = semis.semi(40, tuple(batch), n, k, c, dtype=instance.dtype).scores
        chosen = {
            name: part if name in kinds or (name == "segments" and "costs" in kinds) else torch.zeros_like(part)
            for name, part in costs.items()
        }
        priced = Instance(chosen, instance.options)
        means, squares = [], []
        for row in range(self.n_rows(instance)):
            price, probabilities = semis.support(priced, row), self.probabilities(instance, row)
            means.append(math.fsum(p * price[value] for value, p in probabilities.items()))
            squares.append(covariance(probabilities, price, price))
        dist = self.build(instance, backend)
        given = {kind: costs["segments" if kind == "costs" else kind] for kind in kinds}
        close(dist.expected(**given), means)
        close(dist.variance(**given), squares)
        marks = self.random_costs(instance, 3)
        close(dist.covariance(given, marks), dist.covariance(marks, given))

    def test_span_probability(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        n, _, c = instance.scores["segments"].shape[-3:]
        for first in range(n):
            for last in range(first + 1, n + 1):
                for label in range(c):
                    wanted = [
                        math.fsum(
                            p for value, p in self.probabilities(instance, row).items() if (first, last, label) in value
                        )
                        for row in range(self.n_rows(instance))
                    ]
                    close(dist.span_probability(first, last, label), wanted)
        names = [f"label {y}" for y in range(c)]
        assert torch.equal(dist.span_probability(0, 1, names[-1], labels=names), dist.span_probability(0, 1, c - 1))

    def test_lists_starts_and_parts_say_the_same(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for plain, value in self.values(instance)[:5]:
            starts, parts = dist.to_starts(value), dist.to_parts(value)
            assert dist.from_starts(starts) == value
            assert dist.from_parts(parts) == value
            rows = parts.reshape(self.n_rows(instance), *parts.shape[-3:]).double()
            assert torch.equal(rows, torch.stack([self.indicator(instance, r, v) for r, v in enumerate(plain)]))
            assert torch.equal(dist.log_prob(starts), dist.log_prob(value))
            assert dist.log_prob([value, value]).shape == (2, *dist.batch_shape)


@pytest.mark.parametrize("backend", BACKENDS)
def test_zeroth_order_is_first_order_with_scores_of_zero(backend: str) -> None:
    instance = semis.semi(50, n=6, c=3, first_order=False, lengths=torch.tensor([6, 2, 5]))
    plain = SemiMarkov(**instance.scores, **instance.options, backend=backend)
    zeros = torch.zeros(3, 3, dtype=torch.float64)
    full = SemiMarkov(**instance.scores, **instance.options, transitions=zeros, backend=backend)
    close(plain.log_partition, full.log_partition)
    close(plain.marginals, full.marginals)
    assert plain.argmax == full.argmax
    close(plain.top_k(7)[1], full.top_k(7)[1])
    close(kl_divergence(plain, full), torch.zeros(3))
    closed = plain.constrain(transitions=torch.eye(3).bool())
    close(closed.log_partition, full.constrain(transitions=torch.eye(3).bool()).log_partition)


def test_expand_keeps_the_distribution() -> None:
    instance = semis.semi(51, lengths=semis.RAGGED)
    dist = SemiMarkov(**instance.scores, **instance.options)
    wide = dist.expand((2, 3))
    assert torch.equal(wide.log_partition, dist.log_partition.expand(2, 3))
    assert wide.argmax == [dist.argmax, dist.argmax]


DIST = SemiMarkov(torch.zeros(2, 5, 3, 2), torch.zeros(2, 2), lengths=torch.tensor([5, 4]), max_lengths=[3, 2])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[(0, 4, 1), (4, 5, 0)], [(0, 2, 0), (2, 4, 0)]], r"at most 2 positions; got \(0, 4, 1\) at row 0"),
        ([[(0, 2, 0), (2, 5, 0)], [(0, 1, 0), (1, 4, 1)]], r"at most 2 positions; got \(1, 4, 1\) at row 1"),
        ([[(0, 5, 0)], [(0, 2, 0), (2, 4, 0)]], r"at most 3 positions; got \(0, 5, 0\) at row 0"),
        ([[(0, 2, 0), (3, 5, 0)], [(0, 2, 0), (2, 4, 0)]], r"without gaps; got \(3, 5, 0\) at row 0 where .* at 2"),
        ([[(0, 2, 0), (2, 5, 0)], [(0, 2, 0)]], r"cover the row; got an end at 2 of row 1, which has 4"),
        ([[(0, 2, 0), (2, 5, 2)], [(0, 2, 0), (2, 4, 0)]], r"lie in 0..1; got \(2, 5, 2\) at row 0"),
        ([[(0, 2, -1), (2, 5, 0)], [(0, 2, 0), (2, 4, 0)]], r"at least 0; got \(0, 2, -1\)"),
        ([[(0, 2, 0), (2, 5, 0)]], r"each of the rows \(2,\); got \(1,\)"),
        (torch.tensor([[-1, 0, -1, 0, -1], [0, -1, 0, -1, -1]]), r"start at position 0; got -1 there at row 0"),
        (torch.zeros(2, 5), r"whole numbers; got torch.float32"),
        (torch.zeros(3, 5).long(), r"\[..., 2, 5\]; got \(3, 5\)"),
    ],
)
def test_a_value_that_is_no_segmentation_is_named(value: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        DIST.log_prob(value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(segments=torch.zeros(5, 3)), r"\[batch, n, k, c\]"),
        (dict(segments=torch.zeros(1, 5, 3, 2), transitions=torch.zeros(3, 3)), r"transitions must be \(2, 2\)"),
        (dict(segments=torch.zeros(1, 5, 3, 2), start=torch.zeros(3)), r"start must be \(2,\)"),
        (dict(segments=torch.zeros(1, 5, 3, 2).long()), "floating point"),
        (dict(segments=torch.full((1, 5, 3, 2), math.nan)), r"segments must be finite numbers or -inf; got nan at \[0"),
        (dict(segments=torch.zeros(1, 5, 3, 2), end=torch.tensor([0, INF])), r"end must be finite .* got inf at \[1\]"),
        (dict(segments=torch.zeros(1, 5, 3, 2), lengths=torch.tensor([6])), r"lengths must lie in 1..5; got 6"),
        (dict(segments=torch.zeros(1, 5, 3, 2), max_lengths=[3, 4]), r"lie in 1..3; got 4 for label 1"),
        (dict(segments=torch.zeros(1, 5, 3, 2), max_lengths=[3]), r"must be 2 whole numbers"),
        (dict(segments=torch.zeros(1, 5, 3, 2), backend="cuda"), "backend must be"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_that_cannot_be_are_refused(arguments: dict[str, Any], message: str, backend: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SemiMarkov(**{"backend": backend, **arguments})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: DIST.span_probability(3, 3, 0), r"first < last within 0..5"),
        (lambda: DIST.span_probability(0, 1, 2), r"label in 0..1; got \(0, 1, 2\)"),
        (lambda: DIST.span_probability(0, 1, "X"), r"one of labels=None; got 'X'"),
        (lambda: DIST.top_k(0), "k must be at least 1"),
        (lambda: DIST.constrain([[(0, 4, 0)], []]), r"at most 3 positions.*got \(0, 4, 0\) at row 0"),
        (lambda: DIST.constrain([[]]), r"one list a row, \(2,\); got 1"),
        (lambda: DIST.constrain(torch.zeros(2, 5)), "partial labels must be whole numbers"),
        (lambda: DIST.constrain(torch.full((2, 5), 2)), r"0..1 or be -100"),
        (lambda: DIST.constrain(torch.ones(2, 5).bool()), r"allowed segments must be \(2, 5, 3, 2\)"),
        (lambda: kl_divergence(DIST, SemiMarkov(torch.zeros(2, 5, 3, 2))), "same shape and lengths"),
    ],
)
def test_questions_without_an_answer_are_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


def test_a_span_longer_than_any_segment_has_probability_zero() -> None:
    assert DIST.span_probability(0, 5, 0).tolist() == [0.0, 0.0]
