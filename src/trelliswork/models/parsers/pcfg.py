"""A treebank grammar: rules and words counted, and every query exact.

    >>> grammar = TreebankGrammar.fit(train_sentences)                       # doctest: +SKIP
    >>> str(grammar.predict([["We", "sleep"]])[0].value)                     # doctest: +SKIP
    '(S (NP (PRP We)) (VP (VBP sleep)))'

p(tree, words) is the product of the shares of its rules. Constituents are told apart by their parents, long ones are
cut in two with markers, chains of unary rules are summed in closed form, and words that are rare or unknown go by their
spelling. Probabilities are those of trees given the words, parts of speech included.

Charniak (1996), Tree-bank grammars; Johnson (1998), PCFG models of linguistic tree representations; Klein and Manning
(2003), Accurate unlexicalized parsing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.brackets import ROOTS, tree_of
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.base import Description
from trelliswork.models.card import model_card
from trelliswork.models.loading import with_kept
from trelliswork.models.parsers.constituency_parser import ConstituencyParser, ParsedTree, Pins
from trelliswork.models.parsers.derivations import Bracket, brackets_of
from trelliswork.models.parsers.pcfg_config import GrammarConfig
from trelliswork.models.parsers.treebank_rules import RuleCounts, label_of
from trelliswork.models.parsers.word_tags import WordTags
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.runtime.bridge import Array
from trelliswork.structures.grammar.closed import Chart, ClosedGrammar, Node


class TreebankGrammar(ConstituencyParser):
    """Rules, weights of words, and the answers made of them."""

    def __init__(self, config: GrammarConfig, counts: RuleCounts):
        self.config, self.counts = config, counts
        self.metrics: dict[str, Any] = {}
        self._index_symbols()
        self._index_words()

    def _index_symbols(self) -> None:
        binary, unary = self.counts.weights()
        names = {symbol for rule in (*binary, *unary) for symbol in rule} | set(self.counts.roots)
        self.symbols = tuple(sorted(names | {symbol for symbol, _ in self.counts.words}))
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        total = self.counts.roots.total()
        self.grammar = ClosedGrammar.of(
            self.symbols,
            {(place[a], place[b], place[c]): weight for (a, b, c), weight in binary.items()},
            {(place[a], place[b]): weight for (a, b), weight in unary.items()},
            {place[a]: n / total for a, n in self.counts.roots.items()},
        )
        self.place, self.names = place, [label_of(symbol) for symbol in self.symbols]

    def _index_words(self) -> None:
        """What the weights of words are made of: tags of words, and symbols of tags."""
        tags: Counter[tuple[str, str]] = Counter()
        self._below: dict[tuple[str, str], Counter[str]] = {}  # (tag, word) -> its symbols
        self._split: dict[str, Counter[str]] = {}  # tag -> its symbols
        for (symbol, word), n in self.counts.words.items():
            tag = label_of(symbol) or symbol
            tags[word, tag] += n
            self._below.setdefault((tag, word), Counter())[symbol] += n
            self._split.setdefault(tag, Counter())[symbol] += n
        self.lexicon = WordTags.from_counts(tags, self.config.rare, self.config.word_smoothing)
        self.tag_symbols = {self.place[symbol] for each in self._split.values() for symbol in each}

    @classmethod
    def fit(cls, train: Sequence[Sentence], config: GrammarConfig | None = None) -> Self:
        """The grammar of sentences with brackets."""
        if not train:
            raise TrellisworkError("expected sentences with brackets to count rules of, got none; check the data")
        counts = RuleCounts(config or GrammarConfig())
        for sentence in train:
            counts.add(tree_of(sentence.words, sentence.tags or (), brackets_of(sentence)))
        return cls(counts.config, counts)

    # Charts

    def word_weights(self, words: Sequence[str]) -> Array:
        """p(word | symbol) up to a factor of the word [n, symbol]: p(symbol | word) / p(symbol), by Bayes's rule."""
        found = np.zeros((len(words), len(self.symbols)))
        weight = self.config.parent_smoothing
        for i, word in enumerate(words):
            for tag, share in self.lexicon.shares(word, first=i == 0).items():
                below, split = self._below.get((tag, word), Counter()), self._split[tag]
                total, n_tag = below.total() + weight, split.total()
                for symbol, n in split.items():
                    of_tag = (below[symbol] + weight * n / n_tag) / total
                    found[i, self.place[symbol]] = share * of_tag / n
        return found / found.max(1, keepdims=True)

    def charts(self, words: Sequence[str], *, best: bool = False) -> Chart:
        """Of sums over trees, or of the best."""
        return self.grammar.inside(self.word_weights(words), best=best)

    # Answers

    def evaluating(self) -> AbstractContextManager[Any]:
        """Nothing is learned while answers are given."""
        return nullcontext()

    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedTree]:
        if pins is not None and any(pins):
            raise TrellisworkError("a treebank grammar takes no pins; leave them out, or train with --model span-cky")
        return [self._one(each.words, top_k, sure) for each in batch]

    def _one(self, words: Sequence[str], top_k: int, sure: bool) -> ParsedTree:
        if len(words) > self.config.longest:
            return self._in_pieces(words)
        chart = self.charts(words, best=True)
        if chart.log_z == -math.inf:
            return self._flat(words)
        best = [(self._split_nodes(nodes), score) for nodes, score in self.grammar.top_k(chart, max(top_k, 1))]
        (tags, brackets), score = best[0]
        if not sure and not top_k:
            return ParsedTree(tags, brackets)
        sums = self.charts(words)
        ranked = [(*each, math.exp(min(value - sums.log_z, 0.0))) for each, value in best[:top_k]]
        if not sure:
            return ParsedTree(tags, brackets, best=ranked)
        shares = self._label_shares(self.grammar.posteriors(sums))
        of_brackets = [shares(start, end, label) for start, end, label in brackets]
        of_tags = [shares(i, i + 1, tag) for i, tag in enumerate(tags)]
        return ParsedTree(tags, brackets, math.exp(min(score - sums.log_z, 0.0)), of_brackets, of_tags, ranked)

    def _split_nodes(self, nodes: Sequence[Node]) -> tuple[list[str], list[Bracket]]:
        """Tags and constituents of a derivation; what only stands for the rest of some children goes."""
        tags: list[str] = []
        brackets: list[Bracket] = []
        for start, end, symbol in nodes:
            label = self.names[symbol]
            if symbol in self.tag_symbols:
                tags.append(label or "")
            elif label is not None:
                brackets.append((start, end, label))
        return tags, brackets

    def _label_shares(self, posteriors: Array) -> Any:
        """From (start, end, label) to the probability of such a constituent, or tag."""
        symbols: dict[str, list[int]] = {}
        for i, name in enumerate(self.names):
            symbols.setdefault(name or "", []).append(i)
        return lambda start, end, label: float(min(posteriors[start, end - 1, symbols[label]].sum(), 1.0))

    def _flat(self, words: Sequence[str]) -> ParsedTree:
        """A sentence that no rules fit: its likeliest tags below one bracket, and no probability."""
        tags = [max(shares, key=shares.__getitem__) for shares in self._tag_shares(words)]
        return ParsedTree(tags, [(0, len(words), ROOTS[0])] if len(words) > 1 else [])

    def _tag_shares(self, words: Sequence[str]) -> Iterator[dict[str, float]]:
        return (self.lexicon.shares(word, first=i == 0) for i, word in enumerate(words))

    def _in_pieces(self, words: Sequence[str]) -> ParsedTree:
        """A long sentence piece by piece below one bracket, without a probability."""
        tags: list[str] = []
        brackets: list[Bracket] = [(0, len(words), ROOTS[0])]
        for at in range(0, len(words), self.config.longest):
            piece = self._one(words[at : at + self.config.longest], 0, False)
            tags += piece.tags
            brackets += [(at + start, at + end, label) for start, end, label in piece.brackets]
        return ParsedTree(tags, brackets)

    # What it is

    @property
    def known_labels(self) -> set[str]:
        return {name for i, name in enumerate(self.names) if name is not None and i not in self.tag_symbols}

    @property
    def n_parameters(self) -> int:
        return len(self.counts.binary) + len(self.counts.unary) + len(self.counts.words)

    @property
    def size(self) -> str:
        rules = f"{len(self.counts.binary):,} binary and {len(self.counts.unary):,} unary rules"
        return f"{len(self.symbols):,} symbols, {rules}, {len(self.counts.words):,} words with symbols"

    def knows(self, word: str) -> bool:
        return word in self.lexicon.words

    def describe(self, top: int = 20) -> Description:
        names = sorted({name for name in self.names if name})
        common = {
            f"{a} -> {' '.join(rest)}": f"{n:,}"
            for (a, *rest), n in (self.counts.binary + self.counts.unary).most_common(top)
        }
        settings = self.config.to_dict()
        sections = [("most frequent rules", common), ("grammar", settings)]
        return Description("a treebank grammar", {"labels": names}, {"labels": names}, settings, sections)

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        place, words = self.place, sorted({word for _, word in self.counts.words})
        column = {word: i for i, word in enumerate(words)}
        counts = self.counts
        arrays = {
            "binary": np.array([[*map(place.__getitem__, rule), n] for rule, n in counts.binary.items()], np.int64),
            "unary": np.array([[*map(place.__getitem__, rule), n] for rule, n in counts.unary.items()], np.int64),
            "roots": np.array([[place[each], n] for each, n in counts.roots.items()], np.int64),
            "words": np.array([[place[a], column[w], n] for (a, w), n in counts.words.items()], np.int64),
        }
        config = {"settings": self.config.to_dict(), "symbols": list(self.symbols), "words": words}
        card = model_card(self)
        write_model(
            directory,
            StoredModel(type(self).__name__, config, arrays, self.metrics, card, extra or {}, self.kept()),
        )

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, cls.__name__)
        try:
            model = cls._from_stored(stored)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        model.metrics = dict(stored.metrics)
        found: Self = with_kept(model, directory)
        return found

    @classmethod
    def _from_stored(cls, stored: StoredModel) -> Self:
        counts = RuleCounts(GrammarConfig.from_dict(stored.config["settings"]))
        symbols, words, arrays = stored.config["symbols"], stored.config["words"], stored.weights
        for a, b, c, n in arrays["binary"].tolist():
            counts.binary[symbols[a], symbols[b], symbols[c]] = n
        for a, b, n in arrays["unary"].tolist():
            counts.unary[symbols[a], symbols[b]] = n
        for a, n in arrays["roots"].tolist():
            counts.roots[symbols[a]] = n
        for a, w, n in arrays["words"].tolist():
            counts.words[symbols[a], words[w]] = n
        return cls(counts.config, counts)
