"""Events of sentences: triggers, their arguments, and the dependencies between words if they are known.

A record of a JSON-lines file has `tokens`, the entities as `tags`, and

    "events": [{"trigger": 1, "type": "Visit", "arguments": [[0, 1, "Agent"], [2, 3, "Destination"]]}]

with positions of tokens counted from 0; an argument is [start, end, role] with `end` exclusive. `attributes` of an
event ({"Tense": "past"}) are optional, and so are the `heads` of all words, counted from 1 with 0 for the root, and
their `relations`. All of it is kept in `Sentence.extra`, where the reader of JSON lines leaves what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.structures.beam.frames.graph import FrameGraph, Mention, Slot
from trelliswork.tags.schemes import infer_scheme, spans_of

EVENTS, HEADS, RELATIONS = "events", "heads", "relations"
Entity = tuple[int, int, str]  # [start, end) and the type
Argument = tuple[int, int, str]  # [start, end) and the role


@dataclass(frozen=True)
class Event:
    """What happens: the token that says so, the type, who takes part in which role, and attributes by name."""

    trigger: int
    type: str
    arguments: tuple[Argument, ...]
    attributes: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def record(self) -> dict[str, Any]:
        """As it is written in JSON."""
        found = {"trigger": self.trigger, "type": self.type, "arguments": [list(each) for each in self.arguments]}
        return found | ({"attributes": dict(self.attributes)} if self.attributes else {})


def events_of(sentence: Sentence) -> list[Event]:
    """The events of a sentence, by trigger; a record that is not one is an error.

    >>> given = {"trigger": 1, "type": "Sing", "arguments": [[0, 1, "Agent"]]}
    >>> events_of(Sentence(("Ann", "sings"), extra={"events": [given]}))
    [Event(trigger=1, type='Sing', arguments=((0, 1, 'Agent'),))]
    """
    given = sentence.extra.get(EVENTS)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _error(sentence, f'expected a list of events under "{EVENTS}", got {_shown(given)}; [] is for none')
    return sorted((_event(each, sentence) for each in given), key=lambda event: (event.trigger, event.type))


def _event(given: Any, sentence: Sentence) -> Event:
    n = len(sentence)
    if not isinstance(given, Mapping):
        raise _error(sentence, f"expected an event as an object, got {_shown(given)}")
    trigger, type_ = given.get("trigger"), given.get("type")
    if type(trigger) is not int or not 0 <= trigger < n:
        raise _error(sentence, f'expected the number of a token, 0..{n - 1}, as "trigger", got {_shown(trigger)}')
    if not isinstance(type_, str) or not type_:
        raise _error(sentence, f'expected a name as the "type" of an event, got {_shown(type_)}')
    arguments, attributes = given.get("arguments", []), given.get("attributes", {})
    if not isinstance(arguments, Sequence) or not all(_is_argument(each, n) for each in arguments):
        problem = f'expected "arguments" as a list of [start, end, role] with 0 <= start < end <= {n}'
        raise _error(sentence, f"{problem}, got {_shown(arguments)}")
    if not isinstance(attributes, Mapping) or not all(isinstance(each, str) for each in attributes.values()):
        raise _error(sentence, f'expected "attributes" as an object of texts, got {_shown(attributes)}')
    found = tuple(sorted((start, end, role) for start, end, role in arguments))
    return Event(trigger, type_, found, tuple(sorted(attributes.items())))


def _is_argument(given: Any, n: int) -> bool:
    if not isinstance(given, Sequence) or len(given) != 3:
        return False
    start, end, role = given
    return type(start) is int and type(end) is int and 0 <= start < end <= n and isinstance(role, str) and bool(role)


def entities_of(sentence: Sentence) -> list[Entity]:
    """The entities that the tags of a sentence spell."""
    if sentence.tags is None:
        raise _error(sentence, "expected the entities of a sentence as its tags, got none; O is for a word in none")
    return spans_of(sentence.tags, infer_scheme([sentence.tags]))


def arcs_of(sentence: Sentence) -> list[tuple[int, int, str]]:
    """The dependencies of a sentence: head and dependent, counted from 0, and the relation; the root's is left out."""
    heads, relations, n = sentence.extra.get(HEADS), sentence.extra.get(RELATIONS), len(sentence)
    if not isinstance(heads, Sequence) or len(heads) != n or any(type(h) is not int or not 0 <= h <= n for h in heads):
        problem = f'expected {n} heads in 0..{n} under "{HEADS}", as the model reads dependencies'
        fix = "add them, or train with --no-dependencies"
        raise _error(sentence, f"{problem}; got {_shown(heads)}; {fix}")
    if not isinstance(relations, Sequence) or len(relations) != n or not all(isinstance(r, str) for r in relations):
        raise _error(sentence, f'expected {n} relations under "{RELATIONS}", got {_shown(relations)}')
    pairs = zip(heads, relations, strict=True)
    return [(head - 1, i, relation) for i, (head, relation) in enumerate(pairs) if head]


def has_arcs(sentence: Sentence) -> bool:
    """Whether a sentence says how its words depend on one another."""
    return HEADS in sentence.extra


def frame_graph_of(sentence: Sentence) -> FrameGraph:
    """Entities and events as frames: arguments are roles, attributes constants.

    Entities of the same words and type are one frame, which has several mentions.
    """
    types, mentions, slots = list[str](), list[Mention](), list[Slot]()
    frames: dict[tuple[tuple[str, ...], str], int] = {}
    by_span: dict[tuple[int, int], int] = {}
    for start, end, type_ in entities_of(sentence):
        frame = frames.setdefault((sentence.words[start:end], type_), len(types))
        types += [type_] if frame == len(types) else []
        mentions.append(Mention(start, end, frame))
        by_span[start, end] = frame
    for event in events_of(sentence):
        frame = len(types)
        types.append(event.type)
        mentions.append(Mention(event.trigger, event.trigger + 1, frame))
        for start, end, role in event.arguments:
            if (start, end) not in by_span:
                problem = f"expected an entity at the argument {[start, end, role]} of {event.type}"
                raise _error(sentence, f"{problem}, got none; give its tokens tags")
            slots.append(Slot(frame, role, by_span[start, end]))
        slots += [Slot(frame, name, value) for name, value in event.attributes]
    return FrameGraph(tuple(types), tuple(mentions), tuple(slots)).renumbered(range(len(types)))


def _shown(given: Any) -> str:
    text = "nothing" if given is None else repr(given)
    return text if len(text) < 60 else f"{text[:57]}..."


def _error(sentence: Sentence, problem: str) -> DataError:
    return DataError(sentence.file or "sentence", problem, line=sentence.line)
