"""Factor graphs: exact inference along a junction tree in plain torch, for any semiring.

    score(y) = Σ_v unary[v, y_v] + Σ_a ψ_a(y_a),   p(y) = exp(score(y)) / Z

This is the reference: any device, differentiable as often as you like. `kernels.py` computes the same along the same
tree. Equations and complexity are in `math.md` next to this file.
"""  # [S4.65-66, 76]

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Array, Bool, Float, Int
from trelliswork.semirings import Log, Max, Semiring
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.factors.elimination import Bucket, JunctionTree
from trelliswork.structures.factors.graph import Graph

ChooseValue = Callable[[Tensor], Tensor]  # of one value, from scores [..., values]


@dataclass(frozen=True)
class Factors:
    """The scores of a batch of graphs of one shape, each row a vector as `graph.py` describes: log ψ."""  # [S4.65]

    graph: Graph
    flat: Float[Tensor, "rows scores"]

    @property
    def scores(self) -> Float[Tensor, "rows scores"]:
        return self.flat

    @property
    def part_scores(self) -> Float[Tensor, "rows scores"]:
        return self.flat

    def with_scores(self, flat: Tensor) -> Factors:
        return replace(self, flat=flat)

    def detached(self) -> Factors:
        """The same scores as a leaf to differentiate by."""
        return self.with_scores(self.flat.detach().clone().requires_grad_())


@dataclass(frozen=True)
class Collected:
    """Results of a pass towards the roots: each bucket's table and its message, the table's ⊕ over the
    eliminated variable; and the total."""

    tables: list[Tensor]  # each (..., rows, separator, values)
    messages: list[Tensor]  # each (..., rows, separator)
    total: Tensor  # (..., rows)


def _at(index: Array, like: Tensor) -> Tensor:
    return torch.from_numpy(index).to(like.device)


def _local_scores(parts: Factors, bucket: Bucket) -> Float[Tensor, "rows separator values"]:
    """The scores that a bucket reads, added up over its table."""
    table = sum(parts.flat.index_select(-1, _at(index, parts.flat)) for index in bucket.reads)
    assert isinstance(table, Tensor)
    return table.reshape(-1, bucket.n_separator, bucket.n_values)


def collect(parts: Factors, tree: JunctionTree, semiring: Semiring) -> Collected:
    """Send messages from the leaves to the roots. The total is ⊕ over all assignments of ⊗ of their scores.

    table_b = ⊗ scores of b ⊗ messages of the buckets below b;   message_b = ⊕ over the eliminated variable

    Args:
        parts: scores of the rows.
        tree: the junction tree of their graph.
        semiring: the semiring of ⊕ and ⊗.

    Returns:
        The total of each row, and the messages.
    """  # [S4.66]
    tables: list[Tensor] = []
    messages: list[Tensor] = []
    total = semiring.one((len(parts.flat),), parts.flat)
    for bucket in tree.buckets:
        table = semiring.lift(_local_scores(parts, bucket))
        for child, index in bucket.children:
            incoming = messages[child].index_select(-1, _at(index, parts.flat))
            table = semiring.times(table, incoming.reshape(*incoming.shape[:-1], *table.shape[-2:]))
        tables.append(table)
        messages.append(semiring.sum(table, dim=-1))
    for root in tree.roots:
        total = semiring.times(total, messages[root].squeeze(-1))
    return Collected(tables, messages, total)


def total(parts: Factors, tree: JunctionTree, semiring: Semiring) -> Tensor:
    """Return ⊕ over all assignments of ⊗ of their scores: log Z.

    Args:
        parts: scores of the rows.
        tree: the junction tree of their graph.
        semiring: the semiring of ⊕ and ⊗.

    Returns:
        One value of the semiring for each row.
    """
    return collect(parts, tree, semiring).total


def log_partition(parts: Factors, tree: JunctionTree) -> Float[Tensor, "rows"]:
    """log Z."""  # [S4.66]
    return total(parts, tree, Log())


def path_score(parts: Factors, values: Int[Tensor, "rows n"]) -> Float[Tensor, "rows"]:
    """Σ_v unary + Σ_a ψ_a(y_a); scores are gathered, so that -inf stays -inf."""  # [S4.77]
    return parts.flat.gather(-1, score_places(parts.graph, values)).sum(-1)


