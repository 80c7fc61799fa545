"""The dependency CRF layer and its scorer."""

from __future__ import annotations

import pytest
import torch

from trelliswork.distributions import ProjectiveTree, SpanningTree
from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.nn import BiaffineScorer, DependencyCRF

ARCS = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.randn(2, 5, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
HEADS = torch.tensor([[2, 0, 2, 3], [0, 1, 9, 9]])
NAMES = torch.tensor([[2, 0, 1, 1], [0, 1, 9, 9]])
MASK = torch.tensor([[True] * 4, [True, True, False, False]])
LENGTHS = torch.tensor([4, 2])


@pytest.mark.parametrize(("projective", "family"), [(True, ProjectiveTree), (False, SpanningTree)])
@pytest.mark.parametrize("single_root", [True, False])
def test_the_layer_is_its_distribution(projective: bool, family: type[SpanningTree], single_root: bool) -> None:
    crf = DependencyCRF(projective, single_root)
    trees = family(ARCS, lengths=LENGTHS, single_root=single_root)
    labelled = family(ARCS, LABELS, lengths=LENGTHS, single_root=single_root)
    assert torch.equal(crf(ARCS, HEADS, mask=MASK, reduction="none"), trees.log_prob(HEADS))
    pairs = torch.stack([HEADS, NAMES], -1)
    assert torch.equal(crf(ARCS, HEADS, LABELS, NAMES, mask=MASK), labelled.log_prob(pairs).sum())
    assert torch.equal(crf.marginals(ARCS, mask=MASK), trees.marginals)
    assert torch.equal(crf.marginals(ARCS, LABELS, mask=MASK), labelled.marginals)
    assert crf.decode(ARCS, mask=MASK) == [trees.argmax[0].tolist(), trees.argmax[1, :2].tolist()]
    assert crf.decode(ARCS, LABELS, mask=MASK)[1] == [tuple(pair) for pair in labelled.argmax[1, :2].tolist()]


def test_reductions() -> None:
    crf = DependencyCRF()
    each = crf(ARCS, HEADS, mask=MASK, reduction="none")
    assert each.shape == (2,)
    for reduction, wanted in (("sum", each.sum()), ("mean", each.mean()), ("token_mean", each.sum() / 6)):
        torch.testing.assert_close(crf(ARCS, HEADS, mask=MASK, reduction=reduction), wanted)


def test_unknown_heads_and_labels_are_summed_over() -> None:
    crf, unknown = DependencyCRF(), torch.tensor([[2, -100, 2, 3], [0, 1, 0, 0]])
    trees = ProjectiveTree(ARCS, lengths=LENGTHS)
    found = crf(ARCS, unknown, mask=MASK, reduction="none")
    torch.testing.assert_close(found, trees.log_prob_of_set(torch.where(MASK, unknown, -100)))
    torch.testing.assert_close(found[1], trees.log_prob(HEADS)[1])
    by_label = [
        crf(ARCS, HEADS, LABELS, NAMES.where(torch.arange(4) > 0, y), mask=MASK, reduction="none") for y in range(3)
    ]
    together = crf(ARCS, HEADS, LABELS, NAMES.where(torch.arange(4) > 0, -100), mask=MASK, reduction="none")
    torch.testing.assert_close(together, torch.stack(by_label).logsumexp(0))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda crf: crf(ARCS, HEADS, mask=MASK, reduction="max"), "reduction must be one of"),
        (lambda crf: crf(ARCS, HEADS, LABELS, mask=MASK), "belong together"),
        (lambda crf: crf(ARCS, HEADS, mask=MASK[:, 1:]), r"the mask must be \[batch, n\], without the root"),
        (lambda crf: crf(ARCS, HEADS, mask=MASK.flip(1)), "mask of row 1 has a hole"),
        (lambda crf: crf(ARCS, torch.tensor([[3, 0, 2, 2], [0, 1, 0, 0]]), mask=MASK), "no arcs cross"),
        (lambda crf: crf(ARCS, HEADS[:, :3], mask=MASK), r"heads must be \[..., 2, 4\]; got \(2, 3\)"),
        (lambda crf: crf(ARCS, HEADS[:1], mask=MASK), r"heads must be \[..., 2, 4\]; got \(1, 4\)"),
        (lambda crf: crf(ARCS, HEADS.tolist(), mask=MASK), "heads must be a tensor; got list"),
        (lambda crf: crf(ARCS, HEADS, LABELS, NAMES[:, 1:], mask=MASK), r"labels must be \[..., 2, 4\]; got \(2, 3\)"),
        (lambda crf: crf(ARCS.numpy(), HEADS), "arcs must be a tensor; got ndarray"),
        (lambda crf: ProjectiveTree(ARCS).log_prob(HEADS[:, 1:]), r"heads must be \[..., 2, 4\]"),
        (lambda crf: BiaffineScorer(0), "sizes must be positive"),
    ],
)
def test_bad_input_is_named(ask: object, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        ask(DependencyCRF())  # type: ignore[operator]


def test_an_impossible_gold_tree_is_named() -> None:
    arcs = ARCS.clone()
    arcs[1, 1, 2] = -torch.inf
    with pytest.raises(ConstraintError, match="the tree of row 1 is impossible"):
        DependencyCRF()(arcs, HEADS, mask=MASK)


def test_a_scorer_learns_two_trees_with_their_labels() -> None:
    torch.manual_seed(0)
    scorer, crf, encoded = BiaffineScorer(8, num_labels=3), DependencyCRF(projective=False), torch.randn(2, 4, 8)
    optimizer = torch.optim.Adam(scorer.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        arcs, labels = scorer(encoded)
        loss = -crf(arcs, HEADS, labels, NAMES, mask=MASK)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5
    wanted = [list(zip(h[m].tolist(), y[m].tolist(), strict=True)) for h, y, m in zip(HEADS, NAMES, MASK, strict=True)]
    assert crf.decode(*scorer(encoded), mask=MASK) == wanted


def test_the_scorer_computes_what_it_says() -> None:
    torch.manual_seed(1)
    scorer, encoded = BiaffineScorer(6, num_labels=2, arc_dim=5, label_dim=4), torch.randn(1, 3, 6)
    arcs, labels = scorer(encoded)
    x_2, x_3 = encoded[0, 1], encoded[0, 2]
    u, v = scorer.arc_head(x_2).relu(), scorer.arc_dependent(x_3).relu()
    torch.testing.assert_close(arcs[0, 2, 3], u @ scorer.arc_bilinear.weight @ v + u @ scorer.arc_bilinear.bias)
    u, v = (
        torch.cat([f(x).relu(), torch.ones(1)]) for f, x in ((scorer.label_head, x_2), (scorer.label_dependent, x_3))
    )
    weight = scorer.label_bilinear.weight.reshape(2, 5, 5)
    torch.testing.assert_close(labels[0, 2, 3], torch.einsum("d,yde,e->y", u, weight, v))
    from_root = scorer.arc_head(scorer.root).relu() @ scorer.arc_bilinear(scorer.arc_dependent(x_3).relu())
    torch.testing.assert_close(arcs[0, 0, 3], from_root)
