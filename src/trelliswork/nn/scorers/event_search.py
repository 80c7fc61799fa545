"""Beam search for the most probable events with `EventMemory`, one row at a time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.nn.scorers.event_memory import OTHER, EventInputs, EventMemory, Memory
from trelliswork.runtime.shapes import Float, Int

INF = float("inf")


class Hypotheses(NamedTuple):
    """The h hypotheses of a beam, the best first: types, roles, ln p, and the memories."""

    types: Int[Tensor, "h n"]
    roles: Int[Tensor, "h n k"]
    log_probs: Float[Tensor, "h"]
    memory: Memory

    def extend(self, scores: Float[Tensor, "h c"], width: int) -> tuple[Hypotheses, Int[Tensor, "h"], Int[Tensor, "h"]]:
        """Return the `width` best continuations with their new ln p, the parent of each, and its choice."""
        totals = (self.log_probs[:, None] + scores).flatten()
        best, places = totals.topk(min(width, int((totals > -INF).sum())))
        parent, choice = places // scores.shape[1], places % scores.shape[1]
        memory = Memory(*(part[parent] for part in self.memory))
        return Hypotheses(self.types[parent], self.roles[parent], best, memory), parent, choice


def best_events(decoder: EventMemory, inputs: EventInputs, row: int, width: int) -> Hypotheses:
    """Search for the best events of one row with a beam.

    A decision is the type of a token or the role of one entity. With width 1 the result is that of `decode`; with a
    width of the number of all sequences of decisions, the search is exact.

    Args:
        decoder: The model.
        inputs: A batch.
        row: The row of the batch.
        width: Number of hypotheses that are kept.
    """
    one = EventInputs(*(field[row : row + 1] for field in inputs))
    n, k = int(one.mask.sum()), one.entity.shape[1]
    around, zeros = decoder.around(one), one.entity.new_zeros
    beam = Hypotheses(zeros(1, n), zeros(1, n, k), one.hidden.new_zeros(1), decoder.empty(one))
    for i in range(n):
        beam = beam._replace(memory=decoder.at(beam.memory, one, i))
        h = len(beam.types)
        of_types = decoder.score_types(one.hidden[:, i].expand(h, -1), around[:, i].expand(h, -1), beam.memory.types)
        beam, _, type_ = beam.extend(of_types.log_softmax(-1), width)
        beam.types[:, i] = type_
        if k and bool((type_ != OTHER).any()):
            beam = _with_roles(decoder, one, around, beam, i, width)
        same = one.same.expand(len(beam.types), -1, -1)
        beam = beam._replace(memory=decoder.update(beam.memory, beam.types[:, i], beam.roles[:, i], same))
    return beam


def _with_roles(
    decoder: EventMemory, one: EventInputs, around: Tensor, beam: Hypotheses, i: int, width: int
) -> Hypotheses:
    """Decide the roles of the entities near token i one by one; where it triggers nothing, all are none."""
    row = torch.zeros_like(beam.types[:, i])
    token = torch.full_like(row, i)
    scores = decoder.score_roles(one, around, row, token, beam.types[:, i], beam.memory).log_softmax(-1)
    # A token without a type leaves one choice, none, with ln p = 0, so that its hypotheses compete unchanged.
    nothing = torch.full_like(scores[0, 0], -INF)
    nothing[OTHER] = 0.0
    scores = torch.where((beam.types[:, i] != OTHER)[:, None, None], scores, nothing)
    for j in one.near(row[:1], token[:1])[0].nonzero().flatten().tolist():
        beam, parent, role = beam.extend(scores[:, j], width)
        beam.roles[:, i, j] = role
        scores = scores[parent]
    return beam
