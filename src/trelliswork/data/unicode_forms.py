"""Unicode normal forms: which one texts are in, and how to spell a text as other texts are spelt.

A *cluster* is a character with the marks that belong to it: the largest piece that normalisation changes by itself.
Only canonical equivalence counts, so that compatibility characters such as ligatures stay as they are.

>>> spelling = Spelling.learn(["e\\u0301te\\u0301", "\\u00e0"])
>>> [ascii(spelling.of(text)) for text in ("\\u00e9", "a\\u0300", "\\u00ea")]
["'e\\\\u0301'", "'\\\\xe0'", "'e\\\\u0302'"]
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
_LAST_COMPOSED = 0x20000  # no character from here on is composed of others with a class of 0
_VOWELS_AND_FINALS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # conjoining jamo behind the first of a syllable
_ATTACHED = (*range(10, 37), *range(200, 256))  # combining classes of accents, and of Hebrew, Arabic and Syriac points


@cache
def _following() -> frozenset[str]:
    """Return starters that compose with the character before them, such as the second half of a vowel sign in
    Bengali.
    """
    starters = {chr(i) for each in _VOWELS_AND_FINALS for i in each}
    for i in range(_LAST_COMPOSED):
        parts = unicodedata.decomposition(chr(i)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            starters.add(chr(int(parts[1], 16)))
    return frozenset(starters)


def clusters(text: str) -> list[str]:
    """Return the clusters of a text.

    >>> list(map(ascii, clusters("e\\u0323\\u0302o")))
    ["'e\\\\u0323\\\\u0302'", "'o'"]
    """
    if text.isascii():
        return list(text)
    pieces, following = list[str](), _following()
    for character in text:
        first = unicodedata.normalize("NFD", character)[0]
        if pieces and (unicodedata.combining(first) or first in following):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


@dataclass(frozen=True)
class Spelling:
    """The normal form that texts are in, and the clusters that they spell in another way, by their NFD.

    `marks` are sequences of marks that they write in another order behind most letters, as those of Hebrew and Arabic
    are typed; so they are behind letters with which they were never seen.
    """

    form: Form = "NFC"
    exceptions: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        texts = [each for table in (self.exceptions, self.marks) for pair in table.items() for each in pair]
        if self.form not in FORMS or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"expected a spelling in {' or '.join(FORMS)} with texts as exceptions")

    @classmethod
    def learn(cls, texts: Iterable[str]) -> Spelling | None:
        """Learn the usual spelling of each cluster of some texts; None if no cluster has several."""
        texts = list(texts)
        counts: dict[str, Counter[str]] = {}
        words = Counter(word for text in texts if not text.isascii() for word in text.split() if not word.isascii())
        for word, n in words.items():
            for cluster in clusters(word):
                if not cluster.isascii():
                    counts.setdefault(unicodedata.normalize("NFD", cluster), Counter())[cluster] += n
        for key in filter(str.isascii, counts):  # such as the Kelvin sign, which is a K
            counts[key][key] = sum(text.count(key) for text in texts)
        votes = {form: sum(seen[unicodedata.normalize(form, key)] for key, seen in counts.items()) for form in FORMS}
        form = max(FORMS, key=votes.__getitem__)
        best = {key: _most_seen(seen, unicodedata.normalize(form, key)) for key, seen in counts.items()}
        exceptions = {key: text for key, text in best.items() if text != unicodedata.normalize(form, key)}
        return cls(form, exceptions, _orders(best)) if exceptions or form_of(texts) else None

    def of(self, text: str) -> str:
        """Return a text spelt like this."""
        if text.isascii() and not any(map(str.isascii, self.exceptions)):
            return text
        return "".join(self._cluster(unicodedata.normalize("NFD", each)) for each in clusters(text))

    def _cluster(self, key: str) -> str:
        if key in self.exceptions:
            return self.exceptions[key]
        return key[0] + self.marks[key[1:]] if key[1:] in self.marks else unicodedata.normalize(self.form, key)


def _orders(best: Mapping[str, str]) -> dict[str, str]:
    """Return the marks that most letters have in another order than the canonical one, and that order."""
    votes: dict[str, Counter[str]] = {}
    for key, text in best.items():
        if len(key) > 2:
            marks = text[1:] if text[0] == key[0] and len(text) == len(key) else ""
            votes.setdefault(key[1:], Counter())[marks] += 1
    usual = {marks: seen.most_common(1)[0][0] for marks, seen in votes.items()}
    return {marks: order for marks, order in usual.items() if order and order != marks}


def _most_seen(seen: Counter[str], usual: str) -> str:
    return max(seen, key=lambda text: (seen[text], text == usual))


def form_of(texts: Iterable[str]) -> Literal["NFC", "NFD", "mixed", ""]:
    """Return the form that all texts are in; mixed if there is none, and empty if they are the same in both.

    >>> form_of(["\\u00e9", "a"]), form_of(["e\\u0301"]), form_of(["\\u00e9", "e\\u0301"]), form_of(["a"])
    ('NFC', 'NFD', 'mixed', '')
    """
    fitting = set(FORMS)
    for text in texts:
        if not text.isascii():
            fitting = {form for form in fitting if unicodedata.is_normalized(form, text)}
    if not fitting:
        return "mixed"
    return "" if len(fitting) == len(FORMS) else fitting.pop()


def lowered(text: str) -> str:
    """Return a text in lower case, by the rules of Unicode that hold in all languages; İ is i, with or without its dot.

    >>> lowered("\\u0130zmir"), lowered("I\\u0307zmir"), lowered("ISPARTA")
    ('izmir', 'izmir', 'isparta')
    """
    return text.replace("\u0130", "i").replace("I\u0307", "i").lower()


def without_marks(text: str) -> str:
    """Return a text without accents and points; vowel signs, viramas and other marks that are letters of a script stay.

    >>> without_marks("Nyíregyháza, ł"), ascii(without_marks("\\u0915\\u093c\\u093f"))
    ('Nyiregyhaza, ł', "'\\\\u0915\\\\u093c\\\\u093f'")
    """
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if unicodedata.combining(c) not in _ATTACHED))


def twins(symbol: str) -> Sequence[str]:
    """Return symbols that may replace one that was never seen: other cases of it, then without marks, or as a plain
    letter.

    >>> twins("É"), twins("\uff21")
    (['é', 'E', 'e'], ['\uff41', 'A', 'a'])
    """
    texts = (symbol, without_marks(symbol), without_marks(unicodedata.normalize("NFKC", symbol)))
    cases = [each for text in texts for each in (text, lowered(text), text.upper(), text.title())]
    return [each for each in dict.fromkeys(cases) if each and each != symbol]
