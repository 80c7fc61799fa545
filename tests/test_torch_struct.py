"""The interface of torch-struct against torch-struct itself, query by query."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from trelliswork.compat import torch_struct as ours
from trelliswork.errors import ScoreError

theirs = pytest.importorskip("torch_struct", reason="torch-struct is not installed")

LENGTHS = torch.tensor([4, 3, 4])
SHAPES: dict[str, tuple[int, ...]] = {
    "LinearChainCRF": (3, 3, 2, 2),
    "SemiMarkovCRF": (3, 3, 3, 2, 2),
    "DependencyCRF": (3, 4, 4),
    "NonProjectiveDependencyCRF": (3, 4, 4),
    "TreeCRF": (3, 4, 4, 2),
}
ROWS = [pytest.param(None, id="whole"), pytest.param(LENGTHS, id="ragged")]
SEARCHED = [name for name in SHAPES if name != "NonProjectiveDependencyCRF"]  # torch-struct has no trees of these


def scores(name: str, seed: int = 0) -> Tensor:
    return torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def both(name: str, seed: int = 0, lengths: Tensor | None = None, **how: Any) -> tuple[Any, Any]:
    """The same distribution in both libraries."""
    lengths = None if name == "SemiMarkovCRF" else lengths  # torch-struct sums too little, see below
    given = scores(name, seed)
    other = getattr(theirs, name)(given.clone().requires_grad_(), lengths=lengths, **how)  # trees need the gradient
    return getattr(ours, name)(given, lengths=lengths, **how), other


def close(found: Tensor, wanted: Tensor, precision: float = 1e-9) -> None:
    torch.testing.assert_close(found.detach(), wanted.detach().to(found.dtype), atol=precision, rtol=0)


@pytest.mark.parametrize("lengths", ROWS)
@pytest.mark.parametrize("name", SHAPES)
def test_sums_and_marginals(name: str, lengths: Tensor | None) -> None:
    precision = 1e-4 if name.startswith("NonProjective") else 1e-9  # torch-struct adds 1e-5 to every arc
    mine, other = both(name, lengths=lengths)
    close(mine.partition, other.partition, precision)
    close(mine.marginals, other.marginals, precision)
    assert (mine.batch_shape, mine.event_shape) == (other.batch_shape, other.event_shape)


@pytest.mark.parametrize("lengths", ROWS)
@pytest.mark.parametrize("name", SEARCHED)
def test_the_best_structures(name: str, lengths: Tensor | None) -> None:
    mine, other = both(name, lengths=lengths)
    close(mine.max, other.max)
    close(mine.argmax, other.argmax)
    close(mine.mode, other.mode)
    close(mine.kmax(3), other.kmax(3))
    close(mine.topk(3), other.topk(3))
    close(mine.log_prob(mine.topk(3)), other.log_prob(other.topk(3)))


@pytest.mark.parametrize("lengths", ROWS)
@pytest.mark.parametrize("name", SHAPES)
def test_entropies(name: str, lengths: Tensor | None) -> None:
    (mine, other), (mine_2, other_2) = both(name, 0, lengths), both(name, 1, lengths)
    gap = torch.where(other.marginals > 0, other.log_potentials - other_2.log_potentials, 0.0)
    kl = (other.marginals * gap).flatten(1).sum(1) - other.partition + other_2.partition
    precision = 1e-3 if name.startswith("NonProjective") else 1e-6
    close(mine.kl(mine_2), kl, precision)
    close(mine.cross_entropy(mine_2), mine.entropy + mine.kl(mine_2))
    if name != "NonProjectiveDependencyCRF":  # torch-struct gives None
        close(mine.entropy, other.entropy, precision)
    if name in ("LinearChainCRF", "TreeCRF"):  # torch-struct fails for the others
        close(mine.kl(mine_2), other.kl(other_2), precision)
        close(mine.cross_entropy(mine_2), other.cross_entropy(other_2), precision)


@pytest.mark.parametrize("name", ["LinearChainCRF", "SemiMarkovCRF", "TreeCRF"])
def test_counts(name: str) -> None:
    mine, other = both(name)
    close(mine.count, other.count)


@pytest.mark.parametrize("multiroot", [True, False])
@pytest.mark.parametrize("name", ["DependencyCRF", "NonProjectiveDependencyCRF"])
def test_one_root_or_several(name: str, multiroot: bool) -> None:
    mine, other = both(name, multiroot=multiroot)
    close(mine.partition, other.partition, 1e-4)
    close(mine.marginals, other.marginals, 1e-4)
    assert getattr(ours, name)(scores(name)).multiroot == (name == "DependencyCRF")


def test_arcs_with_labels() -> None:
    given = torch.randn(2, 3, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine, other = ours.DependencyCRF(given), theirs.DependencyCRF(given.clone().requires_grad_())
    close(mine.partition, other.partition)
    close(mine.marginals, other.marginals)
    close(mine.argmax, other.argmax)


@pytest.mark.parametrize("lengths", ROWS)
def test_a_hidden_markov_model(lengths: Tensor | None) -> None:
    torch.manual_seed(0)
    tables = torch.randn(2, 2).log_softmax(0), torch.randn(5, 2).log_softmax(0), torch.randn(2).log_softmax(0)
    observations = torch.randint(5, (3, 4))
    mine, other = (module.HMM(*tables, observations, lengths=lengths) for module in (ours, theirs))
    close(mine.log_potentials, other.log_potentials, 1e-5)
    close(mine.partition, other.partition, 1e-5)
    close(mine.marginals, other.marginals, 1e-5)


@pytest.mark.parametrize("lengths", [pytest.param(None, id="whole"), pytest.param(torch.tensor([4, 3]), id="ragged")])
def test_a_grammar(lengths: Tensor | None) -> None:
    torch.manual_seed(0)
    shapes = (2, 4, 2), (2, 3, 5, 5), (2, 3)
    given = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    mine, other = ours.SentCFG(given, lengths), theirs.SentCFG(tuple(each.clone() for each in given), lengths)
    close(mine.partition, other.partition)
    close(mine.max, other.max)
    close(mine.kmax(3), other.kmax(3))
    close(mine.entropy, other.entropy)
    for found, wanted in zip((*mine.marginals, *mine.argmax), (*other.marginals, *other.argmax), strict=True):
        close(found, wanted)
    close(mine.topk(3)[3], other.topk(3)[3])
    close(mine.log_prob(mine.argmax), mine.max - mine.partition)
    assert [tuple(each.shape) for each in mine.sample((6,))] == [(6, *shape) for shape in (*shapes, (2, 4, 4, 3))]
    close(mine.kl(mine), torch.zeros(2))


# --- what torch-struct does otherwise ----------------------------------------------------------------------------


def test_segments_of_ragged_rows_are_those_of_each_row_alone() -> None:
    """torch-struct leaves structures out of rows that are longer than the shortest."""
    torch.manual_seed(0)
    given, lengths = torch.randn(3, 5, 3, 2, 2, dtype=torch.float64), [6, 4, 3]
    alone = [theirs.SemiMarkovCRF(given[i : i + 1, : n - 1].clone()).partition for i, n in enumerate(lengths)]
    close(ours.SemiMarkovCRF(given, torch.tensor(lengths)).partition, torch.cat(alone))
    ragged = theirs.SemiMarkovCRF(given.clone(), torch.tensor(lengths)).partition
    assert (ragged - torch.cat(alone)).abs().max() > 0.1, "torch-struct is right now: change the table of the page"


def test_dependency_trees_do_not_change_each_other() -> None:
    """`multiroot` is a setting of the class in torch-struct: the last one counts for all."""
    given = scores("DependencyCRF")
    first, second = ours.DependencyCRF(given), ours.DependencyCRF(given, multiroot=False)
    assert (first.partition > second.partition).all()


@pytest.mark.parametrize("name", SHAPES)
def test_scores_of_minus_infinity_and_scores_left_alone(name: str) -> None:
    given = scores(name)
    given[:, 0, 1] = -torch.inf
    before = given.clone()
    mine = getattr(ours, name)(given)
    assert (
        mine.partition.isfinite().all()
        and mine.marginals.isfinite().all()
        and mine.log_prob(mine.argmax).isfinite().all()
    )
    assert (mine.marginals[:, 0, 1] == 0).all()
    assert torch.equal(given, before) and not given.requires_grad


@pytest.mark.parametrize("name", SHAPES)
def test_without_gradients(name: str) -> None:
    wanted = getattr(ours, name)(scores(name))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found = getattr(ours, name)(scores(name))
            close(found.marginals, wanted.marginals)
            close(found.argmax, wanted.argmax)
            assert not found.marginals.requires_grad


# --- gradients, samples, conversions -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEARCHED)
def test_marginals_are_differentiable(name: str) -> None:
    """As structured attention needs them."""
    found = []
    for module in (ours, theirs):
        given = scores(name).requires_grad_()
        weights = scores(name, 1)
        (getattr(module, name)(given).marginals * weights).sum().backward()
        found.append(given.grad)
    close(*found)


@pytest.mark.parametrize("name", SHAPES)
def test_samples_have_the_marginals(name: str) -> None:
    torch.manual_seed(0)
    mine = getattr(ours, name)(scores(name), LENGTHS)
    events = mine.sample((400,))
    assert events.shape == (400, *SHAPES[name]) and set(events.unique().tolist()) <= {0.0, 1.0}
    assert (events.mean(0) - mine.marginals).abs().max() < 0.12
    assert mine.log_prob(events).shape == (400, 3) and mine.sample((2, 3)).shape == (2, 3, *SHAPES[name])
    row = [tuple(each.flatten().tolist()) for each in events[:, 1]]
    (most, n), probability = Counter(row).most_common(1)[0], mine.log_prob(events).exp()[:, 1]
    assert probability[row.index(most)] == pytest.approx(n / 400, abs=0.12)


def test_events_from_sequences_and_back() -> None:
    tags = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]])
    chain = ours.LinearChainCRF(torch.zeros(2, 3, 2, 2))
    close(chain.to_event(tags, 2), theirs.LinearChain.to_parts(tags, 2))
    short = torch.tensor([4, 3])
    close(chain.to_event(tags, 2, lengths=short), theirs.LinearChain.to_parts(tags, 2, lengths=short))
    close(chain.from_event(chain.to_event(tags, 2))[0], tags)
    heads = torch.tensor([[2, 0, 2, 3], [0, 1, 1, 0]])
    tree = ours.DependencyCRF(torch.zeros(2, 4, 4))
    close(tree.to_event(heads), theirs.DepTree.to_parts(heads))
    close(tree.to_event(heads, lengths=short), theirs.DepTree.to_parts(heads, lengths=short))
    close(tree.from_event(tree.to_event(heads))[0], heads)
    segments = ours.SemiMarkovCRF(scores("SemiMarkovCRF"))
    found, size = segments.from_event(segments.argmax)
    wanted = theirs.SemiMarkov.from_parts(segments.argmax)
    close(found, wanted[0])
    assert size == wanted[1]


def test_wrong_axes_are_one_sentence() -> None:
    with pytest.raises(ScoreError, match=r"LinearChainCRF takes log-potentials of 4 axes; got the shape \(3, 2, 2\)"):
        ours.LinearChainCRF(torch.zeros(3, 2, 2))
