"""What is worth knowing about new sources: symbols that a transducer has never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from trelliswork.cli.inputs import say
from trelliswork.data import Sentence

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
