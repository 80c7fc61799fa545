"""Names in questions: found by a lexicon, and left open in what a network reads and writes.

    >>> pairs = [("flights to denver".split(), "to ( $0 denver:ci )".split())] * 2
    >>> lexicon = NameLexicon.learned(pairs)
    >>> opened = lexicon.opened("flights to denver".split())
    >>> opened.words, opened.names
    (('flights', 'to', 'ci0'), {'ci0': 'denver:ci'})

The lexicon is learned from pairs: a phrase of a question names a constant such as denver:ci of its meaning if questions
with this phrase nearly always have that constant. In a question the longest phrases are replaced by their kind and a
number, ci0; the meaning has ci0 in place of the constant, and answers have the constant again.

Dong and Lapata (2016), Language to logical form with neural attention, section 4.2 (argument identification).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from trelliswork.data import Vocabulary
from trelliswork.models.transducers.semantic.forms import OPEN
from trelliswork.nn.decoders.generation import Generator
from trelliswork.runtime.arrays import Bool, Float

Symbols = tuple[str, ...]
QuestionPair = tuple[Sequence[str], Sequence[str]]  # words of a question, symbols of its meaning
LONGEST = 3  # words of a phrase
ABSENT = -100.0  # added to the log probabilities of open names that a question does not have
SURE = 0.8  # share of the questions with a phrase whose meaning has the constant, at least
SEEN = 2  # questions with a phrase, at least, unless it spells the name
ROUNDS = 20  # phrases that a constant may have in addition to its name


class OpenedQuestion(NamedTuple):
    """A question with open names: its words, the place of each in the question, and what the names stand for."""

    words: Symbols
    places: tuple[range, ...]
    names: Mapping[str, str]

    def closed(self, tree: Sequence[str]) -> Symbols:
        """Return a tree with the constants that its open names stand for."""
        return tuple(self.names.get(symbol, symbol) for symbol in tree)

    def span(self, word: int) -> tuple[int, int]:
        """Return the place of a word in the question as it was given."""
        return self.places[word].start, self.places[word].stop

    def tree(self, tree: Sequence[str]) -> Symbols:
        """Return a tree with open names in place of constants that the question names."""
        opened = {constant: name for name, constant in self.names.items()}
        return tuple(opened.get(symbol, symbol) for symbol in tree)


class NameLexicon:
    """From phrases to constants."""

    def __init__(self, phrases: Mapping[Symbols, str]) -> None:
        self.phrases = dict(phrases)
        self._longest = max(map(len, self.phrases), default=0)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of all constants."""
        return frozenset(constant.partition(":")[2] for constant in self.phrases.values())

    def stored(self) -> dict[str, str]:
        """Return plain values."""
        return {" ".join(phrase): constant for phrase, constant in self.phrases.items()}

    @classmethod
    def from_stored(cls, phrases: Mapping[str, str]) -> NameLexicon:
        """Invert `stored`."""
        return cls({tuple(phrase.split(" ")): constant for phrase, constant in phrases.items()})

    @classmethod
    def learned(cls, pairs: Sequence[QuestionPair]) -> NameLexicon:
        """Learn names as they are spelled first; then, repeatedly, the best phrase of each constant that is left."""
        lexicon = cls({})
        for spelled in (True, *[False] * ROUNDS):
            better = lexicon.extended(pairs, spelled)
            if not spelled and len(better.phrases) == len(lexicon.phrases):
                return better
            lexicon = better
        return lexicon

    def extended(self, pairs: Sequence[QuestionPair], spelled: bool) -> NameLexicon:
        """Return a lexicon with one more phrase for each constant whose questions have none, where one is sure enough.

        Only words that no phrase covers count. If `spelled`, phrases are the names themselves, as san francisco for
        san_francisco:ci, and all of them are taken.
        """
        n_questions, n_both = Counter[Symbols](), Counter[tuple[str, Symbols]]()
        unexplained = Counter[tuple[str, Symbols]]()
        for words, tree in pairs:
            phrases, constants = set(self._left(words)), constants_of(tree)
            explained = set(self.opened(words).names.values())
            n_questions.update(phrases)
            n_both.update((constant, phrase) for constant in constants for phrase in phrases)
            unexplained.update((constant, phrase) for constant in constants - explained for phrase in phrases)
        best: dict[str, tuple[float, Symbols]] = {}
        for (constant, phrase), n in sorted(unexplained.items()):
            share = n_both[constant, phrase] / n_questions[phrase]
            is_name = phrase == _spelled(constant)
            if share >= SURE and (is_name if spelled else n >= SEEN):
                best[constant] = max(best.get(constant, (0.0, ())), (n * share, phrase), key=_rank)
        return NameLexicon({phrase: constant for constant, (_, phrase) in best.items()} | self.phrases)

    def _left(self, words: Sequence[str]) -> Iterator[Symbols]:
        """Yield the phrases of a question between those that are known."""
        known = [constant is not None for constant in self._constants(words)]
        for start, end in combinations(range(len(words) + 1), 2):
            if end - start <= LONGEST and not any(known[start:end]):
                yield tuple(words[start:end])

    def _constants(self, words: Sequence[str]) -> list[str | None]:
        """Return what each word names, alone or with its neighbours."""
        constants: list[str | None] = []
        while len(constants) < len(words):
            n, constant = self._at(words, len(constants))
            constants += [constant] * n
        return constants

    def opened(self, words: Sequence[str]) -> OpenedQuestion:
        """Return a question with open names, from the left, the longest phrase first."""
        open_words, places, names = list[str](), list[range](), dict[str, str]()
        at = 0
        while at < len(words):
            n, constant = self._at(words, at)
            open_words.append(words[at] if constant is None else _name(constant, names))
            places.append(range(at, at + n))
            at += n
        return OpenedQuestion(tuple(open_words), tuple(places), names)

    def _at(self, words: Sequence[str], at: int) -> tuple[int, str | None]:
        """Return the longest phrase at a place, and its constant."""
        for n in range(min(self._longest, len(words) - at), 0, -1):
            if constant := self.phrases.get(tuple(words[at : at + n])):
                return n, constant
        return 1, None


