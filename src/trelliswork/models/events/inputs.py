"""Sentences and documents as a model of events reads them: a row for each sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence
from trelliswork.data.events import Entity, Event, arcs_of, entities_of, events_of, has_arcs, sentences_in
from trelliswork.errors import TrellisworkError
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.inputs import TokenBatch
from trelliswork.runtime.arrays import Float, Int
from trelliswork.tags.schemes import tags_of

SCHEME = "IOBES"
Arc = tuple[int, int, int]  # head, dependent, relation


@dataclass(frozen=True)
class EncodedEvents:
    """A sentence as indices, its dependencies, and, if known, the tags of its entities, the entities and the events.

    All positions are those in the sentence, whose first token is the token `start` of the record.
    """

    start: int
    features: Int[Tensor, "n f"]
    words: tuple[str, ...]
    arcs: list[Arc]
    tags: Int[Tensor, " n"] | None = None
    entities: Sequence[Entity] = ()
    events: Sequence[Event] = ()

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class EncodedRecord:
    """A document, or a sentence alone."""

    sentences: tuple[EncodedEvents, ...]

    def __len__(self) -> int:
        return sum(map(len, self.sentences))

    def split(self, entities: Sequence[Entity] | None) -> Iterator[list[Entity] | None]:
        """Yield entities of the record by sentence, with positions in it."""
        for each in self.sentences:
            yield None if entities is None else sorted(_within(entities, each.start, each.start + len(each)))


@dataclass(frozen=True)
class Batch:
    """Sentences side by side, those of a record one after another: what goes in, their dependencies, and vectors."""

    records: Sequence[EncodedRecord]
    tokens: TokenBatch
    dependencies: Float[Tensor, "rows n relations"]
    inputs: Float[Tensor, "rows n w"]
    vectors: Float[Tensor, "rows n d"]

    @cached_property
    def sentences(self) -> list[EncodedEvents]:
        """The sentence of each row."""
        return [sentence for record in self.records for sentence in record.sentences]

    @cached_property
    def rows(self) -> list[range]:
        """The rows of each record."""
        rows, first = list[range](), 0
        for record in self.records:
            rows.append(range(first, first + len(record.sentences)))
            first += len(record.sentences)
        return rows

    def joined(self, values: Float[Tensor, "rows n d"]) -> Float[Tensor, "batch m d"]:
        """Return values of tokens with all sentences of a record in one row."""
        return pad_sequence(
            [torch.cat([values[row, : len(self.sentences[row])] for row in rows]) for rows in self.rows],
            batch_first=True,
        )


def encoded_record(
    inventory: Inventory, features: Int[Tensor, "n f"], sentence: Sentence, *, with_tags: bool
) -> EncodedRecord:
    """Encode a record sentence by sentence; what reaches from one sentence into another is left out.

    Args:
        inventory: Names that the model knows.
        features: Indices of the features of each token, [n, f].
        sentence: The sentence or document.
        with_tags: True to encode entities and events as well.

    Returns:
        The record.
    """
    arcs = inventory.arcs(sentence)
    entities = [each for each in entities_of(sentence) if each[2] in inventory.kinds] if with_tags else []
    events = events_of(sentence) if with_tags else []
    sentences = []
    for start, end in sentences_in(sentence):
        own = sorted(_within(entities, start, end))
        own_events = [_moved(event, start, end) for event in events if start <= event.trigger < end]
        names = tags_of(own, end - start, SCHEME)
        sentences.append(EncodedEvents(
            start, features[start:end], sentence.words[start:end],
            [(h - start, d - start, r) for h, d, r in arcs if start <= min(h, d) and max(h, d) < end],
            torch.tensor([inventory.tags.index(tag) for tag in names]) if with_tags else None, own, own_events,
        ))  # fmt: skip
    return EncodedRecord(tuple(sentences))


def _within(spans: Sequence[Entity], start: int, end: int) -> Iterator[Entity]:
    return ((i - start, j - start, label) for i, j, label in spans if start <= i and j <= end)


def _moved(event: Event, start: int, end: int) -> Event:
    """Return an event of a sentence, with the arguments that are there too."""
    return Event(event.trigger - start, event.type, tuple(_within(event.arguments, start, end)), event.attributes)


# The names that a model of events knows: types of entities and events, roles, relations of dependencies.

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
        """Return the names in sentences with entities and events; one without any event is no data to learn from."""
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
        """Return plain values."""
        return {name: list(names) for name, names in vars(self).items()}

    @classmethod
    def from_dict(cls, stored: StoredConfig) -> Inventory:
        """Invert `to_dict`."""
        fields = [tuple(stored[name]) for name in ("kinds", "types", "roles", "relations")]
        for names in fields:
            if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
                raise ValueError("expected texts that differ as names of the inventory")
        return cls(*fields)

    @property
    def tags(self) -> list[str]:
        """The IOBES tags of entities."""
        return [NOTHING, *(f"{role}-{kind}" for kind in self.kinds for role in "BIES")]

    def arcs(self, sentence: Sentence) -> list[tuple[int, int, int]]:
        """Return head, dependent and relation, as far as the relation is known."""
        named_arcs = arcs_of(sentence) if self.relations else []
        return [(h, d, self.relations.index(name)) for h, d, name in named_arcs if name in self.relations]

    def events(
        self, types: Mapping[int, int], roles: Mapping[tuple[int, int], int], spans: list[Entity]
    ) -> list[Event]:
        """Return events from the types of triggers and the roles of (trigger, number of the entity).

        Args:
            types: Type of each trigger, by its token.
            roles: Role of each (trigger, number of the entity).
            spans: The entities.

        Returns:
            The events, in order of their triggers.
        """
        return [
            Event(token, self.types[type_], tuple(
                (start, end, self.roles[roles[token, j]]) for j, (start, end, _) in enumerate(spans)
                if roles.get((token, j), 0)
            )) for token, type_ in sorted(types.items()) if type_
        ]  # fmt: skip
