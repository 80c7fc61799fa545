"""What `check` finds out about a tagged file."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from trelliswork.data import Sentence
from trelliswork.tags.schemes import infer_scheme, spans_of, violations

LONGEST_WORD = 60  # letters; longer "words" are mostly addresses or damage
ENOUGH = 20  # sentences, to say that one is unlike the rest

JOINERS = "\u200c\u200d"  # spelling in Persian, in Indic scripts and between emoji; damage in ASCII words
_ODD = {"Cc", "Cf", "Co", "Cn", "Cs", "Zs", "Zl", "Zp"}  # control, format, private, unassigned, spaces


@dataclass(frozen=True)
class Finding:
    """Something worth a look, and where."""

    line: int
    text: str
    file: str = ""  # where a corpus is several files


@dataclass(frozen=True)
class Survey:
    """A tagged file, read whole, and the questions one asks of it."""

    file: str
    sentences: Sequence[Sentence]
    scheme: str

    @classmethod
    def of(cls, file: str, sentences: Sequence[Sentence], scheme: str | None) -> Survey:
        """Survey sentences; the scheme is inferred when None."""
        return cls(file, sentences, scheme or infer_scheme(sentence.tags or () for sentence in sentences))

    @cached_property
    def words(self) -> Counter[str]:
        """How often each word occurs."""
        return Counter(word for sentence in self.sentences for word in sentence.words)

    @cached_property
    def tags(self) -> Counter[str]:
        """How often each tag occurs."""
        return Counter(tag for sentence in self.sentences for tag in sentence.tags or ())

    @cached_property
    def spans(self) -> Counter[str]:
        """How many spans of each type there are; none for plain tags."""
        found = (spans_of(sentence.tags or (), self.scheme) for sentence in self.sentences)
        return Counter(label for spans in found for _, _, label in spans)

    @property
    def longest(self) -> Sentence:
        """The longest sentence, the first of them."""
        return max(self.sentences, key=len)

    @cached_property
    def violations(self) -> list[Finding]:
        """Tags that break the scheme."""
        return [
            Finding(sentence.line_of(i), reason, sentence.file)
            for sentence in self.sentences
            for i, reason in violations(sentence.tags or (), self.scheme)
        ]

    @cached_property
    def long_sentences(self) -> list[Finding]:
        """Sentences far longer than the rest: beyond six times the spread of the middle half."""
        lengths = [len(sentence) for sentence in self.sentences]
        if len(lengths) < ENOUGH:
            return []
        low, middle, high = statistics.quantiles(lengths, n=4)
        limit = max(high + 6 * (high - low), 3 * middle)
        return [
            Finding(
                sentence.line,
                f"{len(sentence)} tokens, half of the sentences have {middle:.0f} or fewer",
                sentence.file,
            )
            for sentence in self.sentences
            if len(sentence) > limit
        ]

    @cached_property
    def odd_words(self) -> list[Finding]:
        """Words with white space or invisible characters in them, or far too long."""
        odd = {word: reason for word in self.words if (reason := why_odd(word))}
        return list(self._first_uses(odd)) if odd else []

    def _first_uses(self, odd: dict[str, str]) -> Iterator[Finding]:
        left = dict(odd)
        for sentence in self.sentences:
            for i, word in enumerate(sentence.words):
                if word in left:
                    yield Finding(sentence.line_of(i), f"{word!r}: {left.pop(word)}", sentence.file)

    @cached_property
    def rare_tags(self) -> list[str]:
        """Tags seen once: often misspelt."""
        return sorted(tag for tag, n in self.tags.items() if n == 1)

    @cached_property
    def duplicates(self) -> list[Finding]:
        """Sentences that came before, word for word; with other tags is worse."""
        seen: dict[tuple[str, ...], Sentence] = {}
        found = []
        for sentence in self.sentences:
            earlier = seen.setdefault(sentence.words, sentence)
            if earlier is not sentence:
                how = "the same sentence as" if earlier.tags == sentence.tags else "the same words, other tags than"
                where = f"line {earlier.line}" + ("" if earlier.file == sentence.file else f" of {earlier.file}")
                found.append(Finding(sentence.line, f"{how} {where}", sentence.file))
        return found


def why_odd(word: str) -> str:
    """What is wrong with a word; empty if nothing is.

    >>> why_odd("fine"), why_odd("zero\\u200bwidth")
    ('', 'holds U+200B ZERO WIDTH SPACE')
    """
    if len(word) > LONGEST_WORD:
        return f"{len(word)} characters long"
    if word.isascii() and word.isprintable() and " " not in word:
        return ""
    others = word.translate(dict.fromkeys(map(ord, JOINERS)))
    for character in word if others.isascii() else others:
        if character == "\ufffd" or unicodedata.category(character) in _ODD:
            name = unicodedata.name(character, "a control character")
            return f"holds U+{ord(character):04X} {name}"
    return ""


@dataclass(frozen=True)
class Overlap:
    """What a file shares with the training file, and what is new in it."""

    n_sentences: int
    n_same: int
    unseen_tokens: float
    unseen_types: float
    new_tags: list[str]


def overlap(train: Survey, other: Survey) -> Overlap:
    """Compare a dev or test file with the training file."""
    known = {sentence.words for sentence in train.sentences}
    unseen = {word: n for word, n in other.words.items() if word not in train.words}
    return Overlap(
        len(other.sentences),
        sum(sentence.words in known for sentence in other.sentences),
        sum(unseen.values()) / max(other.words.total(), 1),
        len(unseen) / max(len(other.words), 1),
        sorted(set(other.tags) - set(train.tags)),
    )
