"""Parts of a network that writes queries to one table: scorers of aggregates and columns, a pointer for the condition.

Zhong, Xiong and Socher (2017), Seq2SQL: generating structured queries from natural language using reinforcement
learning; Vinyals, Fortunato and Jaitly (2015), Pointer networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int


def join_input(columns: Sequence[Sequence[str]], keywords: Sequence[str], question: Sequence[str]) -> list[str]:
    """Join all words that a query can consist of: names of columns, words of SQL and the question, with separators.

    Args:
        columns: Words of the name of each column.
        keywords: Words of SQL.
        question: Words of the question.

    >>> join_input([["state", "name"], ["area"]], ["SELECT"], ["how", "large"])
    ['<col>', 'state', 'name', '<col>', 'area', '<sql>', 'SELECT', '<question>', 'how', 'large']
    """
    named = [word for column in columns for word in ("<col>", *column)]
    return [*named, "<sql>", *keywords, "<question>", *question]  # [S4.247]


class PointerScorer(nn.Module):
    """Scores w · tanh(U g + V h) of how well each position h of the input fits a state g.

    Args:
        state_dim: Width of the states.
        input_dim: Width of the encoded positions.
        dim: Units of the hidden layer.

    >>> PointerScorer(8, 6, 4)(torch.zeros(2, 3, 8), torch.zeros(2, 5, 6)).shape
    torch.Size([2, 3, 5])
    """

    def __init__(self, state_dim: int, input_dim: int, dim: int) -> None:
        super().__init__()
        self.states = nn.Linear(state_dim, dim, bias=False)  # U
        self.inputs = nn.Linear(input_dim, dim, bias=False)  # V
        self.direction = nn.Linear(dim, 1, bias=False)  # w

    def forward(
        self, states: Float[Tensor, "batch m g"], inputs: Float[Tensor, "batch n h"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch m n"]:
        """Return the scores, -inf where `mask` is False.

        Args:
            states: States, [batch, m, g].
            inputs: Encoded positions, [batch, n, h].
            mask: True at the positions that may be pointed at, [batch, n].
        """
        inner = self.states(states)[:, :, None] + self.inputs(inputs)[:, None]
        scores = self.direction(inner.tanh()).squeeze(-1)  # [S4.248]
        return scores if mask is None else scores.masked_fill(~mask[:, None], -INF)


class Summary(nn.Module):
    """One vector for a whole input: the mean of its positions, weighted by softmax(w · h)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.direction = nn.Linear(dim, 1, bias=False)

    def forward(self, encoded: Float[Tensor, "batch n h"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch h"]:
        scores = self.direction(encoded).squeeze(-1).masked_fill(~mask, -INF)  # [S4.249]
        weights = scores.softmax(-1)  # [S4.250]
        return torch.einsum("bn,bnh->bh", weights, encoded)  # [S4.251]


class AggregateScorer(nn.Module):
    """Scores of the aggregates of a query (none, count, min, max, ...): W tanh(V κ + b) + c.

    W has a row for each aggregate and a column for each hidden unit.

    Args:
        dim: Width of the encoded positions.
        n_aggregates: Number of aggregates.
        hidden: Units of the hidden layer.

    >>> AggregateScorer(6, n_aggregates=5, hidden=8)(torch.zeros(2, 7, 6), torch.ones(2, 7, dtype=torch.bool)).shape
    torch.Size([2, 5])
    """

    def __init__(self, dim: int, n_aggregates: int, hidden: int) -> None:
        super().__init__()
        self.summary = Summary(dim)
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, n_aggregates))

    def forward(
        self, encoded: Float[Tensor, "batch n h"], mask: Bool[Tensor, "batch n"]
    ) -> Float[Tensor, "batch aggregates"]:
        """Return the scores, unnormalised log probabilities."""
        scores: Tensor = self.layers(self.summary(encoded, mask))  # [S4.252-253]
        return scores


class ColumnScorer(nn.Module):
    """Scores of the columns of a table: W tanh(V κ + V_c e_j), where e_j is the last state of an LSTM over the name.

    Args:
        dim: Width of the encoded positions.
        word_dim: Width of the vectors of the words in names.
        hidden: Units of the LSTM and of the hidden layer.

    >>> scorer = ColumnScorer(6, word_dim=4, hidden=8)
    >>> names = scorer.encode_names(torch.zeros(3, 2, 4), torch.tensor([2, 1, 1]))  # 3 columns
    >>> scorer(torch.zeros(1, 7, 6), torch.ones(1, 7, dtype=torch.bool), names).shape
    torch.Size([1, 3])
    """

    def __init__(self, dim: int, word_dim: int, hidden: int) -> None:
        super().__init__()
        self.summary = Summary(dim)
        self.names = nn.LSTM(word_dim, hidden, batch_first=True)
        self.questions = nn.Linear(dim, hidden, bias=False)  # V
        self.columns = nn.Linear(hidden, hidden, bias=False)  # V_c
        self.direction = nn.Linear(hidden, 1, bias=False)  # W

    def encode_names(
        self, words: Float[Tensor, "columns t e"], lengths: Int[Tensor, " columns"]
    ) -> Float[Tensor, "columns h"]:
        """Return e_j, the state after the last word of each name."""
        if bool((lengths < 1).any()):
            raise ScoreError("every column needs a name of at least one word; got an empty name")
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return self.names(packed)[1][0][0]  # [S4.254]

    def forward(
        self, encoded: Float[Tensor, "batch n h"], mask: Bool[Tensor, "batch n"], names: Float[Tensor, "columns h"]
    ) -> Float[Tensor, "batch columns"]:
        """Return the scores of columns with these encoded names, unnormalised log probabilities.

        Args:
            encoded: Encoded question, [batch, n, h].
            mask: True at its words, [batch, n].
            names: Encoded names of columns, [columns, h].
        """
        question = self.questions(self.summary(encoded, mask))[:, None]
        return self.direction((question + self.columns(names)).tanh()).squeeze(-1)  # [S4.255-256]


