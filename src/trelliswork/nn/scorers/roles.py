"""Scores of the roles that entities play in events: each candidate is a trigger and an entity of a sentence."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.pooling import dynamic_multi_pooling
from trelliswork.nn.scorers.event_memory import OTHER, EventMemory, Memory, Read
from trelliswork.runtime.shapes import Bool, Float, Int


class RoleScorer(nn.Module):
    """Scores of the roles of an entity in an event.

    x_i puts together the vector of token i, its distances to trigger and entity, the type of the event, and the vectors
    of entity and trigger. After a layer of `hidden` units the greatest values in the three parts of the
    sentence that trigger and entity make are pooled and mapped to roles: O = W y + b.

        >>> scorer, at = RoleScorer(20, n_types=3, n_roles=5), torch.tensor([2])
        >>> scorer(torch.zeros(1, 7, 20), None, row=at * 0, trigger=at, entity=at + 3, event=at * 0).shape
        torch.Size([1, 5])

    Chen et al. (2015), Event extraction via dynamic multi-pooling convolutional neural networks.
    """

    # [S4.238; S4.239-242; S4.243]

    def __init__(
        self, dim: int, n_types: int, n_roles: int, *, hidden: int = 100, max_distance: int = 15, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.distances, self.types = nn.Embedding(2 * max_distance + 1, 8), nn.Embedding(n_types, 8)
        self.mix = nn.Linear(3 * dim + 3 * 8, hidden)
        self.output = nn.Linear(3 * hidden, n_roles)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        tokens: Float[Tensor, "batch n d"],
        mask: Bool[Tensor, "batch n"] | None,
        *,
        row: Int[Tensor, " m"],
        trigger: Int[Tensor, " m"],
        entity: Int[Tensor, " m"],
        event: Int[Tensor, " m"],
    ) -> Float[Tensor, "m roles"]:
        """For each of m candidates: the sentence it is in, the tokens of trigger and entity, the type of the event."""
        own, place = tokens[row], torch.arange(tokens.shape[1], device=tokens.device)
        parts = [own]
        for at in (trigger, entity):
            distance = (place - at[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
            parts += [self.distances(distance), tokens[row, at].unsqueeze(1).expand_as(own)]
        parts.append(self.types(event).unsqueeze(1).expand(-1, len(place), -1))
        mixed = torch.tanh(self.mix(torch.cat(parts, -1)))
        first, last = torch.minimum(trigger, entity), torch.maximum(trigger, entity)
        pooled = dynamic_multi_pooling(mixed, first, last, None if mask is None else mask[row])
        return self.output(self.dropout(pooled))


# The most probable events that a beam finds with `EventMemory`, one row at a time.

INF = float("inf")


class Hypotheses(NamedTuple):
    """What was decided in each of h ways, the best first: types, roles, ln p, and the memories."""

    types: Int[Tensor, "h n"]
    roles: Int[Tensor, "h n k"]
    log_probs: Float[Tensor, "h"]
    memory: Memory

    def kept(self, scores: Float[Tensor, "h c"], width: int) -> tuple[Hypotheses, Int[Tensor, "h"], Int[Tensor, "h"]]:
        """The `width` best continuations: hypotheses with their new ln p, the old one of each, and its choice."""
        whole = (self.log_probs[:, None] + scores).flatten()
        best, places = whole.topk(min(width, int((whole > -INF).sum())))
        parent, choice = places // scores.shape[1], places % scores.shape[1]
        memory = Memory(*(each[parent] for each in self.memory))
        return Hypotheses(self.types[parent], self.roles[parent], best, memory), parent, choice


def best_events(decoder: EventMemory, read: Read, row: int, width: int) -> Hypotheses:
    """The best decisions about one row that a beam of this width finds.

    A decision is about the type of a token or about the role of one entity. A beam of one decides as `decode` does, one
    as wide as there are sequences of decisions is exact.
    """
    one = Read(*(each[row : row + 1] for each in read))
    n, k = int(one.mask.sum()), one.entity.shape[1]
    around, zeros = decoder.around(one), one.entity.new_zeros
    found = Hypotheses(zeros(1, n), zeros(1, n, k), one.hidden.new_zeros(1), decoder.empty(one))
    for i in range(n):
        found = found._replace(memory=decoder.at(found.memory, one, i))
        h = len(found.types)
        of_types = decoder.score_types(one.hidden[:, i].expand(h, -1), around[:, i].expand(h, -1), found.memory.types)
        found, _, type_ = found.kept(of_types.log_softmax(-1), width)
        found.types[:, i] = type_
        if k and bool((type_ != OTHER).any()):
            found = _with_roles(decoder, one, around, found, i, width)
        same = one.same.expand(len(found.types), -1, -1)
        found = found._replace(memory=decoder.added(found.memory, found.types[:, i], found.roles[:, i], same))
    return found


def _with_roles(decoder: EventMemory, one: Read, around: Tensor, found: Hypotheses, i: int, width: int) -> Hypotheses:
    """Role by role of the entities near token i; where it triggers nothing, all are none."""
    row = torch.zeros_like(found.types[:, i])
    token = torch.full_like(row, i)
    scores = decoder.score_roles(one, around, row, token, found.types[:, i], found.memory).log_softmax(-1)
    nothing = torch.full_like(scores[0, 0], -INF)
    nothing[OTHER] = 0.0
    scores = torch.where((found.types[:, i] != OTHER)[:, None, None], scores, nothing)
    for j in one.near(row[:1], token[:1])[0].nonzero().flatten().tolist():
        found, parent, role = found.kept(scores[:, j], width)
        found.roles[:, i, j] = role
        scores = scores[parent]
    return found
