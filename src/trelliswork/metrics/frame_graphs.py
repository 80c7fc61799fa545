"""Precision, recall and F1 of frame graphs that are aligned with gold ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trelliswork.data.events import Entity, Event
from trelliswork.draw.notebook import Rich
from trelliswork.errors import TrellisworkError
from trelliswork.structures.beam.frames.graph import FrameGraph

PARTS = ("mentions", "frames", "types", "roles", "labels")


class PartScores(NamedTuple):
    """Counts of parts in the gold graphs and in the predicted ones, and of those that are right."""

    n_gold: int
    n_found: int
    n_right: int

    @property
    def precision(self) -> float:
        return self.n_right / self.n_found if self.n_found else 0.0

    @property
    def recall(self) -> float:
        return self.n_right / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.n_right / (self.n_gold + self.n_found) if self.n_gold + self.n_found else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "n_gold": self.n_gold}


@dataclass(frozen=True)
class GraphScores(Rich):
    """Scores by part: mentions, frames, types, roles (slots that are frames) and labels (slots that are constants)."""

    parts: Mapping[str, PartScores] = field(default_factory=dict)

    @property
    def combined(self) -> PartScores:
        """All parts counted together."""
        return PartScores(*map(sum, zip(*self.parts.values(), strict=True)))


def frame_scores(gold: Sequence[FrameGraph], found: Sequence[FrameGraph]) -> GraphScores:
    """Scores of graphs, document by document.

    A graph is seen from its document: that leads to its phrases, these to the frames that they mention, and these by
    roles to further frames. The two graphs are aligned along these ways: phrases that are the same, then the frames
    that they mention, those of one type first, then frames that the same role of aligned frames leads to. Right is a
    mention whose phrase mentions the aligned frame, a frame that is aligned, its type if it is the same, and a slot if
    both frames of it are aligned, or its frame and the constant is the same.

    >>> from trelliswork.structures.beam.frames.graph import Mention, Slot
    >>> gold = FrameGraph(("Visit", "PER"), (Mention(1, 2, 0), Mention(0, 1, 1)), (Slot(0, "Agent", 1),))
    >>> found = FrameGraph(("Visit", "ORG"), (Mention(1, 2, 0), Mention(0, 1, 1)), (Slot(0, "Agent", 1),))
    >>> scores = frame_scores([gold], [found])
    >>> scores.parts["roles"].f1, scores.parts["types"].f1
    (1.0, 0.5)

    Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing.
    """  # [S4, SLING]
    if len(gold) != len(found):
        raise TrellisworkError(f"expected a graph found for each of {len(gold)} gold graphs; got {len(found)}")
    totals = {part: [0, 0, 0] for part in PARTS}
    for right, given in zip(gold, found, strict=True):
        aligned = align(right, given)
        expected, answered = _parts(right, aligned), _parts(given, {frame: frame for frame in aligned.values()})
        for part in PARTS:
            sizes = _sizes(right)[part], _sizes(given)[part], (expected[part] & answered[part]).total()
            totals[part] = [before + size for before, size in zip(totals[part], sizes, strict=True)]
    return GraphScores({part: PartScores(*sizes) for part, sizes in totals.items()})


def align(gold: FrameGraph, found: FrameGraph) -> dict[int, int]:
    """Return the frame found for each gold frame, as far as there is one; no frame is found twice."""
    aligned: dict[int, int] = {}
    for mine, other in (*_by_phrase(gold, found, same_type=True), *_by_phrase(gold, found, same_type=False)):
        _join(aligned, mine, other)
    waiting = list(aligned)
    while waiting:
        frame = waiting.pop(0)
        for mine, other in _by_role(gold, found, frame, aligned[frame]):
            if _join(aligned, mine, other):
                waiting.append(mine)
    return aligned


def _join(aligned: dict[int, int], mine: int, other: int) -> bool:
    new = mine not in aligned and other not in aligned.values()
    if new:
        aligned[mine] = other
    return new


def _by_phrase(gold: FrameGraph, found: FrameGraph, *, same_type: bool) -> Iterator[tuple[int, int]]:
    for start, end, mine in sorted(gold.mentions):
        for _, _, other in (each for each in sorted(found.mentions) if each[:2] == (start, end)):
            if not same_type or gold.types[mine] == found.types[other]:
                yield mine, other


def _by_role(gold: FrameGraph, found: FrameGraph, frame: int, as_found: int) -> Iterator[tuple[int, int]]:
    """Neighbours of an aligned frame that the same role leads to, there or back; those of one type first."""
    pairs = list[tuple[int, int]]()
    for slot in gold.slots:
        for other in found.slots:
            if slot.role != other.role or isinstance(slot.target, str) or isinstance(other.target, str):
                continue
            if (slot.source, other.source) == (frame, as_found):
                pairs.append((slot.target, other.target))
            if (slot.target, other.target) == (frame, as_found):
                pairs.append((slot.source, other.source))
    yield from sorted(pairs, key=lambda pair: gold.types[pair[0]] != found.types[pair[1]])


def _sizes(graph: FrameGraph) -> dict[str, int]:
    constants = sum(isinstance(slot.target, str) for slot in set(graph.slots))
    return {
        "mentions": len(set(graph.mentions)),
        "frames": len(graph.types),
        "types": len(graph.types),
        "roles": len(set(graph.slots)) - constants,
        "labels": constants,
    }


def _parts(graph: FrameGraph, names: Mapping[int, int]) -> dict[str, Counter[tuple[object, ...]]]:
    """Return the parts whose frames have a name, by which they can be compared with those of the other graph."""
    slots = [slot for slot in set(graph.slots) if slot.source in names]
    return {
        "mentions": Counter((start, end, names[f]) for start, end, f in set(graph.mentions) if f in names),
        "frames": Counter((name,) for name in names.values()),
        "types": Counter((name, graph.types[frame]) for frame, name in names.items()),
        "roles": Counter((names[s], role, names[t]) for s, role, t in slots if not isinstance(t, str) and t in names),
        "labels": Counter((names[s], role, t) for s, role, t in slots if isinstance(t, str)),
    }


# Precision, recall and F1 of entities, triggers and arguments.

Found = tuple[Sequence[Entity], Sequence[Event]]


def event_scores(gold: Sequence[Found], found: Sequence[Found]) -> dict[str, PartScores]:
    """Scores of entities (span and type), triggers (token and type) and arguments (event, span and role).

    >>> gold = [([(0, 1, "PER")], [Event(1, "Sing", ((0, 1, "Agent"),))])]
    >>> found = [([(0, 1, "PER")], [Event(1, "Sing", ())])]
    >>> {name: scores.f1 for name, scores in event_scores(gold, found).items()}
    {'entities': 1.0, 'triggers': 1.0, 'arguments': 0.0}
    """
    if len(gold) != len(found):
        raise TrellisworkError(f"expected events found for each of {len(gold)} sentences; got {len(found)}")
    mine, other = _event_parts(gold), _event_parts(found)
    return {
        name: PartScores(mine[name].total(), other[name].total(), (mine[name] & other[name]).total()) for name in mine
    }


def _event_parts(rows: Iterable[Found]) -> dict[str, Counter[tuple[object, ...]]]:
    entities, triggers, arguments = (
        Counter[tuple[object, ...]](),
        Counter[tuple[object, ...]](),
        Counter[tuple[object, ...]](),
    )
    for row, (spans, events) in enumerate(rows):
        entities.update((row, *span) for span in spans)
        for event in events:
            triggers[row, event.trigger, event.type] += 1
            arguments.update((row, event.trigger, event.type, *argument) for argument in event.arguments)
    return {"entities": entities, "triggers": triggers, "arguments": arguments}
