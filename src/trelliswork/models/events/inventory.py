"""The names that a model of events knows: types of entities and events, roles, relations of dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trelliswork.data import Sentence
from trelliswork.data.events import Entity, Event, arcs_of, entities_of, events_of, has_arcs
from trelliswork.errors import TrellisworkError

NOTHING = "O"


@dataclass(frozen=True)
class Inventory:
    """Sorted names; the first of `types` and `roles` is O, for none."""

    kinds: tuple[str, ...]
    types: tuple[str, ...]
    roles: tuple[str, ...]
    relations: tuple[str, ...] = ()

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence], *, dependencies: bool) -> Inventory:
        """The names in sentences with entities and events; one without any event is no data to learn from."""
        events = [event for sentence in sentences for event in events_of(sentence)]
        if not events:
            raise TrellisworkError("expected sentences with events to learn from, got none; check the data")
        kinds = {kind for sentence in sentences for *_, kind in entities_of(sentence)}
        roles = {role for event in events for *_, role in event.arguments}
        read = dependencies and all(has_arcs(sentence) for sentence in sentences)
        relations = {relation for sentence in sentences for *_, relation in arcs_of(sentence)} if read else set[str]()
        types = {event.type for event in events}
        return cls(tuple(sorted(kinds)), (NOTHING, *sorted(types)), (NOTHING, *sorted(roles)), tuple(sorted(relations)))

    def to_dict(self) -> dict[str, list[str]]:
        """As plain values."""
        return {name: list(names) for name, names in vars(self).items()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Inventory:
        """The inverse of `to_dict`."""
        found = [tuple(stored[name]) for name in ("kinds", "types", "roles", "relations")]
        for names in found:
            if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
                raise ValueError("expected texts that differ as names of the inventory")
        return cls(*found)

    @property
    def tags(self) -> list[str]:
        """The IOBES tags of entities."""
        return [NOTHING, *(f"{role}-{kind}" for kind in self.kinds for role in "BIES")]

    def arcs(self, sentence: Sentence) -> list[tuple[int, int, int]]:
        """Head, dependent and relation, as far as the relation is known."""
        found = arcs_of(sentence) if self.relations else []
        return [(h, d, self.relations.index(name)) for h, d, name in found if name in self.relations]

    def events(
        self, types: Mapping[int, int], roles: Mapping[tuple[int, int], int], spans: list[Entity]
    ) -> list[Event]:
        """Events from the types of triggers and the roles of (trigger, number of the entity)."""
        return [
            Event(token, self.types[type_], tuple(
                (start, end, self.roles[roles[token, j]]) for j, (start, end, _) in enumerate(spans)
                if roles.get((token, j), 0)
            )) for token, type_ in sorted(types.items()) if type_
        ]  # fmt: skip
