"""Scores of the roles that entities play in events; a candidate is a trigger and an entity of the same sentence."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.scorers.event_memory import OTHER, EventHistory, EventInputs, EventMemory
from trelliswork.runtime.arrays import INF, Bool, Float, Int


def dynamic_multi_pooling(
    tokens: Float[Tensor, "m n d"],
    first: Int[Tensor, " m"],
    last: Int[Tensor, " m"],
    mask: Bool[Tensor, "m n"] | None = None,
) -> Float[Tensor, "m 3d"]:
    """Pool each dimension by its maximum over three parts of a sentence: before `first`, up to `last`, and the rest.

    Args:
        tokens: Vectors of the tokens of m sentences.
        first: Position where the second part of each sentence begins.
        last: Position where the third part begins.
        mask: True at tokens, False at padding.

    Returns:
        The maxima of the three parts side by side; a part without tokens gives zeros.

    >>> dynamic_multi_pooling(torch.tensor([[[1.], [5.], [2.], [4.]]]), torch.tensor([1]), torch.tensor([2]))
    tensor([[1., 5., 4.]])

    Chen et al. (2015), Event extraction via dynamic multi-pooling convolutional neural networks.
    """
    # [S4.239-242]
    place = torch.arange(tokens.shape[1], device=tokens.device)
    part = (place >= first[:, None]).long() + (place >= last[:, None]).long()  # (m, n): 0, 1 or 2
    if mask is not None:
        part = part.masked_fill(~mask, 3)
    maxima = []
    for i in range(3):
        inside = (part == i).unsqueeze(-1)
        highest = tokens.masked_fill(~inside, -torch.inf).amax(1)
        maxima.append(highest.masked_fill(~inside.any(1), 0.0))
    return torch.cat(maxima, -1)


class RoleScorer(nn.Module):
    """Scores the roles of an entity in an event.

    x_i consists of the vector of token i, its distances to trigger and entity, the type of the event, and the vectors
    of entity and trigger. After a hidden layer, the maxima over the three parts into which trigger and entity divide
    the sentence are mapped to roles: O = W y + b.

    Args:
        dim: Width of the vectors of tokens.
        n_types: Number of types of events.
        n_roles: Number of roles.
        hidden: Units of the hidden layer.
        max_distance: Largest distance with a vector of its own.
        dropout: Share of pooled values that are dropped.

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
        """Return the scores of the roles of m candidates.

        Args:
            tokens: Vectors of tokens.
            mask: True at tokens, False at padding.
            row: The sentence of each candidate.
            trigger: The token of its trigger.
            entity: The token of its entity.
            event: The type of its event.
        """
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


# Beam search for the most probable events with `EventMemory`, one row at a time.


class EventHypotheses(NamedTuple):
    """The h hypotheses of a beam, the best first: types, roles, ln p, and the memories."""

    types: Int[Tensor, "h n"]
    roles: Int[Tensor, "h n k"]
    log_probs: Float[Tensor, "h"]
    memory: EventHistory

    def extend(
        self, scores: Float[Tensor, "h c"], width: int
    ) -> tuple[EventHypotheses, Int[Tensor, "h"], Int[Tensor, "h"]]:
        """Return the `width` best continuations with their new ln p, the parent of each, and its choice."""
        totals = (self.log_probs[:, None] + scores).flatten()
        best, places = totals.topk(min(width, int((totals > -INF).sum())))
        parent, choice = places // scores.shape[1], places % scores.shape[1]
        memory = EventHistory(*(part[parent] for part in self.memory))
        return EventHypotheses(self.types[parent], self.roles[parent], best, memory), parent, choice


def best_events(decoder: EventMemory, inputs: EventInputs, row: int, width: int) -> EventHypotheses:
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
    beam = EventHypotheses(zeros(1, n), zeros(1, n, k), one.hidden.new_zeros(1), decoder.empty(one))
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
    decoder: EventMemory, one: EventInputs, around: Tensor, beam: EventHypotheses, i: int, width: int
) -> EventHypotheses:
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
