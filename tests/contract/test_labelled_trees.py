"""Dependency trees with labels against enumeration, both families: the generic contract, then what only labels have."""

from __future__ import annotations

import pytest
import torch

from tests.contract.base import Instance, close
from tests.contract.labelled_dependencies import LabelledDependencyContract, labelled
from trelliswork.distributions import ProjectiveTree, SpanningTree, kl_divergence
from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.errors import ScoreError


class TestLabelledProjectiveTree(LabelledDependencyContract):
    projective = True

    def build(self, instance: Instance, backend: str) -> ProjectiveTree:
        return ProjectiveTree(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]


class TestLabelledSpanningTree(LabelledDependencyContract):
    projective = False

    def build(self, instance: Instance, backend: str) -> SpanningTree:
        return SpanningTree(**instance.scores, **instance.options, backend=backend)  # type: ignore[arg-type]


both = pytest.mark.parametrize("family", [ProjectiveTree, SpanningTree])


@both
def test_arcs_are_what_labels_add_up_to(family: type[DependencyTree]) -> None:
    trees = family(**labelled(60, 3, n=6).scores)
    close(trees.arc_marginals, trees.marginals.sum(-1))
    close(trees.arc_probability(2, 4), trees.arc_probability(2, 4, 0) + trees.marginals[:, 2, 4, 1:].sum(-1))
    costs = torch.rand(trees.marginals.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    close(trees.expected(costs), (trees.marginals * costs).flatten(1).sum(1))
    close(trees.expected(costs[..., 0]), (trees.arc_marginals * costs[..., 0]).flatten(1).sum(1))


@both
def test_labels_of_score_zero_change_nothing_but_their_number(family: type[DependencyTree]) -> None:
    arcs = torch.randn(2, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    plain, trees = family(arcs), family(arcs, torch.zeros(2, 6, 6, 3, dtype=torch.float64))
    close(trees.log_partition, plain.log_partition + 5 * torch.tensor(3.0, dtype=torch.float64).log())
    assert torch.equal(trees.count, plain.count * 3**5)
    assert torch.equal(trees.argmax[..., 0], plain.argmax)


@both
@pytest.mark.parametrize("k", [1, 40])
def test_many_best_come_in_order_without_duplicates(family: type[DependencyTree], k: int) -> None:
    trees = family(**labelled(61, 4, batch=(1,), n=9).scores)
    values, scores = trees.top_k(k)
    assert len({str(value) for value in values.tolist()}) == k
    assert (scores[1:] <= scores[:-1]).all()
    close(trees.score(values), scores)
    assert torch.equal(values[0], trees.argmax)


@both
def test_half_precision_in_and_out(family: type[DependencyTree]) -> None:
    scores = labelled(62, 2, n=4).scores
    halves = {name: part.bfloat16().requires_grad_() for name, part in scores.items()}
    exact = family(**{name: part.double() for name, part in halves.items()})
    trees = family(**halves)
    assert trees.log_partition.dtype == trees.marginals.dtype == torch.bfloat16
    torch.testing.assert_close(trees.log_partition, exact.log_partition.bfloat16())
    trees.log_prob(trees.argmax).sum().backward()
    for part in halves.values():
        assert part.grad is not None
        assert part.grad.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: SpanningTree(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)), r"labels must be \[batch, n\+1, n\+1, l\]"),
        (lambda: SpanningTree(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4, 0)), "l >= 1"),
        (lambda: SpanningTree(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4, 2).long()), "floating point"),
        (lambda: SpanningTree(torch.zeros(1, 4, 4), torch.full((1, 4, 4, 2), torch.nan)),
         "labels must be finite.*row 0, head 0, dependent 1, label 0"),
        (lambda: TREES.log_prob(torch.tensor([[0, 1, 2]])), r"a value is \[\.\.\., 3, 2\], \(head, label\)"),
        (lambda: TREES.log_prob(torch.tensor([[[0, 0], [1, 2], [2, 0]]])), r"labels must lie in 0\.\.1; got 2.*word 2"),
        (lambda: TREES.constrain(torch.tensor([[[0, 0], [1, 2], [2, 0]]])), r"partial labels must lie in 0\.\.1"),
        (lambda: TREES.arc_probability(0, 1, 2), "label must be one of 2"),
        (lambda: kl_divergence(TREES, SpanningTree(torch.zeros(1, 4, 4))), "same shape, labels"),
    ],
)  # fmt: skip
def test_bad_input_is_named(ask: object, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask()  # type: ignore[operator]


TREES = SpanningTree(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4, 2))


