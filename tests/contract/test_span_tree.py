"""Every query of `SpanTree` against enumeration: the generic contract, then what only labelled trees have."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract import spantrees
from tests.contract.base import BACKENDS, INF, Instance, PartialKnowledge, Plain, StructureContract, close
from trelliswork.distributions import SpanTree, kl_divergence
from trelliswork.errors import ScoreError


class TestSpanTree(StructureContract):
    gradient_of = "spans"

    def instances(self) -> dict[str, Instance]:
        return spantrees.many()

    def small_instances(self) -> dict[str, Instance]:
        return spantrees.small()

    def impossible(self) -> tuple[Instance, int]:
        """The second row may not have a root."""
        return spantrees.spans(21, lengths=torch.tensor([3, 2, 1]), forbidden=((1, 0, 1),)), 1

    def build(self, instance: Instance, backend: str) -> SpanTree:
        return SpanTree(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]

    def support(self, instance: Instance, row: int) -> dict[Plain, float]:
        return spantrees.support(instance, row)

    def n_rows(self, instance: Instance) -> int:
        return spantrees.n_rows(instance)

    def batch_shape(self, instance: Instance) -> tuple[int, ...]:
        return tuple(instance.scores["spans"].shape[:-3])

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
        marks = torch.zeros(instance.scores["spans"].shape[-3:], dtype=torch.float64)
        for start, end, label in plain:
            marks[start, end - 1, label] = 1.0
        return marks

    def partials(self, instance: Instance) -> list[PartialKnowledge]:
        return [self.brackets(instance), self.sets(instance), self.nothing_known(instance)]

    def brackets(self, instance: Instance) -> PartialKnowledge:
        """The second node of each row's best tree is known; in row 0 without its label."""
        bests = [max(found, key=lambda v: found[v]) if found else ((0, 1, 0),) for found in self.supports(instance)]
        second = [nodes[min(1, len(nodes) - 1)] for nodes in bests]  # type: ignore[arg-type,index]
        known = [[(i, j, y if row else None)] for row, (i, j, y) in enumerate(second)]

        def agrees(row: int, value: Any) -> bool:
            ((i, j, y),) = known[row]
            return any(node[:2] == (i, j) and y in (None, node[2]) for node in value)

        return PartialKnowledge(self.to_value(instance, known), agrees)

    def sets(self, instance: Instance) -> PartialKnowledge:
        """The whole row has label 0; what is not read is not allowed."""
        allowed = spantrees.read(instance)
        for row, length in enumerate(spantrees.lengths(instance)):
            allowed[row, 0, length - 1, 1:] = False
        shape = instance.scores["spans"].shape
        return PartialKnowledge(allowed.reshape(shape), lambda row, value: value[0][2] == 0)

    def nothing_known(self, instance: Instance) -> PartialKnowledge:
        return PartialKnowledge(self.to_value(instance, [()] * self.n_rows(instance)), lambda row, value: True)

    def shifted(self, instance: Instance, by: float) -> tuple[Instance, list[float]]:
        amounts = [by * (2 * length - 1) for length in spantrees.lengths(instance)]
        return instance.mapped(lambda part: part + by), amounts

    def one_row(self, instance: Instance, row: int) -> Instance:
        length = spantrees.lengths(instance)[row]
        return Instance({"spans": spantrees.rows_of(instance)[row, :length, :length][None]}, {})

    def with_garbage(self, instance: Instance, garbage: float) -> Instance:
        kept = torch.where(spantrees.read(instance), spantrees.rows_of(instance), garbage)
        return instance.with_scores(spans=kept.reshape(instance.scores["spans"].shape))

    def forbidding(self, instance: Instance, row: int, plain: Any) -> Instance:
        start, end, label = plain[-1]
        changed = spantrees.rows_of(instance).clone()
        changed[row, start, end - 1, label] = -INF
        return instance.with_scores(spans=changed.reshape(instance.scores["spans"].shape))

    def test_samples_come_in_the_shape_asked_for(self, instance: Instance, backend: str) -> None:
        """Values are lists, so their nesting is compared; the tensor form has the usual shape."""
        dist = self.build(instance, backend)
        assert dist.sample_nodes().shape == dist.batch_shape + dist.event_shape
        assert torch.equal(dist.argmax_nodes, dist.to_nodes(dist.argmax))
        assert dist.sample_nodes((2, 3)).shape == (2, 3, *dist.batch_shape, *dist.event_shape)
        assert dist.sample((0,)) == []
        sample = dist.sample((2, 3))
        assert (len(sample), {len(each) for each in sample}) == (2, {3})
        assert all(len(self.to_plain(instance, each)) == self.n_rows(instance) for row in sample for each in row)

    # --- labelled trees only ---------------------------------------------------------------------------------

    def test_expected_costs(self, instance: Instance, backend: str) -> None:
        costs = torch.rand(instance.scores["spans"].shape, generator=torch.Generator().manual_seed(3))
        marginals = self.enumerated_marginals(instance).reshape(costs.shape)
        close(self.build(instance, backend).expected(costs), (marginals * costs).flatten(-3).sum(-1))

    def test_span_probability(self, instance: Instance, backend: str) -> None:
        dist, c = self.build(instance, backend), instance.scores["spans"].shape[-1]
        for label in (None, c - 1):
            wanted = [
                math.fsum(p for value, p in self.probabilities(instance, row).items() if self.has(value, label))
                for row in range(self.n_rows(instance))
            ]
            close(dist.span_probability(0, 1, label), wanted)
        names = [f"label {y}" for y in range(c)]
        assert torch.equal(dist.span_probability(0, 1, names[-1], labels=names), dist.span_probability(0, 1, c - 1))

    @staticmethod
    def has(value: Any, label: int | None) -> bool:
        return any(node[:2] == (0, 1) and label in (None, node[2]) for node in value)

    def test_lists_nodes_and_parts_say_the_same(self, instance: Instance, backend: str) -> None:
        dist = self.build(instance, backend)
        for plain, value in self.values(instance)[:3]:
            nodes, parts = dist.to_nodes(value), dist.to_parts(value)
            assert dist.from_nodes(nodes) == value
            assert dist.from_parts(parts) == value
            rows = parts.reshape(self.n_rows(instance), *parts.shape[-3:]).double()
            assert torch.equal(rows, torch.stack([self.indicator(instance, r, v) for r, v in enumerate(plain)]))
            assert torch.equal(dist.log_prob(nodes), dist.log_prob(value))
            assert dist.log_prob([value, value]).shape == (2, *dist.batch_shape)
            turned = self.to_value(instance, [tuple(reversed(row)) for row in plain])  # type: ignore[arg-type]
            assert torch.equal(dist.to_nodes(turned), nodes), "nodes may come in any order"


