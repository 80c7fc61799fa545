"""Frame graphs: typed frames, the phrases that mention them, and their roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trelliswork.errors import ConstraintError


class Mention(NamedTuple):
    """Tokens [start, end) that speak of a frame."""

    start: int
    end: int
    frame: int


class Slot(NamedTuple):
    """A role of the frame `source`: `target` is the number of another frame, or a constant as text."""

    source: int
    role: str
    target: int | str


@dataclass(frozen=True)
class FrameGraph:
    """The type of each frame, mentions and slots; frames are numbered from 0.

    >>> visit = FrameGraph(("Visit", "PER"), (Mention(1, 2, 0), Mention(0, 1, 1)), (Slot(0, "Agent", 1),))
    >>> visit.renumbered([1, 0]).types
    ('PER', 'Visit')
    """

    types: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    slots: tuple[Slot, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.types)
        for each in self.mentions:
            if not 0 <= each.frame < n or not 0 <= each.start < each.end:
                problem = f"a mention must be (start, end, frame) with start < end and a frame in 0..{n - 1}"
                raise ConstraintError(f"{problem}; got {tuple(each)}")
        for slot in self.slots:
            ends = [slot.source, *([] if isinstance(slot.target, str) else [slot.target])]
            if any(not 0 <= end < n for end in ends):
                raise ConstraintError(f"a slot must join frames in 0..{n - 1}; got {tuple(slot)}")

    def renumbered(self, order: Sequence[int]) -> FrameGraph:
        """The same graph with frame order[i] as frame i; mentions and slots sorted, each once."""
        new = {old: i for i, old in enumerate(order)}
        slots = {
            Slot(new[source], role, target if isinstance(target, str) else new[target])
            for source, role, target in self.slots
        }
        return FrameGraph(
            tuple(self.types[old] for old in order),
            tuple(sorted({Mention(start, end, new[frame]) for start, end, frame in self.mentions})),
            tuple(sorted(slots, key=lambda slot: (slot.source, slot.role, str(type(slot.target)), slot.target))),
        )

    def in_order(self) -> FrameGraph:
        """The same graph with frames in the order of their first mentions, those without any behind as they were.

        >>> FrameGraph(("Visit", "PER"), (Mention(1, 2, 0), Mention(0, 1, 1))).in_order().types
        ('PER', 'Visit')
        """
        first = {frame: place for place, (_, _, frame) in reversed(list(enumerate(sorted(self.mentions))))}
        return self.renumbered(sorted(range(len(self.types)), key=lambda frame: first.get(frame, len(self.mentions))))