def test_labels_of_no_arc_are_not_read() -> None:
    labels = torch.zeros(1, 4, 4, 2)
    labels[:, :, 0] = labels[:, 3] = labels[:, :, 3] = torch.nan
    assert SpanningTree(torch.zeros(1, 4, 4), labels, lengths=torch.tensor([2])).count.item() == 2 * 2**2


def test_expand_repeats_rows() -> None:
    trees = SpanningTree(**labelled(63, 2, batch=(1,), n=3).scores)
    wide = trees.expand((2, 3))
    assert wide.argmax.shape == (2, 3, 3, 2)
    assert torch.equal(wide.log_partition, trees.log_partition.expand(2, 3))
    assert "labels=2" in repr(wide)


@both
@pytest.mark.parametrize("labels", [None, torch.zeros(0, 4, 4, 2)])
def test_a_batch_of_no_rows(family: type[DependencyTree], labels: torch.Tensor | None) -> None:
    trees = family(torch.zeros(0, 4, 4), labels)
    best = trees.argmax
    assert trees.log_partition.shape == trees.log_prob(best).shape == trees.entropy().shape == (0,)
    assert best.shape == (0, *trees.event_shape)
    assert trees.top_k(2)[0].shape == trees.sample((2,)).shape == (2, *best.shape)


@both
def test_a_forbidden_gold_label_has_gradient_zero_and_leaves_others_alone(family: type[DependencyTree]) -> None:
    scores = labelled(64, 3, batch=(2,), n=4).scores
    gold = family(**scores).argmax
    head, label = gold[0, 2].tolist()
    scores["labels"][0, head, 3, label] = -torch.inf
    leaves = {name: part.clone().requires_grad_() for name, part in scores.items()}
    log_prob = family(**leaves).log_prob(gold)
    assert log_prob[0].item() == -torch.inf
    log_prob.sum().backward()
    for part in leaves.values():
        assert part.grad is not None
        assert (part.grad[0] == 0).all()
        assert (part.grad[1] != 0).any()


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_by_kernels_is_score_less_log_partition(family: type[DependencyTree], dtype: torch.dtype) -> None:
    scores = {name: part.to(dtype) for name, part in labelled(65, 5, n=7).scores.items()}
    lengths = torch.tensor([7, 1, 4])
    gold = family(**labelled(66, 5, n=7).scores, lengths=lengths).argmax
    found = []
    for backend in ("kernel", "torch"):
        leaves = {name: part.clone().requires_grad_() for name, part in scores.items()}
        trees = family(**leaves, lengths=lengths, backend=backend)
        log_prob = trees.log_prob(gold) if backend == "kernel" else trees.score(gold) - trees.log_partition
        (log_prob * torch.tensor([1.0, 2.0, -0.5], dtype=dtype)).sum().backward()
        found.append([log_prob.detach(), *(leaf.grad for leaf in leaves.values())])
    for mine, other in zip(*found, strict=True):
        close(mine, other, dtype)


@both
@pytest.mark.parametrize("backend", ["kernel", "torch"])
@pytest.mark.parametrize("n_labels", [0, 2])
def test_two_queries_can_be_differentiated_one_after_another(
    family: type[DependencyTree], backend: str, n_labels: int
) -> None:
    leaves = labelled(67, 2, n=3).leaves().scores
    trees = family(leaves["arcs"], leaves["labels"] if n_labels else None, backend=backend)  # type: ignore[arg-type]
    trees.log_prob(trees.argmax).sum().backward()
    trees.entropy().sum().backward()
    trees.marginals.pow(2).sum().backward()
