"""Precision, recall and F1 of entities, triggers and arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from trelliswork.data.events import Entity, Event
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.frame_graphs import PartScores

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
    mine, other = _parts(gold), _parts(found)
    return {
        name: PartScores(mine[name].total(), other[name].total(), (mine[name] & other[name]).total()) for name in mine
    }


def _parts(rows: Iterable[Found]) -> dict[str, Counter[tuple[object, ...]]]:
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
