"""Probabilities of the symbols above words in a treebank grammar.

>>> lexicon = WordTags.from_counts({("walks", "VBZ"): 5, ("walking", "VBG"): 1, ("talking", "VBG"): 1}, 3, 1.0)
>>> shares = lexicon.shares("jumping", first=False)
>>> max(shares, key=shares.get)
'VBG'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from trelliswork.models.parsers.constituency.treebank_rules import RuleCounts, label_of, word_of
from trelliswork.runtime.arrays import Array

Class = tuple[str, str | None]  # a tag, and the one word that it is for


class GrammarWords:
    """P(symbol | word) / P(symbol) of each word: tags by `WordTags`, symbols by what was seen of the word and the tag.

    Of a tag with a word of its own (`GrammarConfig.frequent`) there are symbols for that word, and others for the
    other words.
    """

    def __init__(self, counts: RuleCounts, place: Mapping[str, int]):
        config, tags = counts.config, Counter[tuple[str, str]]()
        self.weight = config.parent_smoothing
        self._seen: dict[tuple[Class, str], Counter[int]] = {}  # of a word with a tag, its symbols
        self._symbols: dict[Class, Counter[int]] = {}
        for (symbol, word), n in counts.words.items():
            tag = label_of(symbol) or symbol
            of = tag, word_of(symbol)
            tags[word, tag] += n
            self._seen.setdefault((of, word), Counter())[place[symbol]] += n
            self._symbols.setdefault(of, Counter())[place[symbol]] += n
        self.lexicon = WordTags.from_counts(tags, config.rare, config.word_smoothing, config.spelling_smoothing)
        self.symbols = {symbol for each in self._symbols.values() for symbol in each}
        self.n_symbols = len(place)

    def weights(self, words: Sequence[str]) -> Array:
        """Return p(word | symbol) up to a factor of each word [n, symbol]: p(symbol | word) / p(symbol)."""
        weights = np.zeros((len(words), self.n_symbols))
        for i, word in enumerate(words):
            for tag, share in self.lexicon.shares(word, first=i == 0).items():
                own: Class = tag, word.lower()
                of = own if own in self._symbols else (tag, None)
                self._add(weights[i], of, word, share)
        return weights / weights.max(1, keepdims=True)

    def _add(self, row: Array, of: Class, word: str, share: float) -> None:
        seen, symbols = self._seen.get((of, word), Counter()), self._symbols.get(of, Counter())
        total, n_tag = seen.total() + self.weight, symbols.total()
        for symbol, n in symbols.items():
            of_tag = (seen[symbol] + self.weight * n / n_tag) / total
            row[symbol] = share * of_tag / n

    def tags(self, words: Sequence[str]) -> list[str]:
        """Return the likeliest tag of each word by itself."""
        shares = [self.lexicon.shares(word, first=i == 0) for i, word in enumerate(words)]
        return [max(each, key=each.__getitem__) for each in shares]


# P(part of speech | word) by counting, and by spelling where counts say little.

SUFFIXES = (1, 2, 3, 4, 5)
BETWEEN = 20.0


def signatures(word: str, *, first: bool) -> Iterator[str]:
    """Yield the spelling of a word, from coarse to fine: its shape, then ever longer suffixes.

    >>> list(signatures("U-boats", first=False))
    ['', 'Ax-', 'Ax-s', 'Ax-ts', 'Ax-ats', 'Ax-oats', 'Ax-boats']
    """
    yield ""
    lower = word.lower()
    capital = "" if not word[:1].isupper() else "1A" if first else "A"
    inner = "x" if any(letter.islower() for letter in word) else "A" if any(map(str.isupper, word[1:])) else ""
    shape = capital + inner + ("0" if any(map(str.isdigit, word)) else "") + ("-" if "-" in word[1:] else "")
    yield shape
    if lower[-1:].isalpha():
        for n in SUFFIXES:
            if len(lower) > n:
                yield shape + lower[-n:]


class WordTags:
    """The parts of speech of words: what was seen of a word, smoothed by what rare words of its spelling are.

    P(t | s) of a signature s is smoothed by that of the next coarser one, P(t | w) of a word by its finest signature.

    Args:
        words: Counts of the tags of each word.
        spellings: Counts of the tags of rare words by signature.
        weight: Weight of the spelling against the counts of a word.
        between: Weight of a coarser signature against a finer one.
    """

    def __init__(
        self,
        words: Mapping[str, Mapping[str, int]],
        spellings: Mapping[str, Mapping[str, int]],
        weight: float,
        between: float = BETWEEN,
    ):
        self.words, self.spellings, self.weight, self.between = words, spellings, weight, between
        self._of_spelling = lru_cache(maxsize=50_000)(self._spelled)

    @staticmethod
    def from_counts(
        counts: Mapping[tuple[str, str], int], rare: int, weight: float, between: float = BETWEEN
    ) -> WordTags:
        """Count how often each word had each tag; words seen at most `rare` times stand for unknown ones.

        Args:
            counts: How often each (word, tag) was seen.
            rare: Words seen at most this often stand for unknown ones.
            weight: Weight of the spelling against the counts of a word.
            between: Weight of a coarser signature against the counts of a finer one.

        Returns:
            Smoothed probabilities.
        """
        words: dict[str, Counter[str]] = {}
        for (word, tag), n in counts.items():
            words.setdefault(word, Counter())[tag] += n
        return WordTags(words, spelling_counts(words, rare), weight, between)

    def shares(self, word: str, *, first: bool) -> dict[str, float]:
        """Return P(tag | word); a capital says little of the `first` word, whose lower case is read as well."""
        by_spelling = self._of_spelling(word, first)
        seen = Counter(self.words.get(word, {}))
        if first and not seen and word[:1].isupper():
            seen = Counter(self.words.get(word.lower(), {}))
        total = seen.total() + self.weight
        probabilities = {tag: self.weight * share / total for tag, share in by_spelling.items()}
        for tag, n in seen.items():
            probabilities[tag] = probabilities.get(tag, 0.0) + n / total
        return probabilities

    def _spelled(self, word: str, first: bool) -> dict[str, float]:
        smoothed: dict[str, float] = {}
        for signature in signatures(word, first=first):
            counts = self.spellings.get(signature)
            if counts:
                total = sum(counts.values())
                weight = self.between if smoothed else 0.0
                shares = {tag: weight * share / (total + weight) for tag, share in smoothed.items()}
                for tag, n in counts.items():
                    shares[tag] = shares.get(tag, 0.0) + n / (total + weight)
                smoothed = shares
        return smoothed


def spelling_counts(words: Mapping[str, Mapping[str, int]], rare: int) -> dict[str, Counter[str]]:
    """Count how often rare words of each signature have each tag, all tokens counted."""
    tag_counts: dict[str, Counter[str]] = {}
    for word, tags in words.items():
        if sum(tags.values()) <= rare:
            for signature in {*signatures(word, first=False), *signatures(word, first=True)}:
                tag_counts.setdefault(signature, Counter()).update(tags)
    return tag_counts
