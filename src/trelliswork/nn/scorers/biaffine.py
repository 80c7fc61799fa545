"""Biaffine scores of arcs and their labels, in which each word has a vector as a head and one as a dependent.

W_y v of all pairs at once is a tensor of [pairs, labels, d]; writing and reading it, and its gradient, takes longer
than the products themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.runtime.autograd import fused


class BiaffineScorer(nn.Module):
    """Scores arcs[h, m] = u_h · W v_m + b · u_h, with u = ReLU(U x + ..) of heads and v = ReLU(V x + ..) of dependents.

    The x of the root is a parameter, so that scores are [batch, n+1, n+1], as `DependencyCRF` takes them. Labels have
    the scores labels[h, m, y] = u'_h · W_y v'_m + a_y · u'_h + b_y · v'_m + c_y.

    Args:
        dim: Width of the vectors x of words.
        num_labels: Number of labels; 0 scores arcs only.
        arc_dim: Width of u and v.
        label_dim: Width of u' and v'.
        dropout: Share of dimensions of these vectors that are dropped, the same for all words of a sentence.
        initialization: See `initialize_fan_in`.

    Dozat and Manning (2017), Deep biaffine attention for neural dependency parsing.

    >>> arcs, labels = BiaffineScorer(200, num_labels=30)(torch.zeros(2, 7, 200))
    >>> arcs.shape, labels.shape
    (torch.Size([2, 8, 8]), torch.Size([2, 8, 8, 30]))
    """

    def __init__(
        self,
        dim: int,
        num_labels: int = 0,
        *,
        arc_dim: int = 128,
        label_dim: int = 64,
        dropout: float = 0.0,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        if min(dim, arc_dim, label_dim) < 1 or num_labels < 0:
            raise ScoreError(f"sizes must be positive; got dim {dim}, arc_dim {arc_dim}, label_dim {label_dim}")
        self.num_labels = num_labels
        self.root = nn.Parameter(torch.zeros(dim))
        self.dropout = VariationalDropout(dropout)
        self.arc_head, self.arc_dependent = nn.Linear(dim, arc_dim), nn.Linear(dim, arc_dim)
        self.arc_bilinear = nn.Linear(arc_dim, arc_dim)  # W v + b: its bias is that of heads
        if num_labels:
            self.label_head, self.label_dependent = nn.Linear(dim, label_dim), nn.Linear(dim, label_dim)
            self.label_bilinear = nn.Linear(label_dim + 1, num_labels * (label_dim + 1), bias=False)
        initialize_fan_in(self, initialization)

    def forward(self, encoded: Float[Tensor, "batch n d"]) -> Tensor | tuple[Tensor, Tensor]:
        """Return scores of arcs [batch, n+1, n+1], and of labels [batch, n+1, n+1, l] if there are any."""
        nodes = self.nodes(encoded)
        arcs = self.arcs(nodes)
        return arcs if not self.num_labels else (arcs, self.labels(nodes, nodes))

    def nodes(self, encoded: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n+1 d"]:
        """Put the vector of the root in front of those of the words."""
        return torch.cat([self.root.expand(len(encoded), 1, -1), encoded], 1)

    def arcs(self, nodes: Float[Tensor, "batch n+1 d"]) -> Float[Tensor, "batch n+1 n+1"]:
        """Return the scores of all arcs, [head, dependent]."""
        heads = self.dropout(self.arc_head(nodes).relu())
        dependents = self.dropout(self.arc_dependent(nodes).relu())
        return heads @ self.arc_bilinear(dependents).transpose(1, 2)

    def labels(
        self, heads: Float[Tensor, "batch h d"], dependents: Float[Tensor, "batch m d"]
    ) -> Float[Tensor, "batch h m l"]:
        """Return the scores of the labels of all arcs from h nodes to m others."""
        return self.labels_between(self.as_heads(heads), self.as_dependents(dependents))

    def labels_at(
        self, nodes: Float[Tensor, "batch n+1 d"], heads: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n l"]:
        """Return the scores of the labels of the arc from `heads` to each word."""
        candidates, dependents = self.as_heads(nodes), self.as_dependents(nodes[:, 1:])
        chosen = candidates.gather(1, heads[..., None].expand(-1, -1, candidates.shape[-1]))
        return self.labels_of_pairs(chosen.flatten(0, 1), dependents.flatten(0, 1)).unflatten(0, heads.shape)

    # The same in two steps: vectors of nodes, then scores of arcs between them

    def as_heads(self, nodes: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """Return the vectors u' of nodes as heads of labelled arcs."""
        return _append_one(self.dropout(self.label_head(nodes).relu()))

    def as_dependents(self, nodes: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """Return the vectors v' of nodes as dependents of labelled arcs."""
        return _append_one(self.dropout(self.label_dependent(nodes).relu()))

    def labels_between(
        self, heads: Float[Tensor, "batch h k"], dependents: Float[Tensor, "batch m k"]
    ) -> Float[Tensor, "batch h m l"]:
        """Return the scores of the labels of all arcs from heads to dependents."""
        products = self.label_bilinear(dependents).unflatten(-1, (self.num_labels, -1))  # W_y v' for each y
        return torch.einsum("bhd,bmyd->bhmy", heads, products)

    def labels_of_pairs(
        self, heads: Float[Tensor, "pairs k"], dependents: Float[Tensor, "pairs k"]
    ) -> Float[Tensor, "pairs l"]:
        """Return the scores of the labels of one arc for each pair."""
        return pair_scores(heads, dependents, self.label_bilinear.weight)


def _append_one(vectors: Tensor) -> Tensor:
    """Append a 1 to each vector, so that a bilinear product of two has linear terms as well."""
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1)


