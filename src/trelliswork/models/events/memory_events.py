"""Triggers and arguments found together from left to right, with memories of what was found before.

    >>> model = MemoryEvents.from_data(train_sentences)                        # doctest: +SKIP
    >>> train(model, train_sentences, dev_sentences, out="events")             # doctest: +SKIP
    >>> tw.load("events").predict("Ann visited Rome.")[0].value["events"]      # doctest: +SKIP

Nguyen, Cho and Grishman (2016), Joint event extraction via recurrent neural networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.data.events import Entity
from trelliswork.distributions import LinearChain
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.event_network import EventNetwork, Extracted, KnownEntities
from trelliswork.models.events.inputs import SCHEME, Batch, Inventory
from trelliswork.models.networks.building import make_encoder
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.nn.scorers.event_memory import OTHER, EventInputs, EventMemory
from trelliswork.nn.scorers.roles import best_events
from trelliswork.runtime.arrays import INF, Float, Int

EntityRows = Sequence[Sequence[Entity]]  # the entities of each sentence
Decisions = tuple[Tensor, Tensor]  # types [ways, n] and roles [ways, n, k]


class MemoryEvents(EventNetwork):
    """Entities by a CRF; a second encoder reads them with the words; types and roles are decided with memories.

    In training the second encoder reads gold entities. Memories go from sentence to sentence of a document: of the
    types found before, and of the roles of an entity, which is known again by its name.
    """

    STRUCTURE = "CRF of entities and a decoder of events with memories"
    search = "beam"

    def __init__(self, config: EventConfig, features: TokenFeatures, inventory: Inventory):
        super().__init__(config, features, inventory)
        n_relations, n_kinds = len(inventory.relations), len(inventory.kinds)
        self.entity_types = nn.Embedding(n_kinds + 1, config.entity_dim)
        self.reader = make_encoder(config, self.inputs.dim + config.entity_dim + n_relations)
        self.memory = EventMemory(
            self.reader.dim, self.inputs.dim, n_types=len(inventory.types), n_roles=len(inventory.roles),
            n_kinds=n_kinds + 1, n_relations=n_relations, hidden=config.event_hidden, context=config.context,
            dropout=config.event_dropout, remember=config.memory, across=config.across,
        )  # fmt: skip

    def with_entities(self, batch: Batch, entities: EntityRows) -> EventInputs:
        """Return x_i = [vector of the word; vector of its entity type; dependencies], through the second encoder.

        What is read has a row for each record.
        """
        # [S4.231]
        mask, device = batch.tokens.mask, batch.vectors.device
        types = torch.zeros(mask.shape, dtype=torch.long)
        for row, of_row in enumerate(entities):
            for start, end, kind in of_row:
                types[row, start:end] = 1 + self.inventory.kinds.index(kind)
        x = torch.cat([batch.inputs, self.entity_types(types.to(device)), batch.dependencies], -1)
        hidden = batch.joined(self.hidden_dropout(self.reader(self.input_dropout(x), mask)))
        places = (tensor.to(device) for tensor in self._places(batch, entities))
        return EventInputs(hidden, batch.joined(batch.inputs), *places)

    def _places(self, batch: Batch, entities: EntityRows) -> tuple[Tensor, ...]:
        """Return the mask of tokens; tokens, types and presence of entities; arcs, sentences, and who is the same."""
        n, k = max(map(len, batch.records)), max(sum(len(entities[row]) for row in rows) for rows in batch.rows)
        size = len(batch.records)
        sentence, arcs = torch.full((size, n), -1), torch.zeros(size, n, n, dtype=torch.long)
        spans, same = torch.zeros(size, k, 2, dtype=torch.long), torch.eye(k, dtype=torch.bool).repeat(size, 1, 1)
        for i, rows in enumerate(batch.rows):
            names = list[tuple[str, str]]()
            for number, row in enumerate(rows):
                each = batch.sentences[row]
                sentence[i, each.start : each.start + len(each)] = number
                for head, dependent, relation in each.arcs:
                    arcs[i, each.start + head, each.start + dependent] = 1 + relation
                for _, end, kind in entities[row]:
                    spans[i, len(names)] = torch.tensor([each.start + end - 1, 1 + self.inventory.kinds.index(kind)])
                    names.append((each.words[end - 1], kind))
            for j, name in enumerate(names):
                same[i, j, : len(names)] = torch.tensor([other == name for other in names])
        entity, kind_of = spans.unbind(-1)
        return sentence >= 0, entity, kind_of, kind_of > 0, arcs, sentence, same

    def event_loss(self, batch: Batch) -> Float[Tensor, ""]:
        read = self.with_entities(batch, [each.entities for each in batch.sentences])
        types, roles = self._targets(read, batch)
        return self.memory.loss(read, types, roles)

    def _targets(self, read: EventInputs, batch: Batch) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n k"]]:
        """Return types of tokens and roles of entities in their events; names that training never saw are none."""
        types = torch.zeros(read.mask.shape, dtype=torch.long)
        roles = torch.zeros(*read.mask.shape, read.entity.shape[1], dtype=torch.long)
        known_types, known_roles = self.inventory.types, self.inventory.roles
        for row, record in enumerate(batch.records):
            first = 0
            for each in record.sentences:
                places = {(start, end): first + j for j, (start, end, _) in enumerate(each.entities)}
                first += len(places)
                for event in (event for event in each.events if event.type in known_types):
                    types[row, each.start + event.trigger] = known_types.index(event.type)
                    for start, end, role in event.arguments:
                        if (start, end) in places and role in known_roles:
                            at = each.start + event.trigger, places[start, end]
                            roles[row, at[0], at[1]] = known_roles.index(role)
        return types.to(read.mask.device), roles.to(read.mask.device)

    # Answers

    def extracted(self, batch: Batch, known: KnownEntities, top_k: int, *, confidence: bool) -> list[Extracted]:
        """Return greedy decisions, or the best of a beam over the best entities and the events with each."""
        if not (confidence or top_k):
            best = self.best_entities(batch, known)
            types, roles = self.memory.decode(self.with_entities(batch, best))
            return [self._record(batch, best, i, types[i], roles[i]) for i in range(len(batch.records))]
        candidates: list[list[Extracted]] = [[] for _ in batch.records]
        chain, width = self.entity_chain(batch), max(1, top_k)
        for entities, log_probs in self._ways(batch, chain, known, width):
            read = self.with_entities(batch, entities)
            sure = chain.span_probabilities(entities, tags=self.inventory.tags, scheme=SCHEME)
            greedy = self.memory.decode(read) if width == 1 else None
            for i, log_prob in enumerate(log_probs):
                if log_prob > -INF:
                    decided = best_events(self.memory, read, i, width)[:2] if greedy is None else _only(greedy, i)
                    shares, share = [float(p) for row in batch.rows[i] for p in sure[row]], math.exp(log_prob)
                    candidates[i] += [
                        replace(each, probability=share * (each.probability or 0.0), entity_probs=shares)
                        for each in self._judged(batch, entities, read, i, decided)
                    ]
        return [best_first(each, width, "greedy" if width == 1 else "beam") for each in candidates]

    def _ways(
        self, batch: Batch, chain: LinearChain, known: KnownEntities, k: int
    ) -> Iterator[tuple[EntityRows, list[float]]]:
        """Yield the k best ways to tag entities, each with its ln p in each record; -inf where a record has fewer."""
        values, scores = chain.top_k(k)
        shares = (scores - chain.log_partition).tolist()
        by_row = list[list[tuple[list[Entity], float]]]()
        for row, (each, given) in enumerate(zip(batch.sentences, known, strict=True)):
            best = [(self.spans_of(value[row][: len(each)].tolist()), shares[i][row]) for i, value in enumerate(values)]
            by_row.append([(list(given), 0.0)] if given is not None else [way for way in best if way[1] > -INF])
        by_record = [best_products([by_row[row] for row in rows], k) for rows in batch.rows]
        for place in range(max(map(len, by_record))):
            chosen = [ways[min(place, len(ways) - 1)] for ways in by_record]
            log_probs = [p if place < len(ways) else -INF for ways, (_, p) in zip(by_record, chosen, strict=True)]
            yield [spans for of_record, _ in chosen for spans in of_record], log_probs

    def _judged(
        self, batch: Batch, entities: EntityRows, read: EventInputs, i: int, decided: Decisions
    ) -> list[Extracted]:
        """Return what was decided about record i, in each of several ways, with the probabilities of the decisions."""
        missing = read.mask.shape[1] - decided[0].shape[1]
        types, roles = F.pad(decided[0], (0, missing)), F.pad(decided[1], (0, 0, 0, missing))
        one = EventInputs(*(each[i : i + 1].expand(len(types), *each.shape[1:]) for each in read))
        of_types, of_roles = self.memory.log_probs(one, types, roles)
        whole = (of_types.sum(1) + of_roles.sum((1, 2))).exp().tolist()
        extractions = list[Extracted]()
        for way, probability in enumerate(whole):
            each = self._record(batch, entities, i, types[way], roles[way])
            at = [event.trigger for event in each.events]
            triggers = of_types[way, at].exp().tolist()
            arguments = [of_roles[way, t][roles[way, t] != OTHER].exp().tolist() for t in at]
            extractions.append(replace(each, triggers=triggers, arguments=arguments, probability=probability))
        return extractions

    def _record(self, batch: Batch, entities: EntityRows, i: int, types: Tensor, roles: Tensor) -> Extracted:
        """Return entities and events of record i, by their positions in it."""
        spans = [
            (batch.sentences[row].start + start, batch.sentences[row].start + end, kind)
            for row in batch.rows[i] for start, end, kind in entities[row]
        ]  # fmt: skip
        of_types, of_roles = {t: type_ for t, type_ in enumerate(types.tolist()) if type_}, roles.tolist()
        chosen = {(t, j): of_roles[t][j] for t in of_types for j in range(len(spans))}
        return Extracted(spans, self.inventory.events(of_types, chosen, spans), search="greedy")


def _only(decided: Decisions, i: int) -> Decisions:
    return decided[0][i : i + 1], decided[1][i : i + 1]


# The best of several ways to answer.

Way = TypeVar("Way")


def best_products(parts: Sequence[Sequence[tuple[Way, float]]], k: int) -> list[tuple[list[Way], float]]:
    """Return the k best choices of one way for each part, by the sum of their ln p; ways are given best first.

    >>> best_products([[("a", -1.0), ("b", -2.0)], [("c", -1.0), ("d", -1.5)]], 3)
    [(['a', 'c'], -2.0), (['a', 'd'], -2.5), (['b', 'c'], -3.0)]
    """
    choices: list[tuple[list[Way], float]] = [([], 0.0)]
    for ways in parts:
        longer = [([*chosen, way], before + p) for chosen, before in choices for way, p in ways]
        choices = sorted(longer, key=lambda each: -each[1])[:k]
    return choices


def best_first(values: Sequence[Extracted], k: int, search: str) -> Extracted:
    """Return the most probable of several values, with the k best.

    Args:
        values: Values with their probabilities.
        k: How many alternatives to return.
        search: Among which values these are the best.

    Returns:
        The best value, with the k best as its others.
    """
    ranked = sorted(values, key=lambda each: -(each.probability or 0.0))[:k]
    ranked = [replace(each, search=search) for each in ranked]
    return replace(ranked[0], others=ranked)
