"""Entities and events that a model has found, and the answers made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trelliswork.data import Sentence
from trelliswork.data.events import Entity, Event
from trelliswork.models.base import Alternative, Answer, PartProbability


@dataclass(frozen=True)
class Extracted:
    """Entities and events of one record, and the probabilities of the parts, if they were asked for.

    `triggers` has the probability of each event's trigger with its type, `arguments` those of each event's arguments.
    `search` says how they were found; `others` are the best values, this one first, if several were asked for.
    """

    entities: list[Entity] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    entity_probs: list[float] = field(default_factory=list)
    triggers: list[float] = field(default_factory=list)
    arguments: list[list[float]] = field(default_factory=list)
    probability: float | None = None
    search: str = "exact"
    others: Sequence[Extracted] = ()

    def value(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "entities": [list(each) for each in self.entities],
            "events": [event.record() for event in self.events],
        }  # fmt: skip


def answer_of(sentence: Sentence, found: Extracted, top_k: int, *, confidence: bool) -> Answer:
    """The answer about a record.

    Parts are triggers, and arguments with the trigger as their head; spans are entities.
    """
    parts, spans = list[PartProbability](), list[PartProbability]()
    if confidence:
        for event, sure, of_roles in zip(found.events, found.triggers, found.arguments, strict=True):
            parts.append(PartProbability(event.trigger, event.trigger + 1, event.type, sure))
            for (start, end, role), chance in zip(event.arguments, of_roles, strict=True):
                parts.append(PartProbability(start, end, role, chance, head=event.trigger + 1))
        spans = [PartProbability(*each, p) for each, p in zip(found.entities, found.entity_probs, strict=True)]
    ranked = [each for each in (found.others or [found])[:top_k] if each.probability is not None]
    return Answer(
        found.value(), found.probability, sentence.words, parts=parts, spans=spans, offsets=sentence.offsets,
        alternatives=[Alternative(each.value(), each.probability or 0.0) for each in ranked], search=found.search,
    )  # fmt: skip