# Bilinear scores of pairs of vectors, some pairs at a time, so that products stay in the processor's cache.

PAIRS = 256  # pairs at a time


def pair_scores(
    left: Float[Tensor, "pairs d"], right: Float[Tensor, "pairs d"], weight: Float[Tensor, "labels*d d"]
) -> Float[Tensor, "pairs labels"]:
    """Return left · W_y right for each pair and label y, where W_y is the rows [y d, (y + 1) d) of `weight`.

    Args:
        left: First vector of each pair, [pairs, d].
        right: Second vector of each pair, [pairs, d].
        weight: W of all labels, [labels * d, d].

    Returns:
        Scores, [pairs, labels].

    >>> pair_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.eye(2)).tolist()
    [[11.0]]
    """
    kinds = {(tensor.device.type, tensor.dtype) for tensor in (left, right, weight)}
    if len(kinds) > 1 or torch.is_autocast_enabled(left.device.type):
        return plain_pair_scores(left, right, weight)
    scores: Tensor = fused(PairScores(), left, right, weight)
    return scores


def plain_pair_scores(left: Tensor, right: Tensor, weight: Tensor) -> Float[Tensor, "pairs labels"]:
    """Compute `pair_scores` with plain torch operations.

    Args:
        left: First vector of each pair, [pairs, d].
        right: Second vector of each pair, [pairs, d].
        weight: W of all labels, [labels * d, d].

    Returns:
        Scores, [pairs, labels].
    """
    return torch.einsum("pd,pyd->py", left, (right @ weight.T).unflatten(-1, (-1, left.shape[-1])))


