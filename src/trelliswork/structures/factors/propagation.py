"""Run loopy belief propagation: messages between factors and variables until they stop changing. Exact on trees.

Factors of one shape are computed together. All in plain torch; the messages are found without a graph, and the estimate
of log Z is then written as a function that does not change with the messages to first order, so that its gradient by
the scores is the beliefs (`math.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.factors.graph import Graph
from trelliswork.structures.factors.structure import Factors

Messages = list[list[Tensor]]  # for each group, for each place in the clique: (rows, factors, values)


class Group(NamedTuple):
    """Factors of one shape: their variables [factors, m], and where their tables lie in the score vector."""

    shape: tuple[int, ...]
    scopes: Tensor
    places: Tensor


@lru_cache(maxsize=64)
def groups_of(graph: Graph) -> tuple[Group, ...]:
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for factor, scope in enumerate(graph.scopes):
        by_shape.setdefault(graph.shape(scope), []).append(factor)
    groups = []
    for shape, members in by_shape.items():
        starts = torch.tensor([graph.offsets[factor] for factor in members])
        scopes = torch.tensor([graph.scopes[factor] for factor in members])
        groups.append(Group(shape, scopes, starts[:, None] + torch.arange(torch.Size(shape).numel())))
    return tuple(groups)


@dataclass(frozen=True)
class Propagated:
    """The messages where they came to rest, or were stopped."""

    beliefs: Float[Tensor, "rows n c"]  # log, unnormalised, -inf beyond a variable's size
    log_z: Float[Tensor, "rows"]  # of Bethe; for max-product 0
    converged: Bool[Tensor, "rows"]
    iterations: Int[Tensor, "rows"]


class _Pass:
    """One graph's messages in one semiring: sum-product, or max-product if `best`."""

    def __init__(self, parts: Factors, best: bool):
        graph, flat = parts.graph, parts.flat
        self.n, self.c, self.best = graph.n, graph.c, best
        self.groups = [Group(g.shape, g.scopes.to(flat.device), g.places.to(flat.device)) for g in groups_of(graph)]
        sizes = torch.tensor(graph.sizes, device=flat.device)
        own = flat[:, : self.n * self.c].reshape(-1, self.n, self.c)
        self.unary = torch.where(torch.arange(self.c, device=flat.device) < sizes[:, None], own, -INF)
        self.tables = [flat[:, g.places].reshape(len(flat), -1, *g.shape) for g in self.groups]

    def reduce(self, table: Tensor, axis: int) -> Tensor:
        """Reduce over all axes of a factor's table but one: (rows, factors, values)."""
        kept = table.movedim(2 + axis, 2).flatten(3) if table.dim() > 3 else table.unsqueeze(-1)
        return kept.amax(-1) if self.best else logsumexp(kept, -1)

    def first(self) -> Messages:
        rows = len(self.unary)
        return [[self.unary.new_zeros(rows, len(g.scopes), size) for size in g.shape] for g in self.groups]

    def totals(self, messages: Messages) -> tuple[Tensor, Tensor]:
        """Return Σ of the finite messages into each variable, and how many forbid each value.

        Its own scores are among them.
        """
        finite = torch.where(self.unary > -INF, self.unary, 0.0)
        forbidden = (self.unary == -INF).to(finite.dtype)
        for group, into in zip(self.groups, messages, strict=True):
            for place, message in enumerate(into):
                wide = torch.nn.functional.pad(message, (0, self.c - message.shape[-1]))
                closed = wide == -INF
                finite = finite.index_add(1, group.scopes[:, place], torch.where(closed, 0.0, wide))
                forbidden = forbidden.index_add(1, group.scopes[:, place], closed.to(finite.dtype))
        return finite, forbidden

    def outgoing(self, messages: Messages) -> Messages:
        """Send messages from variables to factors: all that comes in from elsewhere."""
        finite, forbidden = self.totals(messages)
        to_factors = []
        for group, into in zip(self.groups, messages, strict=True):
            out = []
            for place, message in enumerate(into):
                variables, size = group.scopes[:, place], message.shape[-1]
                closed = message == -INF
                others = finite[:, variables, :size] - torch.where(closed, 0.0, message)
                blocked = forbidden[:, variables, :size] - closed.to(finite.dtype) > 0
                out.append(normalised(torch.where(blocked, -INF, others)))
            to_factors.append(out)
        return to_factors

    def step(self, messages: Messages) -> Messages:
        """Send messages from factors to variables."""
        to_variables = []
        for table, out in zip(self.tables, self.outgoing(messages), strict=True):
            spread = [_along(message, place, len(out)) for place, message in enumerate(out)]
            new = []
            for place in range(len(out)):
                others = table
                for other, message in enumerate(spread):
                    others = others if other == place else others + message
                new.append(normalised(self.reduce(others, place)))
            to_variables.append(new)
        return to_variables

    def bethe(self, messages: Messages) -> Float[Tensor, "rows"]:
        """Return Σ_v log Σ_x exp(messages) + Σ_a log Σ exp(table + messages to it) - Σ log Σ_x exp(both on an edge).

        -inf where a variable or a factor has nothing left, as then nothing is possible.
        """
        finite, forbidden = (each.detach() for each in self.totals(messages))
        heard = finite - torch.where(self.unary > -INF, self.unary, 0.0).detach()
        closed = forbidden - (self.unary == -INF).to(finite.dtype) > 0
        terms = [logsumexp(torch.where(closed, -INF, self.unary + heard), -1)]
        edges = []
        pairs = zip(self.tables, messages, self.outgoing(messages), strict=True)
        for table, into, out in pairs:
            fixed = [message.detach() for message in out]
            spread = sum(_along(message, place, len(fixed)) for place, message in enumerate(fixed))
            terms.append(logsumexp((table + spread).flatten(2), -1))
            edges += [logsumexp(a + b, -1) for a, b in zip(into, fixed, strict=True)]
        given = torch.cat(terms, -1)
        possible = (given > -INF).all(-1, keepdim=True)
        total = torch.where(possible, given, 0.0).sum(-1)
        for edge in edges:
            total = total - torch.where(possible, edge, 0.0).sum(-1)
        return torch.where(possible.squeeze(-1), total, -INF)


