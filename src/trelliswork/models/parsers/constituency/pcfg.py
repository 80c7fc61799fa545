"""A treebank grammar: rules and words counted, and every query exact.

    >>> grammar = TreebankGrammar.fit(train_sentences)                       # doctest: +SKIP
    >>> str(grammar.predict([["We", "sleep"]])[0].value)                     # doctest: +SKIP
    '(S (NP (PRP We)) (VP (VBP sleep)))'

p(tree, words) is the product of the shares of its rules. Constituents are annotated with their parents, long ones are
cut in two with markers, chains of unary rules are summed in closed form, and words that are rare or unknown go by their
spelling. Probabilities are those of trees given the words, parts of speech included.

Charniak (1996), Tree-bank grammars; Johnson (1998), PCFG models of linguistic tree representations; Klein and Manning
(2003), Accurate unlexicalized parsing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import Self

import numpy as np

from trelliswork.data import Sentence
from trelliswork.data.brackets import ROOTS, tree_of
from trelliswork.errors import ConstraintError, ModelError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description, Readable
from trelliswork.models.export_folder import model_card
from trelliswork.models.loading import with_kept
from trelliswork.models.parsers.constituency.bracket_explanation import BracketShares, diagonal, rival_text, summed
from trelliswork.models.parsers.constituency.config import GrammarConfig
from trelliswork.models.parsers.constituency.derivations import Bracket, brackets_of, expected_brackets
from trelliswork.models.parsers.constituency.grammar_words import GrammarWords
from trelliswork.models.parsers.constituency.parser import (
    ConstituencyParser,
    GivenPins,
    ParsedTree,
    Pins,
    check_pins,
    listed,
)
from trelliswork.models.parsers.constituency.treebank_rules import (
    RuleCounts,
    annotated,
    counts_from,
    is_tag,
    label_of,
    stored_counts,
)
from trelliswork.models.part_choices import PartChoices, stacked_choices
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.models.votes import Reason, Vote, ranked
from trelliswork.runtime.arrays import Array
from trelliswork.structures.grammar.closed import Chart, ClosedGrammar, Known
from trelliswork.structures.grammar.closed_best import Node

CANDIDATES = 50  # best trees among which explanations look for rivals
PIECE = 40  # words at most of a piece of a sentence that is too long


class TreebankGrammar(ConstituencyParser):
    """Rules, weights of words, and the answers made of them."""

    def __init__(self, config: GrammarConfig, counts: RuleCounts):
        self.config, self.counts = config, counts
        self.metrics = {}
        self._index_symbols()

    def _index_symbols(self) -> None:
        self.rules = binary, unary = self.counts.weights()
        names = {symbol for rule in (*binary, *unary) for symbol in rule} | set(self.counts.roots)
        self.symbols = tuple(sorted(names | {symbol for symbol, _ in self.counts.words}))
        self.place = place = {symbol: i for i, symbol in enumerate(self.symbols)}
        total = self.counts.roots.total()
        self.grammar = ClosedGrammar.of(
            self.symbols,
            {(place[a], place[b], place[c]): weight for (a, b, c), weight in binary.items()},
            {(place[a], place[b]): weight for (a, b), weight in unary.items()},
            {place[a]: n / total for a, n in self.counts.roots.items()},
        )
        self.names = [label_of(symbol) for symbol in self.symbols]
        self.words = GrammarWords(self.counts, place)
        self.tag_names, self._of_tag = self._columns(lambda symbol: symbol in self.words.symbols)
        self.labels, self._of_label = self._columns(lambda symbol: symbol not in self.words.symbols)

    def _columns(self, belongs: Callable[[int], bool]) -> tuple[list[str], Array]:
        """Return the names of some symbols, and for each symbol the place of its name among them, or -1."""
        of = [name if name is not None and belongs(i) else None for i, name in enumerate(self.names)]
        names = sorted({name for name in of if name is not None})
        place = {name: i for i, name in enumerate(names)}
        return names, np.array([-1 if name is None else place[name] for name in of])

    @classmethod
    def fit(cls, train: Sequence[Sentence], config: GrammarConfig | None = None) -> Self:
        """Count the grammar of sentences with brackets."""
        if not train:
            raise TrellisworkError("expected sentences with brackets to count rules of, got none; check the data")
        config = config or GrammarConfig()
        trees = [tree_of(sentence.words, sentence.tags or (), brackets_of(sentence)) for sentence in train]
        return cls(config, RuleCounts.of(trees, config))

    # Charts

    def charts(self, words: Sequence[str], *, best: bool = False, known: Known | None = None) -> Chart:
        """Return the chart of sums over trees, or of the best; `known` lists the symbols for some words.

        Args:
            words: Words of a sentence.
            best: True for the best trees, False for sums.
            known: Symbols that some words must have above them.
        """
        return self.grammar.inside(self.words.weights(words), best=best, known=known)

    def _known(self, words: Sequence[str], pins: Pins) -> Known:
        """Return the symbols of each pin."""
        known_symbols: dict[tuple[int, int], frozenset[int]] = {}
        if pins and len(words) > self.config.longest:
            problem = f"pins need a sentence of at most {self.config.longest} words, got one of {len(words)}"
            raise TrellisworkError(f"{problem}, which is parsed in pieces; cut it, or raise `longest`")
        for start, end, label in pins:
            if label is not None and label not in self.known_labels:
                known = ", ".join(self.known_labels)
                raise TrellisworkError(f"a pin must have one of the labels {known}; got {label!r}")
            if (start, end - 1) in known_symbols:
                problem = f"expected one pin for words {start + 1} to {end}, got two"
                raise TrellisworkError(f"{problem}; leave one out, or train with --model span-cky")
            wanted = [a for a, y in enumerate(self._of_label) if y >= 0 and label in (None, self.labels[y])]
            known_symbols[start, end - 1] = frozenset(wanted)
        return known_symbols

    def entropy(self, words: Sequence[str], pins: Pins = ()) -> float:
        """Return -Σ p(tree | words, pins) log p(tree | words, pins), in nats, parts of speech included."""
        chart = self.charts(words, known=self._known(words, pins))
        if chart.log_z == -math.inf:
            raise _no_tree(words)
        return self.grammar.entropy(chart, self.words.weights(words))

    def shares(self, sentence: Sentence, known: Known | None = None) -> BracketShares | None:
        sums = self.charts(sentence.words, known=known) if 0 < len(sentence) <= self.config.longest else None
        if sums is None or sums.log_z == -math.inf:
            return None
        tops = summed(sums.full * self.grammar.outside(sums), self._of_label)
        return BracketShares(self.labels, summed(self.grammar.posteriors(sums), self._of_label), tops.sum(-1), tops)

    def choices(
        self, inputs: Readable, *, pins: Sequence[GivenPins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return the labels that some words may have together, each by its exact probability given the pins.

        Labels can be above each other on the same words: they are rivals of the empty label, none at all, alone.
        """
        choices = []
        sentences = self.sentences_of(inputs)
        for sentence, known in zip(sentences, pins or [()] * len(sentences), strict=True):
            check_pins(sentence, listed(known))
            shares = self.shares(sentence, self._known(sentence.words, listed(known)))
            if shares is None and known:
                raise _no_tree(sentence.words)
            choices.append(
                [] if shares is None else stacked_choices(shares.of_labels, shares.of_tops, self.labels, most)
            )
        return choices

    # Answers

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context in which answers are given and nothing is learned."""
        return nullcontext()

    def parsed(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int, sure: bool
    ) -> list[ParsedTree]:
        given = pins or [()] * len(batch)
        return [
            self._one(each.words, top_k, sure, self._known(each.words, known))
            for each, known in zip(batch, given, strict=True)
        ]

    def _one(self, words: Sequence[str], top_k: int, sure: bool, known: Known) -> ParsedTree:
        if len(words) > self.config.longest:
            return self._in_pieces(words)
        expected = self.config.decoding == "expected"
        best = [] if expected and not top_k else self._best(words, max(top_k, 1), known)
        if not (expected or sure or top_k):
            return ParsedTree(*best[0][:2]) if best else self._flat(words, known)
        sums = self.charts(words, known=known)
        if sums.log_z == -math.inf:
            return self._flat(words, known)
        ranked = [(tags, brackets, math.exp(min(score - sums.log_z, 0.0))) for tags, brackets, score in best[:top_k]]
        if not (expected or sure):
            return ParsedTree(*best[0][:2], best=ranked)
        posteriors = self.grammar.posteriors(sums)
        of_tags, of_labels = summed(diagonal(posteriors), self._of_tag), summed(posteriors, self._of_label)
        tags, brackets = self._expected(of_tags, of_labels, known) if expected else best[0][:2]
        if not sure:
            return ParsedTree(tags, brackets, best=ranked)
        places, names = {name: i for i, name in enumerate(self.labels)}, self.tag_names
        score = self.log_weight(words, tags, brackets) if expected else best[0][2]
        return ParsedTree(
            tags, brackets, math.exp(min(score - sums.log_z, 0.0)),
            [float(of_labels[start, end - 1, places[label]]) for start, end, label in brackets],
            [float(of_tags[i, names.index(tag)]) for i, tag in enumerate(tags)], ranked,
        )  # fmt: skip

    def _best(self, words: Sequence[str], k: int, known: Known) -> list[tuple[list[str], list[Bracket], float]]:
        """Return the k best trees with the logarithms of their weights; none if no rules fit."""
        chart = self.charts(words, best=True, known=known)
        if chart.log_z == -math.inf:
            return []
        return [(*self._split_nodes(nodes), score) for nodes, score in self.grammar.top_k(chart, k)]

    def _expected(self, of_tags: Array, of_labels: Array, known: Known) -> tuple[list[str], list[Bracket]]:
        """Return the tree of the highest expected F1, and the likeliest tag of each word."""
        brackets = [
            (start, end, label)
            for start, end, labels in expected_brackets(of_labels, list(known))
            for label in self.counts.in_order([self.labels[i] for i in labels])
        ]
        return [self.tag_names[i] for i in of_tags.argmax(1).tolist()], brackets

    def log_weight(self, words: Sequence[str], tags: Sequence[str], brackets: Sequence[Bracket]) -> float:
        """Return log p(tree, words) up to a factor of the words, as in charts; -inf if the grammar lacks a rule.

        Args:
            words: Words of the sentence.
            tags: Part of speech of each word.
            brackets: Brackets of the tree.

        Returns:
            A logarithm.
        """
        factors = [weight for _, weight in self.factors(words, tags, brackets)]
        return float(np.log(factors).sum()) if min(factors) > 0 else -math.inf

    def factors(
        self, words: Sequence[str], tags: Sequence[str], brackets: Sequence[Bracket]
    ) -> list[tuple[str, float]]:
        """Return the rules of a tree with their weights, whose product is that of the tree; 0 for a missing rule.

        Args:
            words: Words of a sentence.
            tags: Their parts of speech.
            brackets: Constituents, outermost first.

        Returns:
            Each rule as text, and its weight.
        """
        (binary, unary), weights, i = self.rules, self.words.weights(words), 0
        tree = annotated(tree_of(words, tags, brackets), self.config, self.counts.frequent)
        factors = [(f"root -> {tree.label}", self.counts.roots[tree.label] / self.counts.roots.total())]
        for node in tree.subtrees:
            if is_tag(node):
                weight = float(weights[i, self.place[node.label]]) if node.label in self.place else 0.0
                factors.append((f"{node.label} -> {words[i]}", weight))
                i += 1
                continue
            for above, *below in self.counts.rules_of(node):
                if len(below) == 2:
                    weight = binary.get((above, below[0], below[1]), 0.0)
                else:
                    weight = unary.get((above, below[0]), 0.0)
                factors.append((f"{above} -> {' '.join(below)}", weight))
        return factors

    def reasons(self, sentence: Sentence, parse: ParsedTree) -> dict[tuple[int, int], Reason]:
        """Return the rules that decide each span: those in which the best trees with and without its brackets differ.

        Both are looked for among the `CANDIDATES` best trees: of a bracket that all of them have, there is none.
        """
        words, reasons = sentence.words, {}
        best = self._best(words, CANDIDATES, {})
        for span, group in groupby(parse.brackets, lambda each: each[:2]):
            brackets = set(group)
            kept = next((each for each in best if brackets <= set(each[1])), None)
            rival = next((each for each in best if not brackets <= set(each[1])), None)
            if kept is not None and rival is not None:
                own, other = (self.factors(words, *each[:2]) for each in (kept, rival))
                reasons[span] = _rule_reason(own, other, rival_text(span, rival[1], words))
        return reasons

    def _split_nodes(self, nodes: Sequence[Node]) -> tuple[list[str], list[Bracket]]:
        """Return tags and constituents of a derivation; what only stands for the rest of some children goes."""
        tags: list[str] = []
        brackets: list[Bracket] = []
        for start, end, symbol in nodes:
            label = self.names[symbol]
            if symbol in self.words.symbols:
                tags.append(label or "")
            elif label is not None:
                brackets.append((start, end, label))
        return tags, brackets

    def _flat(self, words: Sequence[str], known: Known) -> ParsedTree:
        """Return a tree for a sentence that no rules fit: its likeliest tags below one bracket, and no probability."""
        if known:
            raise _no_tree(words)
        return ParsedTree(self.words.tags(words), [(0, len(words), ROOTS[0])] if len(words) > 1 else [])

    def _in_pieces(self, words: Sequence[str]) -> ParsedTree:
        """Parse a long sentence piece by piece below one bracket, without a probability."""
        tags: list[str] = []
        brackets: list[Bracket] = [(0, len(words), ROOTS[0])]
        step = min(self.config.longest, PIECE)
        for at in range(0, len(words), step):
            piece = self._one(words[at : at + step], 0, False, {})
            tags += piece.tags
            brackets += [(at + start, at + end, label) for start, end, label in piece.brackets]
        return ParsedTree(tags, brackets)

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        sentences, notes = super().readable_gold(gold, scheme)
        n_long = sum(len(each) > self.config.longest for each in gold)
        if n_long:
            long = f"{count(n_long, 'sentence')} of more than {self.config.longest} words"
            notes.append(f"note: {long} parsed in pieces of {PIECE} words, without a probability")
        return sentences, notes

    # What it is

    @property
    def known_labels(self) -> list[str]:
        return sorted(set(self.labels))

    @property
    def n_parameters(self) -> int:
        return len(self.counts.binary) + len(self.counts.unary) + len(self.counts.words)

    @property
    def chart_cost(self) -> float:  # type: ignore[override]
        """Every rule is tried wherever its children may be."""
        return 2.5e-10 * len(self.counts.binary)

    @property
    def size(self) -> str:
        rules = f"{len(self.counts.binary):,} binary and {len(self.counts.unary):,} unary rules"
        return f"{len(self.symbols):,} symbols, {rules}, {len(self.counts.words):,} words with symbols"

    def knows(self, word: str) -> bool:
        return word in self.words.lexicon.words

    def describe(self, top: int = 20) -> Description:
        names, settings = sorted({name for name in self.names if name}), self.config.to_dict()
        sections = [("most frequent rules", self.counts.most_frequent(top)), ("grammar", settings)]
        return Description("a treebank grammar", {"labels": names}, {"labels": names}, settings, sections)

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        config, arrays = stored_counts(self.counts, self.place)
        card = model_card(self)
        write_model(
            directory,
            StoredModel(type(self).__name__, config, arrays, self.metrics, card, extra or {}, self.kept_models()),
        )

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, cls.__name__)
        try:
            counts = counts_from(stored)
            model = cls(counts.config, counts)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        model.metrics = dict(stored.metrics)
        return with_kept(model, directory)


def _rule_reason(own: Sequence[tuple[str, float]], other: Sequence[tuple[str, float]], rival: str) -> Reason:
    """Return votes of the rules that one of two trees has and the other has not."""
    of_own, of_other = Counter(own), Counter(other)
    votes = [
        Vote(rule, sign * n * math.log(weight), rule if sign > 0 else f"not {rule}")
        for sign, rules in ((1, of_own - of_other), (-1, of_other - of_own))
        for (rule, weight), n in rules.items()
    ]
    return Reason(rival, sum(vote.score for vote in votes), ranked(votes))


def _no_tree(words: Sequence[str]) -> ConstraintError:
    shown = " ".join(words[:8]) + (" ..." if len(words) > 8 else "")
    return ConstraintError(f"no tree of the grammar agrees with the pins of {shown!r}; leave one out")
