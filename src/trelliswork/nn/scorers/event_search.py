"""The most probable events that a beam finds with `EventMemory`, one row at a time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.nn.scorers.event_memory import OTHER, EventMemory, Memory, Read
from trelliswork.runtime.shapes import Float, Int

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
