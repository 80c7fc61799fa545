"""Triggers, arguments and entities judged together: learned factors, and the best assignment by AD3.

Yang and Mitchell (2016), Joint extraction of events and entities within a document context.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.data.events import Entity
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.event_network import SCHEME, Batch, EncodedEvents, EventNetwork, Extracted, Pins
from trelliswork.models.events.inventory import Inventory
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.nn.event_factors import Document, WithinEvent
from trelliswork.nn.scorers import RoleScorer
from trelliswork.tags.schemes import spans_of

if TYPE_CHECKING:
    from jaxtyping import Float

INF = float("inf")
UNLIKELY = 0.01  # a token whose chance to be a trigger is smaller is not judged
Span = tuple[int, int]


class FactorEvents(EventNetwork):
    """A graph over the types of likely triggers, the types of likely entities, and the roles between them.

    Its factors are learned by the likelihood of each event with all entities, of each pair of triggers, and of the
    tags of entities, as in the paper; a sentence is a document.
    """

    STRUCTURE = "factor graph of triggers, roles and entities"

    def __init__(self, config: EventConfig, features: TokenFeatures, inventory: Inventory):
        super().__init__(config, features, inventory)
        dim, n_types, n_roles = self.encoder.dim, len(inventory.types), len(inventory.roles)
        n_kinds = len(inventory.kinds) + 1
        self.proposals = nn.Linear(dim, 1)
        self.types = nn.Linear(dim, n_types)
        self.roles = RoleScorer(dim, 1, n_roles, hidden=config.event_hidden, dropout=config.event_dropout)
        self.kinds = nn.Linear(2 * dim, n_kinds)
        self.pairs = nn.Linear(2 * dim, n_types * n_types)
        self.type_roles = nn.Parameter(torch.zeros(n_types, n_roles))
        self.role_kinds = nn.Parameter(torch.zeros(n_roles, n_kinds))

    def within(self, batch: Batch, row: int, triggers: Sequence[int], spans: Sequence[Span]) -> WithinEvent:
        """Scores of some triggers and entities of a sentence; no roles without a trigger or without an entity."""
        # [S4.282]
        vectors, m, k = batch.vectors[row], len(triggers), len(spans)
        at = torch.tensor(triggers, dtype=torch.long, device=vectors.device)
        ends = torch.tensor(spans, dtype=torch.long, device=vectors.device).reshape(k, 2)
        n_roles, n_kinds = self.role_kinds.shape
        roles, kinds = vectors.new_zeros(m, k, n_roles), vectors.new_zeros(m, k, n_kinds)
        if m and k:
            every = torch.arange(m * k, device=vectors.device)
            roles = self.roles(
                batch.vectors, batch.tokens.mask, row=torch.full_like(every, row), trigger=at[every // k],
                entity=ends[every % k, 1] - 1, event=torch.zeros_like(every),
            ).unflatten(0, (m, k))  # fmt: skip
            of_spans = self.kinds(torch.cat([vectors[ends[:, 0]], vectors[ends[:, 1] - 1]], -1))
            kinds = of_spans.expand(m, k, n_kinds)
        none = torch.zeros_like(self.type_roles, dtype=torch.bool)
        none[0, 1:] = True
        nobody = torch.zeros_like(self.role_kinds, dtype=torch.bool)
        nobody[1:, 0] = True
        return WithinEvent(
            self.types(vectors[at]), roles, self.type_roles.masked_fill(none, -INF), kinds,
            self.role_kinds.masked_fill(nobody, -INF),
        )  # fmt: skip

    def relations(self, batch: Batch, row: int, triggers: Sequence[int]) -> tuple[list[Span], Float[Tensor, "p t t"]]:
        """ln p(t_i, t_i') of each pair of triggers, counted once."""  # [S4.285, 288]
        pairs, n_types = list(combinations(range(len(triggers)), 2)), len(self.inventory.types)
        vectors = batch.vectors[row][torch.tensor(triggers, dtype=torch.long)]
        if not pairs:
            return [], vectors.new_zeros(0, n_types, n_types)
        both = torch.cat([vectors[[i for i, _ in pairs]], vectors[[j for _, j in pairs]]], -1)
        return pairs, self.pairs(both).log_softmax(-1).unflatten(-1, (n_types, n_types))

    # Candidates

    def likely_triggers(self, batch: Batch) -> list[list[int]]:
        """The tokens of each sentence that are most likely triggers, by their place."""
        shares = self.proposals(batch.vectors).squeeze(-1).sigmoid().masked_fill(~batch.tokens.mask, 0.0)
        best, places = shares.topk(min(self.config.proposals, shares.shape[1]), dim=1)
        return [
            sorted(place for place, share in zip(*row, strict=True) if share >= UNLIKELY)
            for row in zip(places.tolist(), best.tolist(), strict=True)
        ]

    def likely_entities(self, batch: Batch) -> list[list[Span]]:
        """The spans of entities in the best taggings of each sentence."""
        values, scores = self.entity_chain(batch).top_k(self.config.analyses)
        lengths, tags = batch.tokens.mask.sum(1).tolist(), self.inventory.tags
        found: list[set[Span]] = [set() for _ in lengths]
        for value, score in zip(values.tolist(), scores.tolist(), strict=True):
            for row, n in enumerate(lengths):
                if score[row] > -INF:
                    spans = spans_of([tags[tag] for tag in value[row][:n]], SCHEME)
                    found[row].update((start, end) for start, end, _ in spans)
        return [sorted(spans) for spans in found]

    # Learning

    def event_loss(self, batch: Batch, encoded: Sequence[EncodedEvents]) -> Float[Tensor, ""]:
        """-ln p of the proposals, of each event with all entities, and of each pair of triggers."""  # [S4.283-285]
        is_trigger = torch.zeros(batch.tokens.mask.shape)
        for row, each in enumerate(encoded):
            is_trigger[row, [event.trigger for event in each.events]] = 1.0
        mask = batch.tokens.mask
        logits = self.proposals(batch.vectors).squeeze(-1)[mask]
        total = F.binary_cross_entropy_with_logits(logits, is_trigger.to(logits.device)[mask], reduction="sum")
        with torch.no_grad():
            triggers, spans = self.likely_triggers(batch), self.likely_entities(batch)
        for row, each in enumerate(encoded):
            total = total + self._sentence_loss(batch, row, each, triggers[row], spans[row])
        return total

    def _sentence_loss(
        self, batch: Batch, row: int, each: EncodedEvents, likely: Sequence[int], near: Sequence[Span]
    ) -> Float[Tensor, ""]:
        events = {event.trigger: event for event in each.events if event.type in self.inventory.types}
        triggers = sorted({*events, *likely})
        spans = sorted({*((start, end) for start, end, _ in each.entities), *near})
        if not triggers:
            return batch.vectors.new_zeros(())
        kind_of = {(start, end): 1 + self.inventory.kinds.index(kind) for start, end, kind in each.entities}
        kinds = torch.tensor([[kind_of.get(span, 0) for span in spans]] * len(triggers)).reshape(len(triggers), -1)
        types, roles = torch.zeros(len(triggers), dtype=torch.long), torch.zeros_like(kinds)
        for i, trigger in enumerate(triggers):
            if trigger in events:
                types[i] = self.inventory.types.index(events[trigger].type)
                for start, end, role in events[trigger].arguments:
                    if (start, end) in kind_of and role in self.inventory.roles:
                        roles[i, spans.index((start, end))] = self.inventory.roles.index(role)
        types, roles, kinds = (given.to(batch.vectors.device) for given in (types, roles, kinds))
        total = -self.within(batch, row, triggers, spans).log_prob(types, roles, kinds).sum()
        pairs, relations = self.relations(batch, row, triggers)
        for (i, other), table in zip(pairs, relations, strict=True):
            total = total - table[types[i], types[other]]
        return total

    # Answers

    def documents(
        self, batch: Batch, pins: Sequence[Pins] | None
    ) -> list[tuple[list[int], list[Span], Document | None]]:
        """Triggers and entities to judge of each sentence, and their graph; None if there is nothing to judge."""
        known = [None] * len(batch.vectors) if pins is None else [each.get("entities") for each in pins]
        likely = self.likely_entities(batch)
        spans = [
            near if given is None else sorted({(start, end) for start, end, _ in given})
            for near, given in zip(likely, known, strict=True)
        ]
        kinds = self._entity_scores(batch, spans, known)
        found: list[tuple[list[int], list[Span], Document | None]] = []
        for row, triggers in enumerate(self.likely_triggers(batch)):
            of_row = spans[row]
            if not triggers and not of_row:
                found.append((triggers, of_row, None))
                continue
            within = self.within(batch, row, triggers, of_row)
            pairs, relations = self.relations(batch, row, triggers)
            clashes = [
                (i, j) for i, j in combinations(range(len(of_row)), 2)
                if max(of_row[i][0], of_row[j][0]) < min(of_row[i][1], of_row[j][1])
            ]  # fmt: skip
            found.append((triggers, of_row, Document(within, pairs, relations, kinds[row], clashes)))
        return found

    def _entity_scores(
        self, batch: Batch, spans: Sequence[Sequence[Span]], known: Sequence[Sequence[Entity] | None]
    ) -> list[Float[Tensor, "k a"]]:
        """ln p(a_j), the exact probabilities of the CRF; of known entities 0 for their types alone."""  # [S4.289]
        names = self.inventory.kinds
        asked = [[(*span, kind) for span in of_row for kind in names] for of_row in spans]
        chain = self.entity_chain(batch)
        found = []
        for row, shares in enumerate(chain.span_probabilities(asked, tags=self.inventory.tags, scheme=SCHEME)):
            each = shares.reshape(-1, len(names))
            none = (1.0 - each.sum(-1, keepdim=True)).clamp(min=1e-6)
            scores = torch.cat([none, each.clamp(min=1e-6)], -1).log()
            if known[row] is not None:
                scores = torch.full_like(scores, -INF)
                for start, end, kind in known[row] or ():
                    scores[spans[row].index((start, end)), 1 + names.index(kind)] = 0.0
            found.append(scores)
        return found

    def extracted(self, batch: Batch, encoded: Sequence[EncodedEvents], pins: Sequence[Pins] | None) -> list[Extracted]:
        return [self._extracted(*each) for each in self.documents(batch, pins)]

    def _extracted(self, triggers: list[int], spans: list[Span], document: Document | None) -> Extracted:
        if document is None:
            return Extracted()
        types, roles, kinds, _ = document.best()
        shares = document.entities.exp()
        there = [j for j, kind in enumerate(kinds) if kind]
        entities = [(*spans[j], self.inventory.kinds[kinds[j] - 1]) for j in there]
        sure = [float(shares[j, kinds[j]]) for j in there]
        of_types = dict(zip(triggers, types, strict=True))
        of_roles = {(t, place): roles[i][j] for i, t in enumerate(triggers) for place, j in enumerate(there)}
        events = self.inventory.events(of_types, of_roles, entities)
        probs = document.within.type_probabilities()
        chances = {t: float(probs[i, types[i]]) for i, t in enumerate(triggers)}
        return Extracted(entities, events, sure, [chances[event.trigger] for event in events])