class PairScores:
    """`pair_scores` as one step of autograd; the gradient recomputes the products W_y v instead of keeping them."""

    reference = staticmethod(plain_pair_scores)

    def forward(
        self, left: Tensor, right: Tensor, weight: Tensor
    ) -> tuple[Float[Tensor, "pairs labels"], tuple[Tensor, ...]]:
        """Compute the scores of the labels of each pair.

        Args:
            left: Vectors of heads.
            right: Vectors of dependents.
            weight: One matrix for each label.

        Returns:
            Scores [pairs, labels]; `backward` needs nothing else.
        """
        scores = left.new_empty(len(left), weight.shape[0] // weight.shape[1])
        for u, v, block in zip(left.split(PAIRS), right.split(PAIRS), scores.split(PAIRS), strict=True):
            torch.bmm(_products(v, weight), u[:, :, None], out=block[:, :, None])
        return scores, ()

    def backward(
        self, tensors: tuple[Tensor, Tensor, Tensor], kept: tuple[()], grads: tuple[Float[Tensor, "pairs labels"]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Left, right, weight, as `forward` was given them.
            kept: nothing.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        left, right, weight = tensors
        by_left, by_right, by_weight = torch.empty_like(left), torch.empty_like(right), torch.zeros_like(weight)
        blocks = (tensor.split(PAIRS) for tensor in (left, right, grads[0], by_left, by_right))
        for u, v, g, by_u, by_v in zip(*blocks, strict=True):
            products = _products(v, weight)
            torch.bmm(g[:, None], products, out=by_u[:, None])
            by_products = torch.mul(g[:, :, None], u[:, None], out=products).flatten(1)
            torch.mm(by_products, weight, out=by_v)
            by_weight.addmm_(by_products.T, v)
        return by_left, by_right, by_weight


def _products(right: Float[Tensor, "pairs d"], weight: Tensor) -> Float[Tensor, "pairs labels d"]:
    """Return W_y v for each y."""
    return (right @ weight.T).unflatten(1, (-1, right.shape[1]))


# The best label of each arc, found only where the best tree may depend on it.


ROUNDS = 4  # of looking at the labels of the best tree; then all labels of the sentence are looked at
CHUNK = 1 << 20  # scores of labels in memory at a time

Search = Callable[["Int[Tensor, 'rows']"], "Int[Tensor, 'rows n']"]


class BestLabels:
    """The best label of each arc of a batch, and its log probability: 0, which is not exceeded, until it is found.

    The log probability of a label is at most 0, so the score of an arc without its label is a bound of the score with
    it. The tree that is best by these bounds tells which labels to look at; with them it is found again, and so on. A
    tree whose labels have all been looked at is the best of all: every other one scores at most its bound. A trained
    parser needs the labels of little more than one head for each word, instead of all of them.

    Args:
        scorer: Scorer of arcs and labels.
        nodes: Vectors of the root and the words, [batch, n + 1, d].
        temperature: Divisor of the scores of labels.
    """

    def __init__(self, scorer: BiaffineScorer, nodes: Float[Tensor, "batch n+1 d"], temperature: Tensor):
        self._scorer = scorer
        self._heads, self._dependents = scorer.as_heads(nodes) / temperature, scorer.as_dependents(nodes)
        shape = (nodes.shape[0], nodes.shape[1], nodes.shape[1])
        self.log_shares: Float[Tensor, "batch n+1 n+1"] = nodes.new_zeros(shape)
        self.labels: Int[Tensor, "batch n+1 n+1"] = torch.zeros(shape, dtype=torch.int32, device=nodes.device)
        self._is_known: Bool[Tensor, "batch n+1 n+1"] = torch.zeros(shape, dtype=torch.bool, device=nodes.device)

    def fix(self, row: int, word: int, label: int) -> Float[Tensor, "n+1"]:
        """Give all arcs into a word, counted from 0, this label; its log probability under each head.

        Args:
            row: Row of the batch.
            word: Word whose head is known to have this label, counted from 0.
            label: The label.

        Returns:
            One number for each possible head, the root first.
        """
        at = (row, slice(None), word + 1)
        self.log_shares[at], self.labels[at], self._is_known[at] = 0.0, label, True
        dependents = self._dependents[row, word + 1].expand_as(self._heads[row])
        return self._scorer.labels_of_pairs(self._heads[row], dependents).log_softmax(-1)[:, label]

    def look(self, rows: Int[Tensor, "rows"], heads: Int[Tensor, "rows n"], mask: Bool[Tensor, "rows n"]) -> Tensor:
        """Find the labels of these arcs; whether any was new, for each row.

        Args:
            rows: Sentences that are looked at, [rows].
            heads: Heads of their words, [rows, n].
            mask: True at their words, [rows, n].

        Returns:
            True for each row with a new label, [rows].
        """
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
