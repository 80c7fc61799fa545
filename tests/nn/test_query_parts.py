"""Parts of Seq2SQL against their equations, written out; REINFORCE against the exact gradient by enumeration."""

from __future__ import annotations

import itertools

import pytest
import torch

from trelliswork.errors import ScoreError
from trelliswork.nn.query_parts import (
    AggregateScorer,
    ColumnScorer,
    ConditionDecoder,
    PointerScorer,
    Summary,
    execution_reward,
    join_input,
    reinforce_loss,
)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def encoded_input(batch: int = 2, n: int = 5, dim: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.arange(n) < torch.tensor([n - 2 * row for row in range(batch)])[:, None]
    return torch.randn(batch, n, dim, dtype=torch.double), mask


def test_pointers_are_scored_as_the_equation_says() -> None:
    scorer = PointerScorer(4, 6, 3).double()
    states, (inputs, mask) = torch.randn(2, 3, 4, dtype=torch.double), encoded_input()
    scores = scorer(states, inputs, mask)
    for b, s, t in itertools.product(range(2), range(3), range(5)):
        inner = (scorer.states.weight @ states[b, s] + scorer.inputs.weight @ inputs[b, t]).tanh()
        expected = scorer.direction.weight[0] @ inner if mask[b, t] else torch.tensor(-torch.inf).double()
        torch.testing.assert_close(scores[b, s, t], expected)


def test_a_summary_is_a_weighted_mean_of_what_is_there() -> None:
    summary, (encoded, mask) = Summary(6).double(), encoded_input()
    vector = summary(encoded, mask)
    for b in range(2):
        there = encoded[b][mask[b]]
        weights = torch.softmax(torch.stack([summary.direction.weight[0] @ h for h in there]), 0)
        torch.testing.assert_close(
            vector[b], sum((w * h for w, h in zip(weights, there, strict=True)), torch.zeros(6).double())
        )


def test_the_aggregate_layer_has_a_row_for_each_aggregate() -> None:
    """Erratum 31: W^agg is C x hidden. As printed, C x T, it could not be multiplied with the hidden layer."""
    scorer, (encoded, mask) = AggregateScorer(6, n_aggregates=4, hidden=7).double(), encoded_input()
    below, _, above = scorer.layers
    assert above.weight.shape == (4, 7)
    kappa = scorer.summary(encoded, mask)
    expected = torch.stack([above.weight @ (below.weight @ k + below.bias).tanh() + above.bias for k in kappa])
    torch.testing.assert_close(scorer(encoded, mask), expected)
    printed = torch.randn(4, encoded.shape[1]).double()  # C x T
    with pytest.raises(RuntimeError, match=r"size mismatch|shape"):
        printed @ (below(kappa[0])).tanh()
    assert scorer(encoded[:, :3], mask[:, :3]).shape == (2, 4)  # and a question may have any length


def test_columns_are_scored_by_the_last_state_of_their_names() -> None:
    scorer, (encoded, mask) = ColumnScorer(6, word_dim=5, hidden=4).double(), encoded_input()
    words, lengths = torch.randn(3, 4, 5, dtype=torch.double), torch.tensor([4, 1, 2])
    names = scorer.encode_names(words, lengths)
    scores = scorer(encoded, mask, names)
    for j, length in enumerate(lengths.tolist()):
        alone = scorer.names(words[j : j + 1, :length])[0][0, -1]
        torch.testing.assert_close(names[j], alone)
        for b in range(2):
            kappa = scorer.summary(encoded, mask)[b]
            inner = scorer.questions.weight @ kappa + scorer.columns.weight @ alone
            torch.testing.assert_close(scores[b, j], scorer.direction.weight[0] @ inner.tanh())
    with pytest.raises(ScoreError, match="at least one word"):
        scorer.encode_names(words, torch.tensor([4, 0, 2]))


def strings(n: int, steps: int) -> list[list[int]]:
    """All strings of pointers, with zeros behind their end."""
    distinct = {tuple(s[: s.index(0)] + [0] * (steps - s.index(0)) if 0 in s else s)
             for s in map(list, itertools.product(range(n), repeat=steps))}  # fmt: skip
    return sorted(map(list, distinct))


def all_log_probs(decoder: ConditionDecoder, encoded: torch.Tensor) -> tuple[torch.Tensor, list[list[int]]]:
    every = strings(encoded.shape[1], 3)
    many = encoded.expand(len(every), -1, -1)
    mask = torch.ones(many.shape[:2], dtype=torch.bool)
    return decoder(many, mask, torch.tensor(every)).log_probs.sum(1), every


def test_conditions_sum_to_one_and_are_drawn_as_often_as_they_are_probable() -> None:
    decoder, encoded = ConditionDecoder(6, 5).double(), 2 * torch.randn(1, 3, 6, dtype=torch.double)
    log_probs, every = all_log_probs(decoder, encoded)
    assert log_probs.exp().sum().item() == pytest.approx(1.0)
    n = 4000
    mask = torch.ones(n, 3, dtype=torch.bool)
    generator = torch.Generator().manual_seed(1)
    drawn = decoder(encoded.expand(n, -1, -1), mask, n_steps=3, generator=generator)
    counts = torch.tensor([(drawn.pointers == torch.tensor(each)).all(1).sum() for each in every])
    expected = n * log_probs.detach().exp()
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    assert statistic < 2.5 * len(every)  # chi-square with so many degrees of freedom
    again = decoder(encoded.expand(n, -1, -1), mask, drawn.pointers)
    torch.testing.assert_close(again.log_probs, drawn.log_probs)


@pytest.mark.parametrize("baseline", [False, True])
def test_the_gradient_of_reinforce_is_that_of_the_expected_reward(baseline: bool) -> None:
    """The expectation over all samples, or all pairs of samples, of what `reinforce_loss` has as its gradient."""
    decoder, encoded = ConditionDecoder(4, 3).double(), torch.randn(1, 3, 4, dtype=torch.double)
    weights = list(decoder.parameters())
    log_probs, every = all_log_probs(decoder, encoded)
    rewards = torch.tensor([execution_reward(None if len(set(s)) == 1 else s[0], 1) for s in every]).double()
    exact = torch.autograd.grad(-(log_probs.exp() * rewards).sum(), weights, retain_graph=True)
    expected = torch.zeros((), dtype=torch.double)
    p = log_probs.detach().exp()
    for i, j in itertools.product(range(len(every)), repeat=2):
        pair = torch.tensor([i, j])
        expected = expected + p[i] * p[j] * reinforce_loss(
            log_probs[pair][None], rewards[pair][None], baseline=baseline
        )
    for one, other in zip(exact, torch.autograd.grad(expected, weights), strict=True):
        torch.testing.assert_close(one, other)


def test_the_input_has_columns_words_of_sql_and_the_question_in_this_order() -> None:
    words = join_input([["a", "b"], ["c"]], ["WHERE", "="], ["q"])
    assert words == ["<col>", "a", "b", "<col>", "c", "<sql>", "WHERE", "=", "<question>", "q"]


def test_a_baseline_needs_another_sample() -> None:
    with pytest.raises(ScoreError, match="at least 2 samples"):
        reinforce_loss(torch.zeros(1, 1), torch.zeros(1, 1))
