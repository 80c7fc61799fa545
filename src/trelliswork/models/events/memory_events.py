"""Triggers and arguments found together from left to right, with memories of what was found before.

    >>> model = MemoryEvents.from_data(train_sentences)                        # doctest: +SKIP
    >>> train(model, train_sentences, dev_sentences, out="events")             # doctest: +SKIP
    >>> tw.load("events").predict("Ann visited Rome.")[0].value["events"]      # doctest: +SKIP

Nguyen, Cho and Grishman (2016), Joint event extraction via recurrent neural networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trelliswork.data.events import Entity
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.event_network import SCHEME, Batch, EncodedEvents, EventNetwork, Extracted, Pins
from trelliswork.models.events.inventory import Inventory
from trelliswork.models.networks.building import make_encoder
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.nn.scorers.event_memory import EventMemory, Found, Read

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class MemoryEvents(EventNetwork):
    """Entities by a CRF; a second encoder reads them with the words; types and roles are decided with memories.

    In training the second encoder reads gold entities.
    """

    STRUCTURE = "CRF of entities and a decoder of events with memories"

    def __init__(self, config: EventConfig, features: TokenFeatures, inventory: Inventory):
        super().__init__(config, features, inventory)
        n_relations, n_kinds = len(inventory.relations), len(inventory.kinds)
        self.entity_types = nn.Embedding(n_kinds + 1, config.entity_dim)
        self.reader = make_encoder(config, self.inputs.dim + config.entity_dim + n_relations)
        self.memory = EventMemory(
            self.reader.dim, self.inputs.dim, n_types=len(inventory.types), n_roles=len(inventory.roles),
            n_kinds=n_kinds + 1, n_relations=n_relations, hidden=config.event_hidden, context=config.context,
            dropout=config.event_dropout, remember=config.memory,
        )  # fmt: skip

    def with_entities(
        self, batch: Batch, entities: Sequence[Sequence[Entity]], encoded: Sequence[EncodedEvents]
    ) -> Read:
        """x_i = [vector of the word; vector of its entity type; dependencies], through the second encoder."""
        # [S4.231]
        mask, kinds = batch.tokens.mask, self.inventory.kinds
        batch_size, n = mask.shape
        types = torch.zeros(batch_size, n, dtype=torch.long)
        spans = torch.zeros(batch_size, max(map(len, entities), default=0), 3, dtype=torch.long)
        arcs = torch.zeros(batch_size, n, n, dtype=torch.long)
        for row, (of_row, each) in enumerate(zip(entities, encoded, strict=True)):
            for j, (start, end, kind) in enumerate(of_row):
                number = 1 + kinds.index(kind)
                types[row, start:end] = number
                spans[row, j] = torch.tensor([end - 1, number, 1])
            for head, dependent, relation in each.arcs:
                arcs[row, head, dependent] = 1 + relation
        device = batch.vectors.device
        x = torch.cat([batch.inputs, self.entity_types(types.to(device)), batch.dependencies], -1)
        hidden = self.hidden_dropout(self.reader(self.input_dropout(x), mask))
        entity, kind_of, there = spans.to(device).unbind(-1)
        return Read(hidden, batch.inputs, mask, entity, kind_of, there.bool(), arcs.to(device))

    def event_loss(self, batch: Batch, encoded: Sequence[EncodedEvents]) -> Float[Tensor, ""]:
        read = self.with_entities(batch, [each.entities for each in encoded], encoded)
        types, roles = self._targets(read, encoded)
        return self.memory.loss(read, types, roles)

    def _targets(
        self, read: Read, encoded: Sequence[EncodedEvents]
    ) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n k"]]:
        """Types of tokens and roles of entities in their events; names that training never saw are none."""
        types = torch.zeros(read.mask.shape, dtype=torch.long)
        roles = torch.zeros(*read.mask.shape, read.entity.shape[1], dtype=torch.long)
        known_types, known_roles = self.inventory.types, self.inventory.roles
        for row, each in enumerate(encoded):
            places = {(start, end): j for j, (start, end, _) in enumerate(each.entities)}
            for event in each.events:
                if event.type not in known_types:
                    continue
                types[row, event.trigger] = known_types.index(event.type)
                for start, end, role in event.arguments:
                    if (start, end) in places and role in known_roles:
                        roles[row, event.trigger, places[start, end]] = known_roles.index(role)
        return types.to(read.mask.device), roles.to(read.mask.device)

    def extracted(self, batch: Batch, encoded: Sequence[EncodedEvents], pins: Sequence[Pins] | None) -> list[Extracted]:
        entities = self.best_entities(batch, pins)
        chain = self.entity_chain(batch)
        sure = chain.span_probabilities(entities, tags=self.inventory.tags, scheme=SCHEME)
        found = self.memory.decode(self.with_entities(batch, entities, encoded))
        return [self._extracted(row, spans, found, sure[row].tolist()) for row, spans in enumerate(entities)]

    def _extracted(self, row: int, spans: list[Entity], found: Found, sure: list[float]) -> Extracted:
        types = {i: t for i, t in enumerate(found.types[row].tolist()) if t}
        roles = found.roles[row].tolist()
        events = self.inventory.events(types, {(i, j): roles[i][j] for i in types for j in range(len(spans))}, spans)
        probs = found.type_probs[row].tolist()
        return Extracted(spans, events, sure, [probs[event.trigger] for event in events])
