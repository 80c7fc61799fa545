"""What is worth knowing about new sources: symbols that a transducer has never seen, and searches that it gave up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from trelliswork.cli.messages import say
from trelliswork.data import Sentence
from trelliswork.models.base import Answer


def noting_unknown(model: Any, pairs: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sources of a transducer as they are; after the last, a line about symbols that it does not know."""
    if model.learns_from != "pairs":
        yield from pairs
        return
    known: dict[str, bool] = {}
    unknown: Counter[str] = Counter()
    n_sources, n_affected, first = 0, 0, ""
    for pair in pairs:
        n_sources += 1
        strange = [word for word in set(pair.words) if not _looked_up(word, model, known)]
        if strange:
            unknown.update(strange)
            n_affected += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair
    if unknown:
        symbols = model.unknown_text([symbol for symbol, _ in unknown.most_common()])
        say(f"note: {n_affected:,} of {n_sources:,} sources have symbols that the model has never seen, "
            f"the first in {first}: {symbols}")  # fmt: skip


def _looked_up(word: str, model: Any, known: dict[str, bool]) -> bool:
    """Whether the model knows a symbol, asked once for each; one that cannot say knows all."""
    if word not in known:
        known[word] = model.knows(word) is not False
    return known[word]


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
