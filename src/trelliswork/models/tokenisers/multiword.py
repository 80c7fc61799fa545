"""Tokens that stand for several words: French "du" for "de" and "le", English "don't" for "do" and "n't"."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from trelliswork.text import Token

SHORTEST, LONGEST = 2, 6  # endings by which a new token may be split, in characters
ENOUGH = 0.9  # of the tokens with an ending that must be split alike
OFTEN = 3  # times that an ending must have been seen

Words = tuple[str, ...]


@dataclass(frozen=True)
class MultiwordTable:
    """The words of the tokens seen in training, lower case, and the endings that are cut off new ones.

    A token that was mostly seen whole is not in the table; one never seen is split by its longest ending here.
    """

    whole: Mapping[str, Words] = field(default_factory=dict)
    endings: Mapping[str, Words] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()  # tokens that an ending would split, and that are whole

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> MultiwordTable:
        """Learned from tokens with their words."""
        counts: dict[str, Counter[Words]] = defaultdict(Counter)
        for token in tokens:
            counts[token.text.lower()][tuple(word.lower() for word in token.words)] += 1
        best = {form: found.most_common(1)[0][0] for form, found in counts.items()}
        whole = {form: words for form, words in best.items() if len(words) > 1}
        endings = _endings(best)
        kept = {form for form, words in best.items() if len(words) == 1 and _ending_of(form, endings)}
        return cls(whole, endings, frozenset(kept))

    def words(self, text: str) -> Words:
        """The words of a token, with its capitals where they can be told; itself if it is one word.

        >>> table = MultiwordTable.of([Token("don't", 0, 5, ("do", "n't"))])
        >>> table.words("Don't"), table.words("dogs")
        (('Do', "n't"), ('dogs',))
        """
        lower = text.lower()
        if lower in self.whole:
            return _with_capitals(text, self.whole[lower])
        if lower not in self.seen:
            ending = _ending_of(lower, self.endings)
            if ending:
                return _with_capitals(text, (lower[: -len(ending)], *self.endings[ending]))
        return (text,)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {"whole": self.whole, "endings": self.endings, "seen": sorted(self.seen)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> MultiwordTable:
        """The inverse of `to_json`."""
        tables = [{form: tuple(words) for form, words in stored[name].items()} for name in ("whole", "endings")]
        return cls(tables[0], tables[1], frozenset(stored["seen"]))


def _endings(best: Mapping[str, Words]) -> dict[str, Words]:
    """The endings that are nearly always cut off, with the words that they are."""
    split: dict[str, Counter[Words]] = defaultdict(Counter)
    for form, words in best.items():
        if len(words) > 1 and "".join(words) == form:
            for at in range(1, len(words)):
                split["".join(words[at:])][words[at:]] += 1
    often = {ending: found for ending, found in split.items() if SHORTEST <= len(ending) <= LONGEST}
    totals = Counter(
        form[-size:]
        for form in best
        for size in range(SHORTEST, LONGEST + 1)
        if size < len(form) and form[-size:] in often
    )
    return {
        ending: found.most_common(1)[0][0]
        for ending, found in often.items()
        if found.most_common(1)[0][1] >= max(OFTEN, ENOUGH * totals[ending])
    }


def _ending_of(form: str, endings: Mapping[str, Words]) -> str:
    found = (form[-size:] for size in range(min(LONGEST, len(form) - 1), SHORTEST - 1, -1))
    return next((ending for ending in found if ending in endings), "")


def _with_capitals(text: str, words: Words) -> Words:
    """Words of a token that are spelled like it when put together have its letters; others begin like it."""
    if "".join(words) == text.lower() and len(text) == len(text.lower()):
        places = [sum(map(len, words[:at])) for at in range(len(words) + 1)]
        return tuple(text[first:last] for first, last in pairwise(places))
    return (words[0].capitalize(), *words[1:]) if text[:1].isupper() else words