def normalised(message: Tensor) -> Tensor:
    """Return the highest entry moved to 0."""
    top = message.amax(-1, keepdim=True)
    return message - torch.where(top > -INF, top, 0.0)


def _along(message: Float[Tensor, "rows factors values"], place: int, m: int) -> Tensor:
    """Return the message as an axis of the table of m variables."""
    shape = [1] * m
    shape[place] = message.shape[-1]
    return message.reshape(*message.shape[:2], *shape)


def _damp(old: Tensor, new: Tensor, damping: float) -> Tensor:
    mixed = damping * torch.where(old > -INF, old, 0.0) + (1 - damping) * new
    return torch.where((new > -INF) & (old > -INF), mixed, new)


def _change(old: Messages, new: Messages, rows: Tensor) -> Float[Tensor, "rows"]:
    """Return the largest difference of two messages, in each row."""
    largest = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    for before, after in zip(old, new, strict=True):
        for a, b in zip(before, after, strict=True):
            difference = torch.where(a == b, 0.0, (a - b).abs())
            largest = torch.maximum(largest, difference.flatten(1).amax(1))
    return largest


def propagate(parts: Factors, *, best: bool, damping: float, tolerance: float, max_iterations: int) -> Propagated:
    """Send messages until none changes by more than `tolerance`; rows that are at rest stay as they are.

    Args:
        parts: scores of the rows.
        best: whether the best assignment is looked for, instead of marginals.
        damping: share of the old message that stays, below 1.
        tolerance: the largest change of a message that counts as rest.
        max_iterations: when to give up.

    Returns:
        Beliefs, and which rows have come to rest.
    """
    with torch.no_grad():
        run = _Pass(parts, best)
        messages, rows = run.first(), parts.flat
        active = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        iterations = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        for _ in range(max_iterations if run.groups else 0):
            proposed = run.step(messages)
            moving = active[:, None, None]
            damped = [
                [torch.where(moving, _damp(a, b, damping), a) for a, b in zip(before, after, strict=True)]
                for before, after in zip(messages, proposed, strict=True)
            ]
            iterations += active
            # What counts is how far the messages are from those that they imply, whatever the damping.
            active = active & (_change(messages, proposed, rows) > tolerance)
            messages = damped
            if not bool(active.any()):
                break
        converged = ~active if run.groups else torch.ones_like(active)
        finite, forbidden = run.totals(messages)
        beliefs = torch.where(forbidden > 0, -INF, finite)
    log_z = beliefs.new_zeros(len(beliefs)) if best else _Pass(parts, best).bethe(messages)
    return Propagated(beliefs, log_z, converged, iterations)
