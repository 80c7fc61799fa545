"""The best label of each arc, found only where the best tree may depend on it.

The log probability of a label is at most 0, so the score of an arc without its label is a bound of the score with it.
The tree that is best by these bounds tells which labels to look at; with them it is found again, and so on. A tree
whose labels have all been looked at is the best of all: every other one scores at most its bound. A trained parser
needs the labels of little more than one head for each word, instead of all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trelliswork.nn.scorers.biaffine import BiaffineScorer
from trelliswork.runtime.shapes import Bool, Float, Int

ROUNDS = 4  # of looking at the labels of the best tree; then all labels of the sentence are looked at
CHUNK = 1 << 20  # scores of labels in memory at a time

Search = Callable[["Int[Tensor, 'rows']"], "Int[Tensor, 'rows n']"]


class BestLabels:
    """The best label of each arc of a batch, and its log probability: 0, which is not exceeded, until it is found."""

    def __init__(self, scorer: BiaffineScorer, nodes: Float[Tensor, "batch n+1 d"], temperature: Tensor):
        self._scorer = scorer
        self._heads, self._dependents = scorer.as_heads(nodes) / temperature, scorer.as_dependents(nodes)
        shape = (nodes.shape[0], nodes.shape[1], nodes.shape[1])
        self.log_shares: Float[Tensor, "batch n+1 n+1"] = nodes.new_zeros(shape)
        self.labels: Int[Tensor, "batch n+1 n+1"] = torch.zeros(shape, dtype=torch.int32, device=nodes.device)
        self._is_known: Bool[Tensor, "batch n+1 n+1"] = torch.zeros(shape, dtype=torch.bool, device=nodes.device)

    def fix(self, row: int, word: int, label: int) -> Float[Tensor, "n+1"]:
        """Give all arcs into a word, counted from 0, this label; its log probability under each head."""
        at = (row, slice(None), word + 1)
        self.log_shares[at], self.labels[at], self._is_known[at] = 0.0, label, True
        dependents = self._dependents[row, word + 1].expand_as(self._heads[row])
        return self._scorer.labels_of_pairs(self._heads[row], dependents).log_softmax(-1)[:, label]

    def look(self, rows: Int[Tensor, "rows"], heads: Int[Tensor, "rows n"], mask: Bool[Tensor, "rows n"]) -> Tensor:
        """Find the labels of these arcs; whether any was new, for each row."""
        words = torch.arange(1, heads.shape[1] + 1, device=heads.device)
        new = mask & ~self._is_known[rows[:, None], heads, words]
        at = rows[:, None].expand_as(heads)[new], heads[new], words.expand_as(heads)[new]
        if len(at[0]):
            scores = self._scorer.labels_of_pairs(self._heads[at[0], at[1]], self._dependents[at[0], at[2]])
            self.log_shares[at], labels = _best(scores)
            self.labels[at], self._is_known[at] = labels.int(), True
        return new.any(1)

    def look_everywhere(self, row: int) -> None:
        """Find the labels of all arcs of a sentence, those of some dependents at a time."""
        size, n_labels = self._heads.shape[1], self._scorer.num_labels
        step = max(1, CHUNK // (n_labels * max(size, self._heads.shape[2])))
        for first in range(0, size, step):
            some = slice(first, first + step)
            scores = self._scorer.labels_between(self._heads[row, None], self._dependents[row, None, some])[0]
            log_shares, labels = _best(scores)
            known = self._is_known[row, :, some]
            self.log_shares[row, :, some] = torch.where(known, self.log_shares[row, :, some], log_shares)
            self.labels[row, :, some] = torch.where(known, self.labels[row, :, some], labels.int())
        self._is_known[row] = True

    def best_heads(self, search: Search, mask: Bool[Tensor, "batch n"]) -> Int[Tensor, "batch n"]:
        """Return the heads of the best trees; `search` finds those of some rows by the labels that are known so far."""
        rows = torch.arange(len(mask), device=mask.device)
        heads = search(rows)
        for _ in range(ROUNDS):
            rows = rows[self.look(rows, heads[rows], mask[rows])]
            if not len(rows):
                return heads
            heads[rows] = search(rows)
        for row in rows.tolist():
            self.look_everywhere(row)
        heads[rows] = search(rows)
        return heads

    def at(self, heads: Int[Tensor, "batch n"]) -> tuple[Int[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Return the labels of these arcs, which have been looked at, and their log probabilities."""
        rows, words = (
            torch.arange(len(heads), device=heads.device),
            torch.arange(1, heads.shape[1] + 1, device=heads.device),
        )
        at = rows[:, None], heads, words
        return self.labels[at], self.log_shares[at]


def _best(scores: Float[Tensor, "*arcs l"]) -> tuple[Float[Tensor, "*arcs"], Int[Tensor, "*arcs"]]:
    """Return the log probability of the best label of each arc, and which it is."""
    best, labels = scores.max(-1)
    return best - scores.logsumexp(-1), labels
