"""Frame graphs that a parser has built, the probabilities of their parts, and the answers made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trelliswork.data import Sentence
from trelliswork.models.base import Alternative, Answer, PartProbability
from trelliswork.structures.beam.frames import Actions, FrameGraph, FrameState, FrameSystem, Mention, Slot
from trelliswork.structures.beam.frames.system import MAKES_MENTION, MAKES_SLOT


@dataclass(frozen=True)
class Framed:
    """The frame graph of a record, its probability, and those of the decisions that made its mentions and slots.

    `others` are the most probable graphs, this one first, if several were asked for.
    """

    graph: FrameGraph = field(default_factory=FrameGraph)
    probability: float | None = None
    mentions: Mapping[Mention, float] = field(default_factory=dict)
    slots: Mapping[Slot, float] = field(default_factory=dict)
    search: str = "greedy"
    others: Sequence[tuple[FrameGraph, float]] = ()

    def value(self) -> dict[str, Any]:
        """As plain values."""
        return graph_value(self.graph)


def graph_value(graph: FrameGraph) -> dict[str, Any]:
    """Types of frames, mentions [start, end, frame] and slots [frame, role, target]."""
    return {
        "frames": list(graph.types),
        "mentions": [list(each) for each in graph.mentions],
        "slots": [list(each) for each in graph.slots],
    }


def decision_chances(
    system: FrameSystem, state: FrameState, row: int, decisions: Sequence[int], chances: Sequence[float]
) -> tuple[dict[Mention, float], dict[Slot, float]]:
    """The probability of the decision that made each mention and each slot of the graph of a state."""
    made = [(system.actions.items[d].kind, p) for d, p in zip(decisions, chances, strict=True) if d >= 0]
    mentions, slots = state.mentions[row, 0].tolist(), state.slots[row, 0].tolist()
    of_mentions = [p for kind, p in made if kind in MAKES_MENTION]
    of_slots = [p for kind, p in made if kind in MAKES_SLOT]
    names: Actions = system.actions
    return (
        {Mention(*mention): p for mention, p in zip(mentions, of_mentions, strict=False)},
        {
            Slot(s, names.roles[r], names.values[value] if value >= 0 else t): p
            for (s, r, t, value), p in zip(slots, of_slots, strict=False)
        },
    )


def answer_of(sentence: Sentence, found: Framed, top_k: int, *, confidence: bool) -> Answer:
    """The answer about a record: spans are mentions, parts are slots.

    A role is an arc from the last word of the first mention of its frame to the first mention of its target; a constant
    is at the first mention of its frame. Slots of frames without mentions are no parts.
    """
    graph, first = found.graph, dict[int, Mention]()
    for mention in graph.mentions:
        first.setdefault(mention.frame, mention)
    spans, parts = list[PartProbability](), list[PartProbability]()
    for mention in graph.mentions if confidence else ():
        spans.append(PartProbability(*mention[:2], graph.types[mention.frame], found.mentions[mention]))
    for slot in graph.slots if confidence else ():
        source, role, target = slot
        is_constant = isinstance(target, str)
        at = first.get(source if is_constant else target)  # type: ignore[arg-type]
        if at is not None and source in first:
            label, head = (f"{role}={target}", None) if is_constant else (role, first[source].end)
            parts.append(PartProbability(at.start, at.end, label, found.slots[slot], head=head))
    ranked = (found.others or [(graph, found.probability or 0.0)])[:top_k]
    probability = found.probability if confidence or top_k else None
    return Answer(
        found.value(), probability, sentence.words, parts=parts, spans=spans, offsets=sentence.offsets,
        alternatives=[Alternative(graph_value(each), p) for each, p in ranked], search=found.search,
    )  # fmt: skip
