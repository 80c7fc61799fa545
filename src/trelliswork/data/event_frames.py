"""Entities and events of a record as a graph of frames."""

from __future__ import annotations

from trelliswork.data.events import (
    IMPLIED,
    Entity,
    Event,
    Span,
    all_events_of,
    coreference_of,
    entities_of,
    event_error,
    links_of,
)
from trelliswork.data.sentence import Sentence
from trelliswork.structures.beam.frames.graph import FrameGraph, Mention, Slot


def frame_graph_of(sentence: Sentence) -> FrameGraph:
    """Return the graph of entities and events as frames: arguments and links are roles, attributes constants.

    What the record says to be the same thing is one frame with several mentions; if it says nothing of that, entities
    of the same words and type are. An event without a trigger is a frame without a mention.
    """
    frames = _Frames(sentence)
    for entity in entities_of(sentence):
        frames.add_entity(entity)
    events = [frames.add_event(place, event) for place, event in enumerate(all_events_of(sentence))]
    frames.slots += [Slot(events[source], role, events[target]) for source, role, target in links_of(sentence)]
    graph = FrameGraph(tuple(frames.types), tuple(frames.mentions), tuple(frames.slots))
    return graph.renumbered(range(len(frames.types)))


class _Frames:
    """The graph of a record while it is made: frames by what they are known by."""

    def __init__(self, sentence: Sentence):
        self.sentence, same = sentence, coreference_of(sentence)
        self.has_coreference = same is not None
        self.group: dict[Span, object] = {span: ("same", i) for i, spans in enumerate(same or ()) for span in spans}
        self.types, self.mentions, self.slots = list[str](), list[Mention](), list[Slot]()
        self.known, self.by_span = dict[object, int](), dict[Span, int]()

    def _frame(self, key: object, type_: str) -> int:
        if key not in self.known:
            self.known[key] = len(self.types)
            self.types.append(type_)
        return self.known[key]

    def add_entity(self, entity: Entity) -> None:
        start, end, type_ = entity
        name = (start, end) if self.has_coreference else (self.sentence.words[start:end], type_)
        self.by_span[start, end] = self._frame(self.group.get((start, end), name), type_)
        self.mentions.append(Mention(start, end, self.by_span[start, end]))

    def add_event(self, place: int, event: Event) -> int:
        """Return the frame of an event, with its mention and its slots."""
        span = (event.trigger, event.trigger + 1)
        frame = self._frame(self.group.get(span, ("event", place)), event.type)
        self.mentions += [] if event.trigger == IMPLIED else [Mention(*span, frame)]
        for start, end, role in event.arguments:
            if (start, end) not in self.by_span:
                problem = f"expected an entity at the argument {[start, end, role]} of {event.type}"
                raise event_error(self.sentence, f"{problem}, got none; give its tokens tags")
            self.slots.append(Slot(frame, role, self.by_span[start, end]))
        self.slots += [Slot(frame, name, value) for name, value in event.attributes]
        return frame