def catalan(n: int) -> int:
    return math.comb(2 * n, n) // (n + 1)


@pytest.mark.parametrize(("n", "c"), [(1, 3), (2, 2), (8, 1), (12, 4)])
def test_counts_of_trees(n: int, c: int) -> None:
    """Catalan numbers of bracketings, and a label for each of the 2n - 1 nodes."""
    assert SpanTree(torch.zeros(1, n, n, c)).count.item() == catalan(n - 1) * c ** (2 * n - 1)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_kernel_and_reference_agree_on_long_rows_of_any_range(scale: float) -> None:
    generator = torch.Generator().manual_seed(int(scale))
    spans = scale * torch.randn(3, 17, 17, 5, generator=generator, dtype=torch.float64)
    spans[torch.rand(spans.shape, generator=generator) < 0.3] = -INF
    fast, plain = (SpanTree(spans, lengths=torch.tensor([17, 11, 2]), backend=each) for each in BACKENDS)
    close(fast.log_partition, plain.log_partition)
    close(fast.marginals, plain.marginals)
    assert fast.argmax == plain.argmax
    close(fast.top_k(6)[1], plain.top_k(6)[1])


def test_half_precision_in_and_out() -> None:
    spans = torch.randn(2, 4, 4, 3, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    dist = SpanTree(spans)
    assert dist.log_partition.dtype == dist.marginals.dtype == dist.log_prob(dist.argmax).dtype == torch.bfloat16
    dist.log_partition.sum().backward()
    assert spans.grad is not None and spans.grad.dtype == torch.bfloat16
    torch.testing.assert_close(spans.grad, dist.marginals, rtol=0.02, atol=0.01)


def test_expand_keeps_the_distribution() -> None:
    dist = SpanTree(torch.randn(3, 4, 4, 2), lengths=torch.tensor([4, 1, 3]))
    wide = dist.expand((2, 3))
    assert torch.equal(wide.log_partition, dist.log_partition.expand(2, 3))
    assert wide.argmax == [dist.argmax, dist.argmax]


def test_a_whole_tree_as_constraint_leaves_one_bracketing() -> None:
    dist = SpanTree(torch.randn(1, 5, 5, 2, generator=torch.Generator().manual_seed(1)))
    (tree,) = dist.argmax
    assert dist.constrain([tree]).count.item() == 1
    assert dist.constrain([[(i, j, None) for i, j, _ in tree]]).count.item() == 2**9
    close(dist.log_prob_of_set([tree]), dist.log_prob([tree]))


DIST = SpanTree(torch.zeros(2, 3, 3, 2), lengths=torch.tensor([3, 2]))
TWO = [(0, 2, 0), (0, 1, 0), (1, 2, 1)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[(0, 3, 0), (0, 1, 0), (1, 3, 0), (1, 2, 0), (2, 3, 2)], TWO], r"labels in 0..1.*got .* at row 0"),
        ([[(0, 3, 0), (0, 1, 0), (1, 2, 0), (2, 3, 0)], TWO], r"5 nodes.*got .* at row 0; binarise"),
        ([[(0, 3, 0), (0, 2, 0), (1, 3, 0), (0, 1, 0), (2, 3, 0)], TWO], r"got .* at row 0"),
        ([[(0, 3, 0), (0, 1, 0), (1, 3, 0), (1, 2, 0), (2, 3, 0)], TWO[:2]], r"3 nodes.*got .* at row 1"),
        ([TWO], r"each of the rows \(2,\); got \(1,\)"),
        ([[*TWO, *TWO], TWO], "at most 5 nodes"),
        (torch.zeros(2, 5, 3), "whole numbers"),
        (torch.zeros(1, 5, 3).long(), r"\[..., 2, 5, 3\]; got \(1, 5, 3\)"),
    ],
)
def test_a_value_that_is_no_tree_is_named(value: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        DIST.log_prob(value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(spans=torch.zeros(3, 2)), r"\[batch, n, n, c\]"),
        (dict(spans=torch.zeros(1, 3, 2, 2)), r"\[batch, n, n, c\]"),
        (dict(spans=torch.zeros(1, 3, 3, 2).long()), "floating point"),
        (dict(spans=torch.full((1, 3, 3, 2), math.nan)), r"got nan at row 0, first token 0, last token 0, label 0"),
        (dict(spans=torch.full((1, 3, 3, 2), INF)), r"got inf at row 0"),
        (dict(spans=torch.zeros(1, 3, 3, 2), lengths=torch.tensor([4])), r"lengths must lie in 1..3; got 4"),
        (dict(spans=torch.zeros(1, 3, 3, 2), backend="cuda"), "backend must be"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_that_cannot_be_are_refused(arguments: dict[str, Any], message: str, backend: str) -> None:
    with pytest.raises(ScoreError, match=message):
        SpanTree(**{"backend": backend, **arguments})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: DIST.span_probability(3, 3, 0), r"first < last within 0..3"),
        (lambda: DIST.span_probability(0, 1, 2), r"label in 0..1; got \(0, 1, 2\)"),
        (lambda: DIST.span_probability(0, 1, "X"), r"one of labels=None; got 'X'"),
        (lambda: DIST.top_k(0), "k must be at least 1"),
        (lambda: DIST.constrain([[], [(0, 3, 0)]]), r"within 0..2.*got \(0, 3, 0\) at row 1"),
        (lambda: DIST.constrain([[]]), r"one list a row, \(2,\); got 1"),
        (lambda: DIST.constrain(torch.ones(2, 3).bool()), r"allowed nodes must be bool \(2, 3, 3, 2\)"),
        (lambda: DIST.expected(torch.zeros(2, 3)), r"costs must be \(2, 3, 3, 2\)"),
        (lambda: kl_divergence(DIST, SpanTree(torch.zeros(2, 3, 3, 2))), "same shape and lengths"),
    ],
)
def test_questions_without_an_answer_are_explained(ask: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()


@pytest.mark.parametrize("c", [1, 7, 8, 20])
@pytest.mark.parametrize("scale", [0.1, 5.0, 60.0, 1000.0])
def test_exp_space_and_log_space_agree_with_the_reference_for_any_range_of_scores(scale: float, c: int) -> None:
    generator = torch.Generator().manual_seed(c)
    spans = scale * torch.randn(9, 12, 12, c, dtype=torch.float64, generator=generator)
    spans[torch.rand(spans.shape, generator=generator) < 0.02] = -torch.inf
    lengths = torch.tensor([12, 1, 2, 3, 12, 7, 8, 5, 11])
    kernel, reference = (SpanTree(spans, lengths=lengths, backend=name) for name in ("kernel", "torch"))
    torch.testing.assert_close(kernel.log_partition, reference.log_partition, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(kernel.marginals, reference.marginals, rtol=1e-8, atol=1e-10)
    possible = reference.log_partition > -torch.inf
    if bool(possible.all()):
        best = kernel.argmax_nodes
        torch.testing.assert_close(kernel.score(best), reference.score(reference.argmax_nodes))
