"""Scores of the roles that entities play in events; a candidate is a trigger and an entity of the same sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.dropout import Dropout
from trelliswork.nn.pooling import dynamic_multi_pooling
from trelliswork.runtime.shapes import Bool, Float, Int


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
