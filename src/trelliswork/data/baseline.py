"""The baseline every tagger must beat: each word gets the tag it had most often, whatever its context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from trelliswork.data.sentence import Sentence
from trelliswork.errors import TrellisworkError


class MajorityBaseline:
    """The most frequent tag of each training word; unseen words get the most frequent tag of all.

    >>> baseline = MajorityBaseline([Sentence(("Ann", "sings", "."), ("B-PER", "O", "O"))])
    >>> baseline.tag(["Ann", "dances"])
    ['B-PER', 'O']
    """

    def __init__(self, train: Iterable[Sentence]):
        by_word: dict[str, Counter[str]] = {}
        overall: Counter[str] = Counter()
        for sentence in train:
            for word, tag in zip(sentence.words, sentence.tags or (), strict=True):
                by_word.setdefault(word, Counter())[tag] += 1
                overall[tag] += 1
        if not overall:
            raise TrellisworkError("expected at least one tagged sentence to count; got none")
        self.default = _most_frequent(overall)
        self.tag_of = {word: _most_frequent(counts) for word, counts in by_word.items()}

    def tag(self, words: Sequence[str]) -> list[str]:
        """Return one tag per word."""
        return [self.tag_of.get(word, self.default) for word in words]


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda tag: (-counts[tag], tag))
