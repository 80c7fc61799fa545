"""The frame system in plain Python, with lists, and random frame graphs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from trelliswork.structures.beam.frames import Action, FrameGraph, Kind, Mention, Slot

TYPES, ROLES, VALUES = ("Go", "PER", "LOC"), ("Agent", "Place"), ("past", "now")


@dataclass
class PlainState:
    """The state of one sentence; frames are numbered as they are made, `attention` has the front first."""

    n: int
    room: int
    position: int = 0
    stopped: bool = False
    attention: list[int] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    mentions: list[tuple[int, int, int]] = field(default_factory=list)
    slots: list[tuple[int, str, int | str]] = field(default_factory=list)

    def allows(self, action: Action) -> bool:
        """Whether the action can be taken."""
        kind, attention = action.kind, self.attention
        if kind is Kind.STOP or self.position == self.n:
            return kind is Kind.STOP and self.position == self.n
        if max(action.source, action.target) >= len(attention) or self.position + action.length > self.n:
            return False
        span = (self.position, self.position + action.length)
        if kind is Kind.EVOKE and (*span, action.type) in [(i, j, self.types[f]) for i, j, f in self.mentions]:
            return False
        if kind is Kind.REFER and (*span, attention[action.source]) in self.mentions:
            return False
        if kind is Kind.CONNECT:
            slot = (attention[action.source], action.role, attention[action.target])
            if slot in self.slots:
                return False
        if kind is Kind.ASSIGN and (attention[action.source], action.role, action.value) in self.slots:
            return False
        if kind in (Kind.EVOKE, Kind.EMBED, Kind.ELABORATE) and len(self.types) == self.room:
            return False
        if kind in (Kind.EVOKE, Kind.REFER) and len(self.mentions) == self.room:
            return False
        makes_slot = kind in (Kind.CONNECT, Kind.ASSIGN, Kind.EMBED, Kind.ELABORATE)
        return not (makes_slot and len(self.slots) == 2 * self.room)

    def take(self, action: Action) -> None:
        """Do it."""
        kind, attention = action.kind, self.attention
        if kind is Kind.SHIFT:
            self.position += 1
        elif kind is Kind.STOP:
            self.stopped = True
        elif kind is Kind.REFER:
            frame = attention.pop(action.source)
            self.mentions.append((self.position, self.position + action.length, frame))
            attention.insert(0, frame)
        elif kind in (Kind.CONNECT, Kind.ASSIGN):
            target = action.value if kind is Kind.ASSIGN else attention[action.target]
            frame = attention.pop(action.source)
            self.slots.append((frame, action.role, target))
            attention.insert(0, frame)
        else:
            frame = len(self.types)
            self.types.append(action.type)
            if kind is Kind.EVOKE:
                self.mentions.append((self.position, self.position + action.length, frame))
            elif kind is Kind.EMBED:
                self.slots.append((frame, action.role, attention[action.target]))
            else:
                self.slots.append((attention[action.source], action.role, frame))
            attention.insert(0, frame)

    def graph(self) -> FrameGraph:
        """What was built."""
        found = FrameGraph(
            tuple(self.types),
            tuple(Mention(*each) for each in self.mentions),
            tuple(Slot(*each) for each in self.slots),
        )
        return found.renumbered(range(len(self.types)))


def random_graph(source: random.Random, n: int) -> FrameGraph:
    """Mentioned frames, frames that hang on others by a slot, several mentions, constants, loops and double slots."""
    types, spans = list[str](), dict[tuple[int, int], set[str]]()
    mentions, slots = list[Mention](), list[Slot]()

    def mention(frame: int) -> None:
        start = source.randrange(n)
        end = source.randint(start + 1, n)
        if types[frame] not in spans.setdefault((start, end), set()):
            spans[start, end].add(types[frame])
            mentions.append(Mention(start, end, frame))

    for _ in range(source.randint(0, 4)):
        types.append(source.choice(TYPES))
        mention(len(types) - 1)
        if not any(each.frame == len(types) - 1 for each in mentions):
            types.pop()
    if not types:
        return FrameGraph()
    for _ in range(source.randint(0, 2)):
        mention(source.randrange(len(types)))
    for _ in range(source.randint(0, 3)):  # no phrase mentions these
        ends = [source.randrange(len(types)), len(types)]
        source.shuffle(ends)
        types.append(source.choice(TYPES))
        slots.append(Slot(ends[0], source.choice(ROLES), ends[1]))
    for _ in range(source.randint(0, 5)):
        target: int | str = source.choice(VALUES) if source.random() < 0.3 else source.randrange(len(types))
        slots.append(Slot(source.randrange(len(types)), source.choice(ROLES), target))
    order = source.sample(range(len(types)), len(types))
    return FrameGraph(tuple(types), tuple(mentions), tuple(slots)).renumbered(order)
