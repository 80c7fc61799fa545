"""Events of sentences: triggers, their arguments, and the dependencies between words if they are known.

A record of a JSON-lines file has `tokens`, the entities as `tags`, and

    "events": [{"trigger": 1, "type": "Visit", "arguments": [[0, 1, "Agent"], [2, 3, "Destination"]]}]

with positions of tokens counted from 0; an argument is [start, end, role] with `end` exclusive. `attributes` of an
event ({"Tense": "past"}) are optional, and so are the `heads` of all words, counted from 1 with 0 for the root, and
their `relations`. All of it is kept in `Sentence.extra`, where the reader of JSON lines leaves what it does not know.

A record may be a document. Then it also has

    "sentences": [[0, 4], [4, 9]], "coreference": [[[0, 1], [4, 5]]], "links": [[1, "After", 0]]

the sentences one after another; spans, of entities or triggers, that mention the same thing; and events that have a
role in other events, by their places in "events". An event that no word expresses has null as its trigger. All of these
are optional: without "sentences" a record is one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.tags.schemes import infer_scheme, spans_of

EVENTS, HEADS, RELATIONS = "events", "heads", "relations"
SENTENCES, COREFERENCE, LINKS = "sentences", "coreference", "links"
NOTHING = object()
IMPLIED = -1  # the trigger of an event that no word expresses; null in JSON
Span = tuple[int, int]
Entity = tuple[int, int, str]  # [start, end) and the type
Argument = tuple[int, int, str]  # [start, end) and the role


@dataclass(frozen=True)
class Event:
    """An event: its trigger (a token; -1: none), type, arguments with their roles, and attributes by name."""

    trigger: int
    type: str
    arguments: tuple[Argument, ...]
    attributes: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def record(self) -> JsonObject:
        """Return the event as it is written in JSON."""
        trigger = None if self.trigger == IMPLIED else self.trigger
        record = {"trigger": trigger, "type": self.type, "arguments": [list(each) for each in self.arguments]}
        return record | ({"attributes": dict(self.attributes)} if self.attributes else {})

    def moved(self, by: int) -> Event:
        """Return the event in a text with `by` more tokens before it."""
        trigger = self.trigger if self.trigger == IMPLIED else self.trigger + by
        return replace(self, trigger=trigger, arguments=tuple((i + by, j + by, role) for i, j, role in self.arguments))


def events_of(sentence: Sentence) -> list[Event]:
    """Return the events of a sentence or document that have a trigger, by trigger; a record that is not one is an
    error.

    >>> given = {"trigger": 1, "type": "Sing", "arguments": [[0, 1, "Agent"]]}
    >>> events_of(Sentence(("Ann", "sings"), extra={"events": [given]}))
    [Event(trigger=1, type='Sing', arguments=((0, 1, 'Agent'),))]
    """
    triggered = [event for event in all_events_of(sentence) if event.trigger != IMPLIED]
    return sorted(triggered, key=lambda event: (event.trigger, event.type))


def all_events_of(sentence: Sentence) -> list[Event]:
    """Return all events in the order of the record, those without a trigger too."""
    given = sentence.extra.get(EVENTS)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise event_error(sentence, f'expected a list of events under "{EVENTS}", got {_shown(given)}; [] is for none')
    return [_event(each, sentence) for each in given]


def _event(given: Json, sentence: Sentence) -> Event:
    n = len(sentence)
    if not isinstance(given, Mapping):
        raise event_error(sentence, f"expected an event as an object, got {_shown(given)}")
    trigger, type_ = given.get("trigger", NOTHING), given.get("type")
    trigger = IMPLIED if trigger is None else trigger
    if type(trigger) is not int or not (0 <= trigger < n or given["trigger"] is None):
        raise event_error(sentence, f'expected the number of a token, 0..{n - 1}, as "trigger", got {_shown(trigger)}')
    if not isinstance(type_, str) or not type_:
        raise event_error(sentence, f'expected a name as the "type" of an event, got {_shown(type_)}')
    arguments, attributes = given.get("arguments", []), given.get("attributes", {})
    if not isinstance(arguments, Sequence) or not all(_is_argument(each, n) for each in arguments):
        problem = f'expected "arguments" as a list of [start, end, role] with 0 <= start < end <= {n}'
        raise event_error(sentence, f"{problem}, got {_shown(arguments)}")
    if not isinstance(attributes, Mapping) or not all(isinstance(each, str) for each in attributes.values()):
        raise event_error(sentence, f'expected "attributes" as an object of texts, got {_shown(attributes)}')
    ordered = tuple(sorted((start, end, role) for start, end, role in arguments))
    return Event(trigger, type_, ordered, tuple(sorted(attributes.items())))


def _is_argument(given: Json, n: int) -> bool:
    if not isinstance(given, Sequence) or len(given) != 3:
        return False
    start, end, role = given
    return type(start) is int and type(end) is int and 0 <= start < end <= n and isinstance(role, str) and bool(role)


def entities_of(sentence: Sentence) -> list[Entity]:
    """Return the entities that the tags of a sentence spell."""
    if sentence.tags is None:
        raise event_error(
            sentence, "expected the entities of a sentence as its tags, got none; O is for a word in none"
        )
    return spans_of(sentence.tags, infer_scheme([sentence.tags]))


def arcs_of(sentence: Sentence) -> list[tuple[int, int, str]]:
    """Return the dependencies of a sentence: head and dependent, counted from 0, and the relation; the root's is left
    out.
    """
    heads, relations, n = sentence.extra.get(HEADS), sentence.extra.get(RELATIONS), len(sentence)
    if not isinstance(heads, Sequence) or len(heads) != n or any(type(h) is not int or not 0 <= h <= n for h in heads):
        problem = f'expected {n} heads in 0..{n} under "{HEADS}", as the model reads dependencies'
        fix = "add them, or train with --no-dependencies"
        raise event_error(sentence, f"{problem}; got {_shown(heads)}; {fix}")
    if not isinstance(relations, Sequence) or len(relations) != n or not all(isinstance(r, str) for r in relations):
        raise event_error(sentence, f'expected {n} relations under "{RELATIONS}", got {_shown(relations)}')
    pairs = zip(heads, relations, strict=True)
    return [(head - 1, i, relation) for i, (head, relation) in enumerate(pairs) if head]


def has_arcs(sentence: Sentence) -> bool:
    """Return whether a sentence says how its words depend on one another."""
    return HEADS in sentence.extra


def sentences_in(sentence: Sentence) -> list[Span]:
    """Return the spans of the sentences of a document; a record without them is one sentence.

    >>> sentences_in(Sentence(("a", "b", "c"), extra={"sentences": [[0, 2], [2, 3]]}))
    [(0, 2), (2, 3)]
    """
    n, given = len(sentence), sentence.extra.get(SENTENCES)
    if given is None:
        return [(0, n)]
    if not isinstance(given, Sequence) or not all(_is_span(each, n) for each in given):
        raise event_error(sentence, f'expected "{SENTENCES}" as a list of [start, end] within {n}, got {_shown(given)}')
    spans = [(start, end) for start, end in given]
    if [start for start, _ in spans] + [n] != [0] + [end for _, end in spans]:
        problem = f'expected "{SENTENCES}" one after another from 0 to {n}, without gaps'
        raise event_error(sentence, f"{problem}, got {_shown(given)}")
    return spans


def coreference_of(sentence: Sentence) -> list[list[Span]] | None:
    """Return spans that mention the same thing; None if the record does not say."""
    n, given = len(sentence), sentence.extra.get(COREFERENCE)
    if given is None:
        return None
    if not isinstance(given, Sequence) or not all(
        isinstance(same, Sequence) and all(_is_span(each, n) for each in same) for same in given
    ):
        problem = f'expected "{COREFERENCE}" as lists of [start, end] with 0 <= start < end <= {n}'
        raise event_error(sentence, f"{problem}, got {_shown(given)}")
    groups = [[(start, end) for start, end in same] for same in given]
    every = [span for same in groups for span in same]
    if len(set(every)) != len(every):
        twice = next(span for span in every if every.count(span) > 1)
        raise event_error(
            sentence, f'expected each span once in "{COREFERENCE}", got {list(twice)} again; join its lists'
        )
    return groups


def links_of(sentence: Sentence) -> list[tuple[int, str, int]]:
    """Return events that have a role in others: (event, role, event), by their places in the record."""
    n, given = len(sentence.extra.get(EVENTS, ())), sentence.extra.get(LINKS, [])
    if not isinstance(given, Sequence) or not all(_is_link(each, n) for each in given):
        problem = f'expected "{LINKS}" as a list of [event, role, event] with events in 0..{n - 1}'
        raise event_error(sentence, f"{problem}, got {_shown(given)}")
    return [(source, role, target) for source, role, target in given]


def check_record(sentence: Sentence) -> Sentence:
    """Return the sentence, if all that its record says of events can be read."""
    for read in (all_events_of, sentences_in, coreference_of, links_of):
        read(sentence)
    return sentence


def _is_span(given: Json, n: int) -> bool:
    is_pair = isinstance(given, Sequence) and len(given) == 2 and all(type(each) is int for each in given)
    return is_pair and 0 <= given[0] < given[1] <= n


def _is_link(given: Json, n: int) -> bool:
    if not isinstance(given, Sequence) or len(given) != 3:
        return False
    source, role, target = given
    return (
        all(type(each) is int and 0 <= each < n for each in (source, target)) and isinstance(role, str) and bool(role)
    )


def _shown(given: Json) -> str:
    text = "nothing" if given is None or given is NOTHING else repr(given)
    return text if len(text) < 60 else f"{text[:57]}..."


def event_error(sentence: Sentence, problem: str) -> DataError:
    return DataError(sentence.file or "sentence", problem, line=sentence.line)
