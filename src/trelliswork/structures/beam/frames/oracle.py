"""From a frame graph to actions that build it, one sequence of several."""

from __future__ import annotations

from collections.abc import Iterator

from trelliswork.errors import ConstraintError
from trelliswork.structures.beam.frames.actions import SHIFT, STOP, Action, Kind
from trelliswork.structures.beam.frames.graph import FrameGraph, Slot


def actions_of(graph: FrameGraph, n: int) -> tuple[list[Action], list[int]]:
    """Actions that build a graph over `n` tokens, and its frames in the order in which they are made.

    At each token its mentions come first, the longest of them leading. As soon as a frame is made, so are its slots
    whose other end is there already, and the neighbours that no phrase mentions. A frame that no chain of slots joins
    to a mention cannot be built.

    >>> from trelliswork.structures.beam.frames.graph import Mention
    >>> graph = FrameGraph(("Visit", "PER"), (Mention(0, 1, 1), Mention(1, 2, 0)), (Slot(0, "Agent", 1),))
    >>> [str(action) for action in actions_of(graph, 2)[0]]
    ['EVOKE(PER, 1)', 'SHIFT', 'EVOKE(Visit, 1)', 'CONNECT(0, Agent, 1)', 'SHIFT', 'STOP']
    """  # [S4, SLING]
    _check(graph, n)
    builder = _Builder(graph)
    found = [action for position in range(n) for action in (*builder.at(position), SHIFT)]
    lost = set(range(len(graph.types))) - set(builder.made)
    if lost:
        frame = min(lost)
        problem = f"expected slots that lead from each frame to one with a mention; frame {frame}"
        raise ConstraintError(f"{problem} ({graph.types[frame]}) has none; add a mention or a slot")
    return [*found, STOP], builder.made


def _check(graph: FrameGraph, n: int) -> None:
    seen: dict[tuple[int, int, str], int] = {}
    for start, end, frame in graph.mentions:
        if end > n:
            raise ConstraintError(f"mentions must end at token {n} or before; got {(start, end, frame)}")
        type_ = graph.types[frame]
        if seen.setdefault((start, end, type_), frame) != frame:
            problem = f"expected one frame of a type for each phrase, got two of {type_} at {(start, end)}"
            raise ConstraintError(f"{problem}; make them one frame")


class _Builder:
    """The attention buffer with frames as the graph numbers them, and what is still to be made."""

    def __init__(self, graph: FrameGraph):
        self.graph, self.attention, self.made = graph, list[int](), list[int]()
        self.waiting = list(dict.fromkeys(graph.slots))
        self.mentioned = {each.frame for each in graph.mentions}

    def at(self, position: int) -> Iterator[Action]:
        here = sorted({each for each in self.graph.mentions if each.start == position}, key=lambda m: (-m.end, m.frame))
        for mention in here:
            frame, length = mention.frame, mention.end - mention.start
            if frame in self.attention:
                yield Action(Kind.REFER, length, source=self._attend(frame))
            else:
                self._make(frame)
                yield Action(Kind.EVOKE, length, self.graph.types[frame])
            yield from self._complete(frame)

    def _complete(self, frame: int) -> Iterator[Action]:
        """The slots of a frame that can be made now."""
        for slot in [each for each in self.waiting if frame in (each.source, each.target)]:
            if slot in self.waiting:  # a neighbour may have made it meanwhile
                yield from self._fill(slot, frame)

    def _fill(self, slot: Slot, frame: int) -> Iterator[Action]:
        source, role, target = slot
        other = target if source == frame else source
        if isinstance(target, str):
            self.waiting.remove(slot)
            yield Action(Kind.ASSIGN, source=self._attend(source), role=role, value=target)
        elif other in self.attention:
            self.waiting.remove(slot)
            place = self.attention.index(target)
            yield Action(Kind.CONNECT, source=self._attend(source), role=role, target=place)
        elif other not in self.mentioned and not isinstance(other, str):
            self.waiting.remove(slot)
            place, type_ = self.attention.index(frame), self.graph.types[other]
            self._make(other)
            if source == frame:
                yield Action(Kind.ELABORATE, type=type_, source=place, role=role)
            else:
                yield Action(Kind.EMBED, type=type_, role=role, target=place)
            yield from self._complete(other)

    def _make(self, frame: int) -> None:
        self.made.append(frame)
        self.attention.insert(0, frame)

    def _attend(self, frame: int) -> int:
        """Bring a frame to the front; the place where it was."""
        place = self.attention.index(frame)
        self.attention.insert(0, self.attention.pop(place))
        return place
