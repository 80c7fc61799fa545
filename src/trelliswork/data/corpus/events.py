"""Events of a derivation: verbs that say what happens, and the named entities that take part in it.

A trigger is a verb of one of the kinds in `EVENTS`, or a noun of the kind event.Type. The arguments of a verb are
entities that head its subject, its object, or the phrase of a preposition beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trelliswork.data.corpus.grammar import ENTITY_LABEL, Derivation
from trelliswork.data.events import Argument, Event

EVENTS: dict[str, tuple[str, str, str]] = {  # kind of verb: (type of event, role of the subject, role of the object)
    "meet": ("Meet", "Agent", "Person"),
    "visit": ("Visit", "Agent", "Destination"),
    "join": ("Join", "Agent", "Organisation"),
    "hire": ("Hire", "Employer", "Person"),
    "labour": ("Employ", "Person", "Employer"),
    "acquire": ("Acquire", "Buyer", "Target"),
    "trade": ("Trade", "Seller", "Product"),
    "expand": ("Expand", "Organisation", "Organisation"),
    "born": ("Birth", "Person", "Person"),
    "react": ("React", "Cause", "Person"),  # in documents; so are nouns for events
}
PREPOSITIONS = {"in": "Place", "when": "Time", "for_firm": "Employer"}
OUTSIDE = "O"  # a token that triggers nothing

Span = tuple[int, int]
TENSES = {"VBD": "past", "VBZ": "present", "VBP": "present", "VB": "infinitive", "VBG": "progressive", "VBN": "perfect"}


@dataclass(frozen=True)
class _Outside:
    """Participants of a verb phrase that stand outside of it."""

    subject: Span | None = None
    others: tuple[Argument, ...] = ()


def event_mentions(tree: Derivation) -> list[Event]:
    """Return the events of a sentence, from left to right.

    >>> name = Derivation("NML", "PER.short", (Derivation("NNP", "first", word="Ann"),))
    >>> place = Derivation("NML", "LOC.any", (Derivation("NNP", "place_name", word="Rome"),))
    >>> where = Derivation("NP", "where", (place,))
    >>> phrase = Derivation("VP", "who", (Derivation("VBD", "visit", word="visited"), where))
    >>> event_mentions(Derivation("S", "clause", (Derivation("NP", "who", (name,)), phrase), head=1))
    [Event(trigger=1, type='Visit', arguments=((0, 1, 'Agent'), (2, 3, 'Destination')))]
    """
    return sorted(_events(tree, 0, _Outside()), key=lambda event: event.trigger)


def _events(node: Derivation, start: int, outside: _Outside) -> Iterator[Event]:
    placed = list(_children(node, start))
    inside = _clause(placed, outside) if node.label == "S" else outside
    for child, first in placed:
        if node.label == "VP" and child.kind in EVENTS and not child.children:
            yield _event(child, first, placed, outside)
        if child.kind.startswith("event."):
            yield Event(first, child.kind.split(".")[1], ())
        carries = child.label == "VP" or (node.label == "VP" and child.label == "S")  # "plans to visit": same subject
        yield from _events(child, first, inside if carries else _Outside())


def _clause(placed: list[tuple[Derivation, int]], outside: _Outside) -> _Outside:
    """Return the subject of a clause and when it happens; a clause without subject has that of the one around it."""
    labels = [child.label for child, _ in placed]
    before = placed[: labels.index("VP")] if "VP" in labels else []
    subjects = [(child, first) for child, first in before if child.label == "NP"]
    if not subjects:
        return outside
    return _Outside(_entity(*subjects[-1]), tuple(_in_phrases(before)))


def _event(verb: Derivation, trigger: int, placed: list[tuple[Derivation, int]], outside: _Outside) -> Event:
    type_, of_subject, of_object = EVENTS[verb.kind]
    objects = [_entity(child, first) for child, first in placed if child.label == "NP" and first > trigger]
    arguments = [(*span, of_object) for span in objects if span is not None]
    if outside.subject is not None:
        arguments.append((*outside.subject, of_subject))
    tense = (("Tense", TENSES.get(verb.label, "other")),)
    return Event(trigger, type_, tuple(sorted([*arguments, *outside.others, *_in_phrases(placed)])), tense)


def _in_phrases(placed: list[tuple[Derivation, int]]) -> Iterator[Argument]:
    """Yield entities in phrases of prepositions: in Rome, on Monday."""
    for child, first in placed:
        if child.label == "PP" and child.kind in PREPOSITIONS:
            for part, at in _children(child, first):
                span = _entity(part, at) if part.label == "NP" else None
                if span is not None:
                    yield (*span, PREPOSITIONS[child.kind])


def _entity(node: Derivation, start: int) -> Span | None:
    """Return the entity that the heads lead to, if they lead to one."""
    if node.label == ENTITY_LABEL:
        return start, start + len(node.words())
    if not node.children:
        return None
    child, first = list(_children(node, start))[node.head]
    return _entity(child, first)


def _children(node: Derivation, start: int) -> Iterator[tuple[Derivation, int]]:
    """Yield children, each with its first position."""
    for child in node.children:
        yield child, start
        start += len(child.words())