def constants_of(tree: Sequence[str]) -> set[str]:
    """Return the constants with a kind, such as denver:ci, that are not heads."""
    after = (*tree[1:], "")
    return {s for s, next_ in zip(tree, after, strict=True) if next_ != OPEN and all(s.partition(":"))}


def _spelled(constant: str) -> Symbols:
    return tuple(constant.partition(":")[0].split("_"))


def _rank(candidate: tuple[float, Symbols]) -> tuple[float, int]:
    """Return the key of the surest candidate, and of those the shortest."""
    return candidate[0], -len(candidate[1])


def _name(constant: str, names: dict[str, str]) -> str:
    """Return the open name of a constant, a new one if it has none."""
    kind = constant.partition(":")[2]
    n_alike = 0
    for name, each in names.items():
        if each == constant:
            return name
        n_alike += each.partition(":")[2] == kind
    names[f"{kind}{n_alike}"] = constant
    return f"{kind}{n_alike}"


def is_open_name(symbol: str, kinds: Container[str]) -> bool:
    """Return whether a symbol stands for a name.

    >>> is_open_name("ci0", {"ci"}), is_open_name("$0", {"ci"})
    (True, False)
    """
    kind = symbol.rstrip("0123456789")
    return kind != symbol and kind in kinds


class NamingNetwork(Generator, Protocol):
    """A network that generates symbols, and the lexicon of the names that it leaves open."""

    lexicon: NameLexicon
    target: Vocabulary

    @property
    def device(self) -> torch.device: ...


class NamingGenerator:
    """A network that writes no open name but those of the question, unless it can write nothing else."""

    def __init__(self, network: NamingNetwork, names: Sequence[Container[str]]) -> None:
        self.decoder, self.n_outputs, self.embed = network.decoder, network.n_outputs, network.embed
        self._log_probs, kinds = network.next_log_probs, network.lexicon.kinds
        is_open = [(symbol, is_open_name(symbol, kinds)) for symbol in network.target]
        absent = [[opens and symbol not in own for symbol, opens in is_open] for own in names]
        self.absent: Bool[Tensor, "batch v"] = torch.tensor(absent, device=network.device)

    def next_log_probs(
        self, hidden: Float[Tensor, "batch beam d"], weights: Float[Tensor, "batch beam n"]
    ) -> Float[Tensor, "batch beam v"]:
        return self._log_probs(hidden, weights) + ABSENT * self.absent[:, None]
