"""What words say about the symbols above them in a treebank grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from trelliswork.models.parsers.constituency.treebank_rules import RuleCounts, label_of, word_of
from trelliswork.models.parsers.constituency.word_tags import WordTags
from trelliswork.runtime.bridge import Array

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
        """p(word | symbol) up to a factor of the word [n, symbol]: p(symbol | word) / p(symbol), by Bayes's rule."""
        found = np.zeros((len(words), self.n_symbols))
        for i, word in enumerate(words):
            for tag, share in self.lexicon.shares(word, first=i == 0).items():
                own: Class = tag, word.lower()
                of = own if own in self._symbols else (tag, None)
                self._add(found[i], of, word, share)
        return found / found.max(1, keepdims=True)

    def _add(self, found: Array, of: Class, word: str, share: float) -> None:
        seen, symbols = self._seen.get((of, word), Counter()), self._symbols.get(of, Counter())
        total, n_tag = seen.total() + self.weight, symbols.total()
        for symbol, n in symbols.items():
            of_tag = (seen[symbol] + self.weight * n / n_tag) / total
            found[symbol] = share * of_tag / n

    def tags(self, words: Sequence[str]) -> list[str]:
        """The likeliest tag of each word by itself."""
        shares = [self.lexicon.shares(word, first=i == 0) for i, word in enumerate(words)]
        return [max(each, key=each.__getitem__) for each in shares]