class PointerSequence(NamedTuple):
    """Pointers, sampled or given, and their log probabilities."""

    pointers: Int[Tensor, "batch steps"]
    log_probs: Float[Tensor, "batch steps"]


class ConditionDecoder(nn.Module):
    """Decoder that writes a condition by pointing at positions of the input, one after the other.

    The input holds all words that a condition can consist of (see `join_input`); pointing at position 0 ends it.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(dim))
        self.cell = nn.LSTMCell(dim, hidden)
        self.pointer = PointerScorer(hidden, dim, hidden)

    def forward(
        self,
        encoded: Float[Tensor, "batch n h"],
        mask: Bool[Tensor, "batch n"],
        pointers: Int[Tensor, "batch steps"] | None = None,
        *,
        n_steps: int = 1,
        generator: torch.Generator | None = None,
    ) -> PointerSequence:
        """Score given pointers (teacher forcing), or sample pointers, each of which is read at the next step.

        Args:
            encoded: Vectors of the input positions.
            mask: True at positions that may be pointed at.
            pointers: Pointers to score; sampled if None.
            n_steps: Number of pointers to sample.
            generator: Source of the random numbers.

        Returns:
            Pointers and log probabilities; after the end, both are 0.
        """
        batch, steps = len(encoded), n_steps if pointers is None else pointers.shape[1]
        rows = torch.arange(batch, device=encoded.device)
        read, state = self.start.expand(batch, -1), None
        done = torch.zeros(batch, dtype=torch.bool, device=encoded.device)
        chosen, log_probs_of_chosen = [], []
        for step in range(steps):
            state = self.cell(read, state)
            log_probs = self.pointer(state[0][:, None], encoded, mask)[:, 0].log_softmax(-1)
            drawn = torch.multinomial(log_probs.detach().exp(), 1, generator=generator)[:, 0]
            now = drawn if pointers is None else pointers[:, step]
            now = now.masked_fill(done, 0)
            log_probs_of_chosen.append(log_probs[rows, now].masked_fill(done, 0.0))
            chosen.append(now)
            done = done | (now == 0)
            read = encoded[rows, now]
        return PointerSequence(torch.stack(chosen, 1), torch.stack(log_probs_of_chosen, 1))


WRONG_QUERY, WRONG_ANSWER, RIGHT_ANSWER = -2.0, -1.0, 1.0


def execution_reward(answer: object | None, right: object) -> float:
    """Return the reward of a query: -2 if it does not run (None), -1 for a wrong answer, 1 for the right one.

    >>> execution_reward(None, 3), execution_reward(2, 3), execution_reward(3, 3)
    (-2.0, -1.0, 1.0)
    """
    if answer is None:
        return WRONG_QUERY
    return RIGHT_ANSWER if answer == right else WRONG_ANSWER  # [S4.257]


def reinforce_loss(
    log_probs: Float[Tensor, "batch samples"], rewards: Float[Tensor, "batch samples"], *, baseline: bool = True
) -> Float[Tensor, ""]:
    """Return a loss whose gradient estimates that of the negative expected reward (REINFORCE).

    Args:
        log_probs: Log probability of each whole sample.
        rewards: Reward of each sample.
        baseline: Subtract from each reward the mean reward of the other samples of its row, which leaves the expected
            gradient the same and reduces its variance.

    >>> log_probs = torch.tensor([[-1.0, -2.0]])
    >>> reinforce_loss(log_probs, torch.tensor([[1.0, 0.0]]))  # -(1 · -1 - 1 · -2) / 2
    tensor(-0.5000)

    Williams (1992), Simple statistical gradient-following algorithms for connectionist reinforcement learning; Kool,
    van Hoof and Welling (2019), Buy 4 REINFORCE samples, get a baseline for free!
    """
    n = rewards.shape[1]
    if baseline and n < 2:
        raise ScoreError(f"a baseline needs at least 2 samples of each input; got {n}; draw more or set baseline=False")
    others = (rewards.sum(1, keepdim=True) - rewards) / max(1, n - 1) if baseline else 0.0
    return -((rewards - others).detach() * log_probs).sum() / n  # [S4.258-261]
