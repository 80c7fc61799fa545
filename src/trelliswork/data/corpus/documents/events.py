"""Events of a document, what refers to what, and what is implied; all read from derivations.

The kind of a mention of the cast is TYPE.form.number, that of a noun for an event event.Type.sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trelliswork.data.corpus.derivation import ENTITY_LABEL, Derivation, placed
from trelliswork.data.corpus.documents.cast import EMPLOYEE
from trelliswork.data.corpus.events import event_mentions
from trelliswork.data.events import IMPLIED, Event

NOUN = "event"
Span = tuple[int, int]
Link = tuple[int, str, int]


class Layers(NamedTuple):
    """Events, links (event, role, event) between them by number, and the spans of what is mentioned several times."""

    events: list[Event]
    links: list[Link]
    coreference: list[list[Span]]


def noun_kind(type_: str, sentence: int) -> str:
    """The kind of a noun that speaks of the event of an earlier sentence."""
    return f"{NOUN}.{type_}.{sentence}"


def layers_of(trees: Sequence[Derivation]) -> Layers:
    """All layers of a document."""
    events, links = list[Event](), list[Link]()
    same: dict[object, list[Span]] = {}
    start = 0
    for number, tree in enumerate(trees):
        said = [event.moved(start) for event in event_mentions(tree)]
        nouns = {at: node.kind for node, at in placed(tree, start) if node.kind.startswith(f"{NOUN}.")}
        first = len(events)
        events += said
        for event in said:
            kind = nouns.get(event.trigger, noun_kind(event.type, number))
            same.setdefault(kind, []).append((event.trigger, event.trigger + 1))
        main = next((first + i for i, event in enumerate(said) if event.trigger not in nouns), None)
        links += [(main, _role(events[main]), first + i) for i, event in enumerate(said)
                  if main is not None and event.trigger in nouns]  # fmt: skip
        for event, role in _implied(tree, start):
            links += [(main, role, len(events))] if role and main is not None else []
            events.append(event)
        for node, at in placed(tree, start):
            if node.label == ENTITY_LABEL and node.kind.count(".") == 2:
                same.setdefault(int(node.kind.rpartition(".")[2]), []).append((at, at + len(node.words())))
        start += len(tree.words())
    return Layers(events, links, [sorted(spans) for spans in same.values() if len(spans) > 1])


def _role(event: Event) -> str:
    """The role of an event told before: what causes a reaction, or what something comes after."""
    return "Cause" if event.type == "React" else "After"


def _implied(tree: Derivation, start: int) -> Iterator[tuple[Event, str]]:
    """What no word says by itself, with its role in the event of the sentence, if it has one."""
    for node, at in placed(tree, start):
        if node.kind == EMPLOYEE:
            firm, title, name = node.children
            there = at + len(firm.words())
            person = there + len(title.words())
            roles = ((at, there, "Employer"), (person, person + len(name.words()), "Person"))
            yield Event(IMPLIED, "Employ", roles), ""
        if node.kind == "crew":
            yield Event(IMPLIED, "Group", (), (("Size", node.children[0].word),)), "Person"
