"""Each objective and its gradient equal the sum over every tag sequence, or every segmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.data.corpus import as_sentences, builtin_corpus
from trelliswork.distributions import LinearChain, SemiMarkov
from trelliswork.distributions.local import locally_normalised
from trelliswork.errors import TrellisworkError
from trelliswork.models import Segmenter, Tagger, TaggerConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.objectives import OBJECTIVES, local
from trelliswork.training.progress import Progress

N, C, K = 4, 3, 2
LENGTHS = torch.tensor([4, 1, 3])
GOLD = torch.tensor([[0, 2, 2, 1], [1, 0, 0, 0], [2, 0, 1, 0]])
STARTS = torch.tensor([[0, -1, 2, 1], [1, -1, -1, -1], [2, 0, -1, -1]])
SMALL = TaggerConfig(word_dim=8, affix_dim=3, hidden=8, dropout=0.0, unknown_dropout=0.0, max_length=3, segment_dim=8)
SENTENCES = as_sentences(builtin_corpus(sizes=(30, 1, 1))["train"])

Scores = tuple[Tensor, Tensor, Tensor, Tensor]
Loss = Callable[[Tensor, Tensor, int], Tensor]


def chain_scores() -> Scores:
    torch.manual_seed(1)
    found = torch.randn(3, N, C), torch.randn(C, C), torch.randn(C), torch.randn(C)
    return tuple(each.double().requires_grad_() for each in found)  # type: ignore[return-value]


def segment_scores() -> Scores:
    torch.manual_seed(2)
    found = torch.randn(3, N, K, C), torch.randn(C, C), torch.randn(C), torch.randn(C)
    return tuple(each.double().requires_grad_() for each in found)  # type: ignore[return-value]


def value_of_perceptron(scores: Tensor, costs: Tensor, gold: int) -> Tensor:
    return scores.max() - scores[gold]


def value_of_margin(scores: Tensor, costs: Tensor, gold: int) -> Tensor:
    return (scores + costs).max() - scores[gold]


def value_of_risk(scores: Tensor, costs: Tensor, gold: int) -> Tensor:
    return (scores.softmax(0) * costs).sum()


BY_ENUMERATION: dict[str, Loss] = {
    "perceptron": value_of_perceptron, "margin": value_of_margin, "risk": value_of_risk,
}  # fmt: skip


def over_tags(loss: Loss, scores: Scores) -> Tensor:
    """The loss of each row from the scores and costs of every tag sequence."""
    emissions, transitions, start, end = scores
    found = []
    for row, n in enumerate(LENGTHS.tolist()):
        right = tuple(GOLD[row, :n].tolist())
        every = list(product(range(C), repeat=n))
        total = [
            start[tags[0]] + end[tags[-1]]
            + sum(emissions[row, i, tag] for i, tag in enumerate(tags))
            + sum(transitions[a, b] for a, b in pairwise(tags))
            for tags in every
        ]  # fmt: skip
        costs = [sum(a != b for a, b in zip(tags, right, strict=True)) for tags in every]
        found.append(loss(torch.stack(total), torch.tensor(costs).double(), every.index(right)))
    return torch.stack(found)


def segmentations(n: int, first: int = 0) -> list[list[tuple[int, int, int]]]:
    if first == n:
        return [[]]
    return [
        [(first, last, label), *rest]
        for last in range(first + 1, min(n, first + K) + 1)
        for label in range(C)
        for rest in segmentations(n, last)
    ]


def over_segments(loss: Loss, scores: Scores) -> Tensor:
    segments, transitions, start, end = scores
    found = []
    gold = SemiMarkov(*scores, lengths=LENGTHS).from_starts(STARTS)
    for row, n in enumerate(LENGTHS.tolist()):
        every = segmentations(n)
        right = [tuple(segment) for segment in gold[row]]
        total = [
            start[value[0][2]] + end[value[-1][2]]
            + sum(segments[row, first, last - first - 1, label] for first, last, label in value)
            + sum(transitions[a[2], b[2]] for a, b in pairwise(value))
            for value in every
        ]  # fmt: skip
        costs = [
            sum(last - first for first, last, label in value if (first, last, label) not in right) for value in every
        ]
        found.append(loss(torch.stack(total), torch.tensor(costs).double(), every.index(right)))
    return torch.stack(found)


def assert_same(found: Tensor, expected: Tensor, scores: Scores) -> None:
    torch.testing.assert_close(found, expected)
    weights = torch.tensor([1.0, -2.0, 3.0]).double()
    gradients = [torch.autograd.grad((each * weights).sum(), scores) for each in (found, expected)]
    for own, right in zip(*gradients, strict=True):
        torch.testing.assert_close(own, right)


@pytest.mark.parametrize("name", BY_ENUMERATION)
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_chains(name: str, backend: Any) -> None:
    scores = chain_scores()
    found = OBJECTIVES[name](LinearChain(*scores, lengths=LENGTHS, backend=backend), GOLD)
    assert_same(found, over_tags(BY_ENUMERATION[name], scores), scores)


@pytest.mark.parametrize("name", BY_ENUMERATION)
def test_segments(name: str) -> None:
    scores = segment_scores()
    found = OBJECTIVES[name](SemiMarkov(*scores, lengths=LENGTHS), STARTS)
    assert_same(found, over_segments(BY_ENUMERATION[name], scores), scores)


def test_the_perceptron_loss_is_zero_and_flat_where_gold_is_best() -> None:
    emissions = (5 * torch.nn.functional.one_hot(GOLD, C).double()).requires_grad_()
    chain = LinearChain(emissions, torch.zeros(C, C).double(), lengths=LENGTHS)
    loss = OBJECTIVES["perceptron"](chain, GOLD).sum()
    assert loss.item() == 0
    assert not torch.autograd.grad(loss, emissions)[0].any()


def test_local_is_a_softmax_at_each_token_given_the_gold_tag_before_it() -> None:
    emissions, transitions, start, end = scores = chain_scores()
    found = local(LinearChain(*scores, lengths=LENGTHS), GOLD)
    expected = []
    for row, n in enumerate(LENGTHS.tolist()):
        total = torch.zeros((), dtype=torch.double)
        for i in range(n):
            choice = emissions[row, i] + (start if i == 0 else transitions[GOLD[row, i - 1]])
            choice = choice + end if i == n - 1 else choice
            total = total - choice.log_softmax(0)[GOLD[row, i]]
        expected.append(total)
    assert_same(found, torch.stack(expected), scores)


def test_a_locally_normalised_chain_sums_to_one_and_keeps_what_is_forbidden() -> None:
    emissions, transitions, start, end = (each.detach() for each in chain_scores())
    transitions = transitions.masked_fill(torch.eye(C).bool(), -torch.inf)
    transitions[1] = -torch.inf  # nothing follows tag 1
    transitions.requires_grad_()
    chain = locally_normalised(LinearChain(emissions, transitions, start, end, lengths=LENGTHS))
    # tag 1 is a dead end, so that some mass is lost on the way, and none comes from nowhere
    assert (chain.log_partition <= 1e-12).all()
    free = locally_normalised(LinearChain(emissions, torch.zeros(C, C).double(), start, end, lengths=LENGTHS))
    torch.testing.assert_close(free.log_partition, torch.zeros(3).double())
    gradient = torch.autograd.grad(
        chain.score(torch.tensor([[0, 2, 0, 2], [1, 0, 0, 0], [2, 0, 2, 0]])).sum(), transitions
    )
    assert torch.isfinite(gradient[0]).all()


@pytest.mark.parametrize("name", ["likelihood", *OBJECTIVES])
@pytest.mark.parametrize("kind", [Tagger, Segmenter])
def test_each_is_made_smaller_by_training(name: Any, kind: Any) -> None:
    if (kind, name) == (Segmenter, "local"):
        return
    model = kind.from_data(SENTENCES, SMALL)
    config = TrainingConfig(epochs=4, objective=name, batch_tokens=100, lr=0.01)
    history = train(model, SENTENCES, None, config, progress=Progress()).history
    assert history[-1].loss < 0.8 * history[0].loss


def test_a_locally_normalised_tagger_is_scored_and_decoded_by_its_own_distribution() -> None:
    tagger = Tagger.from_data(SENTENCES, replace(SMALL, normalization="local"))
    whole = Tagger.from_data(SENTENCES, SMALL).eval()
    found, gold = whole.scored(SENTENCES[:3])
    tagger.eval()
    torch.testing.assert_close(tagger.loss(SENTENCES[:3]), local(found, gold).sum())
    torch.testing.assert_close(tagger.distribution(SENTENCES[:3]).log_partition, torch.zeros(3), atol=1e-5, rtol=0)
    best = locally_normalised(found).argmax
    assert tagger.tag(SENTENCES[:1]) == [whole.labels.tags(best[0, : len(SENTENCES[0])].tolist())]


def test_what_cannot_be_is_refused() -> None:
    segmenter = Segmenter.from_data(SENTENCES, SMALL)
    with pytest.raises(TrellisworkError, match="local needs a tag for each token, got segments"):
        train(segmenter, SENTENCES, None, TrainingConfig(objective="local"), progress=Progress())

    with pytest.raises(TrellisworkError, match=r"margin needs a model with a distribution.*got a Linear"):
        train(
            torch.nn.Linear(1, 1),
            [Sentence(("a",), ("O",))],
            None,
            TrainingConfig(objective="margin"),
            progress=Progress(),
        )
