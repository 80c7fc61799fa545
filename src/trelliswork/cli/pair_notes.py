"""What is worth knowing about new sources: symbols that a transducer has never seen, and searches that it gave up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from trelliswork.cli.messages import say
from trelliswork.data import Sentence
from trelliswork.models.base import Answer

SHOWN = 5


def noting_unknown(model: Any, pairs: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sources of a transducer as they are; after the last, a line about symbols that it does not know."""
    if model.learns_from != "pairs":
        yield from pairs
        return
    known: dict[str, bool | None] = {}
    unknown: Counter[str] = Counter()
    first = ""
    for pair in pairs:
        for symbol in set(pair.words):
            if known.setdefault(symbol, model.knows(symbol)) is False:
                unknown[symbol] += 1
                first = first or f"{pair.file}:{pair.line}"
        yield pair
    if unknown:
        shown = ", ".join(f"{symbol!r} ({n:,})" for symbol, n in unknown.most_common(SHOWN))
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        say(f"note: symbols that the model has never seen: {shown}{more}, first in {first}; answers pass them over")


def noting_uncertain(model: Any, answers: Iterable[tuple[Sentence, Answer]]) -> Iterator[tuple[Sentence, Answer]]:
    """The answers as they are; after the last, a line about those that may not be the best.

    Models that search with a beam anyway are never certain, and nothing is said.
    """
    total, uncertain, first = 0, 0, ""
    for pair, answer in answers:
        total += 1
        if model.search == "exact" and not answer.certain:
            uncertain += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair, answer
    if uncertain:
        say(f"note: {uncertain:,} of {total:,} answers are the best that was found, and others may be more probable: "
            f"the search was given up, first in {first}")  # fmt: skip