def score_places(graph: Graph, values: Int[Tensor, "rows n"]) -> Int[Tensor, "rows parts"]:
    """Return the places of the scores of an assignment's parts: one for each variable and each factor."""
    places = [values + torch.arange(graph.n, device=values.device) * graph.c]
    for scope, offset in zip(graph.scopes, graph.offsets, strict=False):
        strides = torch.tensor(graph.strides(scope), device=values.device)
        places.append((values[:, list(scope)] * strides).sum(-1, keepdim=True) + offset)
    return torch.cat(places, -1)


def log_prob(parts: Factors, tree: JunctionTree, values: Int[Tensor, "rows n"]) -> Float[Tensor, "rows"]:
    """Return log p(y), at most 0: rounding must not pass certainty.

    Args:
        parts: scores of the rows.
        tree: the junction tree of their graph.
        values: value of each variable.

    Returns:
        One log probability for each row.
    """  # [S4.65]
    return log_ratio(path_score(parts, values), log_partition(parts, tree))


def marginals(parts: Factors, tree: JunctionTree) -> Float[Tensor, "rows scores"]:
    """p(y_v = x) and p(y_a) for every factor, laid out like the scores; 0 where Z = 0. The gradient of log Z.

    From the roots to the leaves, p(clique) = p(separator) p(variable | separator): the last is the clique's table over
    its message, so that nothing is ever divided by a probability that may be 0.
    """
    collected = collect(parts, tree, Log())
    possible = (collected.total > -INF).to(parts.flat.dtype)[:, None]
    separators = [torch.zeros_like(message) for message in collected.messages]
    result = torch.zeros_like(parts.flat)
    for step in reversed(range(len(tree.buckets))):
        bucket, message = tree.buckets[step], collected.messages[step]
        above = separators[step] if bucket.separator else possible
        reachable = message > -INF
        shift = torch.where(reachable, message, 0.0)[..., None]
        conditional = torch.where(reachable[..., None], collected.tables[step] - shift, -INF).exp()
        joint = (above[..., None] * conditional).flatten(1)
        for index in bucket.reads:
            result = result.index_add(-1, _at(index, joint), joint)
        for child, index in bucket.children:
            separators[child] = separators[child].index_add(-1, _at(index, joint), joint)
    return result


def _descend(
    collected: Collected, tree: JunctionTree, choose: ChooseValue, lead: tuple[int, ...]
) -> Int[Tensor, "*lead rows n"]:
    """Values from the roots to the leaves: each bucket's variable is chosen given the separator's values."""
    rows = collected.total.shape[-1]
    values = torch.zeros(*lead, rows, tree.graph.n, dtype=torch.long, device=collected.total.device)
    row = torch.arange(rows, device=values.device).expand(*lead, rows)
    for step in reversed(range(len(tree.buckets))):
        bucket = tree.buckets[step]
        strides = torch.tensor(tree.graph.strides(bucket.separator), dtype=torch.long, device=values.device)
        entry = (values[..., list(bucket.separator)] * strides).sum(-1)
        values[..., bucket.variable] = choose(collected.tables[step][row, entry])
    return values


def best(parts: Factors, tree: JunctionTree) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
    """A best assignment and its score, by (max, +); among ties the lowest value, from the roots down."""
    collected = collect(parts.with_scores(parts.flat.detach()), tree, Max())
    return _descend(collected, tree, lambda scores: scores.argmax(-1), ()), collected.total > -INF


def sample(
    parts: Factors, tree: JunctionTree, n_samples: int, generator: torch.Generator | None = None
) -> Int[Tensor, "samples rows n"]:
    """Draw exact independent samples: variables are drawn from the roots down, given their separators.

    Args:
        parts: scores of the rows.
        tree: the junction tree of their graph.
        n_samples: how many to draw for each row.
        generator: source of random numbers; None for torch's own.

    Returns:
        Values of the variables.
    """
    collected = collect(parts.with_scores(parts.flat.detach()), tree, Log())

    def draw(scores: Tensor) -> Tensor:
        uniform = torch.rand(scores.shape, generator=generator, dtype=scores.dtype, device=scores.device)
        gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(scores.dtype).tiny)))
        return (scores + gumbel).argmax(-1)

    return _descend(collected, tree, draw, (n_samples,))


def decode(marks: Float[Tensor, "rows scores"], parts: Factors) -> Int[Tensor, "rows n"]:
    """The value of each variable that is marked."""
    n, c = parts.graph.n, parts.graph.c
    return marks[:, : n * c].reshape(-1, n, c).argmax(-1)
