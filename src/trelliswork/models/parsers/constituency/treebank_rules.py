"""From trees to the rules of a grammar: annotated labels, children one by one, and counts.

>>> tree = Tree.parse("(S (NP (PRP We)) (VP (VBP sleep)))")
>>> rules = RuleCounts.of([tree], GrammarConfig(mark_single=False, mark_base=False))
>>> sorted(rules.binary), sorted(rules.unary)[:2]
([('S^', 'NP^S', 'VP^S')], [('NP^S', 'PRP^NP'), ('VP^S', 'VBP^VP')])
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from trelliswork.models.parsers.constituency.config import GrammarConfig, Side
from trelliswork.models.storage import StoredModel
from trelliswork.runtime.arrays import Array
from trelliswork.structures.grammar.tree import MARKER, Tree

ABOVE = "^"  # between a label and those above it
MARK = ABOVE + "="  # before what else tells a symbol apart: a word, "1" of a single child, "0" of words alone
SINGLE, BASE = MARK + "1", MARK + "0"


def annotated(tree: Tree, config: GrammarConfig, frequent: Collection[tuple[str, str]] = ()) -> Tree:
    """Return a tree whose labels also name the nearest constituents above, and what else the settings tell apart.

    `frequent` has the pairs of tag and word, in lower case, that are symbols of their own.

    Args:
        tree: The tree.
        config: Settings of the grammar.
        frequent: Pairs of tag and word that are symbols of their own.
    """
    above: dict[int, tuple[str, ...]] = {id(tree): ()}
    names: dict[int, str] = {}
    for node in tree.subtrees:
        path, word = above[id(node)], node.children[0]
        if isinstance(word, str):
            n, mark = int(config.tag_parents), _word_mark(node.label, word, frequent)
        else:
            n, mark = config.vertical - 1, _shape_mark(node, config)
        parents = path[:n] if path else ("",) * min(n, 1)
        names[id(node)] = node.label + "".join(ABOVE + each for each in parents) + mark
        for child in node.children:
            if isinstance(child, Tree):
                above[id(child)] = (node.label, *path)[: max(config.vertical - 1, 1)]
    return _relabelled(tree, names)


def _word_mark(tag: str, word: str, frequent: Collection[tuple[str, str]]) -> str:
    lower = word.lower()
    return MARK + lower if (tag, lower) in frequent else ""


def _shape_mark(node: Tree, config: GrammarConfig) -> str:
    if config.mark_single and len(node.children) == 1:
        return SINGLE
    return BASE if config.mark_base and all(map(is_tag, node.children)) else ""


def is_tag(node: Tree | str) -> bool:
    """Return whether a node is right above a word."""
    return isinstance(node, Tree) and isinstance(node.children[0], str)


def _relabelled(tree: Tree, labels: Mapping[int, str]) -> Tree:
    made: dict[int, Tree] = {}
    for node in reversed(list(tree.subtrees)):
        children = tuple(each if isinstance(each, str) else made[id(each)] for each in node.children)
        made[id(node)] = Tree(labels[id(node)], children)
    return made[id(tree)]


def label_of(symbol: str) -> str | None:
    """Return the label of a symbol; None of one that only stands for the rest of some children.

    >>> label_of("NP^S"), label_of("VP^S|<NP^VP>")
    ('NP', None)
    """
    return None if MARKER + "<" in symbol else symbol.split(ABOVE)[0] or symbol


def without_farthest(symbol: str) -> str:
    """Return a symbol without the farthest of the ancestors that it names.

    >>> without_farthest("NP^S^=1"), without_farthest("NP^VP^S")
    ('NP^=1', 'NP^VP')
    """
    name, mark, rest = symbol.partition(MARK)
    return name.rpartition(ABOVE)[0] + mark + rest


def word_of(symbol: str) -> str | None:
    """Return the one word, in lower case, that a tag is for; None if it is for others.

    >>> word_of("IN^PP^=of"), word_of("IN^PP")
    ('of', None)
    """
    _, mark, word = symbol.partition(MARK)
    return word if mark else None


def frequent_words(trees: Iterable[Tree], least: int) -> frozenset[tuple[str, str]]:
    """Return the pairs of tag and word, in lower case, that occur at least so often; none if that is 0."""
    counts = Counter(
        (node.label, node.children[0].lower())
        for tree in (trees if least else ())
        for node in tree.subtrees
        if isinstance(node.children[0], str)
    )
    return frozenset(pair for pair, n in counts.items() if n >= least and MARKER not in pair[1])


class Contexts:
    """The names of what is left of a constituent: its symbol and the next children, as many as were seen often enough.

    Klein and Manning (2003), Accurate unlexicalized parsing, section 2.2: variable histories.
    """

    def __init__(self, horizontal: int, known: Collection[str] = ()):
        self.horizontal, self.known = horizontal, known

    @staticmethod
    def of(trees: Iterable[Tree], config: GrammarConfig) -> Contexts:
        """Count the rules of trees."""
        contexts, counts = Contexts(config.horizontal), Counter[str]()
        for tree in trees:
            for node in tree.subtrees:
                for rest in _rests(node, config.side):
                    counts.update(contexts._names(node.label, rest))
        contexts.known = {name for name, n in counts.items() if n >= config.least_context}
        return contexts

    def _names(self, label: str, rest: Sequence[Tree]) -> list[str]:
        """Return the names from the shortest to the longest."""
        shown = [each.label.split(ABOVE)[0] or each.label for each in rest[: self.horizontal]]
        return [f"{label}{MARKER}<{'-'.join(shown[:n])}>" for n in range(len(shown) + 1)]

    def name(self, label: str, rest: Sequence[Tree]) -> str:
        """Return the longest name that is known, or the one without children."""
        shortest, *longer = self._names(label, rest)
        return next((name for name in reversed(longer) if name in self.known), shortest)


class RuleCounts:
    """Counts of the rules in trees, by the symbols that `annotated` and `Contexts` make."""

    def __init__(self, config: GrammarConfig, frequent: Collection[tuple[str, str]] = ()):
        self.config, self.frequent, self.contexts = config, frequent, Contexts(config.horizontal)
        self.binary: dict[tuple[str, str, str], float] = defaultdict(float)
        self.unary: dict[tuple[str, str], float] = defaultdict(float)
        self.words: Counter[tuple[str, str]] = Counter()  # (symbol, word)
        self.roots: Counter[str] = Counter()

    @staticmethod
    def of(trees: Sequence[Tree], config: GrammarConfig) -> RuleCounts:
        """Count the rules of trees."""
        counts = RuleCounts(config, frequent_words(trees, config.frequent))
        annotated_trees = [annotated(tree, config, counts.frequent) for tree in trees]
        counts.contexts = Contexts.of(annotated_trees, config)
        for tree in annotated_trees:
            counts.add(tree)
        counts.smooth(annotated_trees)
        return counts

    def smooth(self, trees: Iterable[Tree]) -> None:
        """Give each constituent also the rules that it has below other farthest ancestors, as many as the settings say.

        Expansions that were seen only once are left out: they would double the grammar.
        """
        weight, expansions = self.config.ancestor_smoothing, _Expansions()
        if not weight or self.config.vertical == 1:
            return
        for tree in trees:
            expansions.add(tree)
        for symbol, names, share in expansions.shared():
            for rule in self.rules_of(Tree(symbol, tuple(Tree(name, ("",)) for name in names))):
                self._count(rule, weight * share)

    def rules_of(self, node: Tree) -> Iterator[tuple[str, ...]]:
        """Yield the rules (symbol, one child or two) of a constituent of an annotated tree."""
        names = [_label(each) for each in node.children]
        above, from_left = node.label, self.config.side == "right"
        rests = [self.contexts.name(node.label, rest) for rest in _rests(node, self.config.side)]
        for i, below in enumerate(rests):
            yield (above, names[i], below) if from_left else (above, below, names[-1 - i])
            above = below
        yield above, *(names[len(rests) :] if from_left else names[: len(names) - len(rests)])

    def add(self, tree: Tree) -> None:
        """Count the rules of an annotated tree."""
        self.roots[tree.label] += 1
        for node in tree.subtrees:
            if is_tag(node):
                self.words[node.label, str(node.children[0])] += 1
            else:
                for rule in self.rules_of(node):
                    self._count(rule, 1)

    def most_frequent(self, n: int) -> dict[str, str]:
        """Return the most frequent rules and how often they occur, for people."""
        rules = sorted([*self.binary.items(), *self.unary.items()], key=lambda rule: -rule[1])[:n]
        return {f"{a} -> {' '.join(rest)}": f"{times:,.0f}" for (a, *rest), times in rules}

    def in_order(self, labels: Sequence[str]) -> list[str]:
        """Return labels of the same words, from the top down, as they mostly are in the treebank."""
        above = self._above
        return sorted(labels, key=lambda a: (sum(above[b, a] - above[a, b] for b in labels), a))

    @cached_property
    def _above(self) -> Mapping[tuple[str | None, str | None], float]:
        """Counts of a label right above another on the same words."""
        counts: dict[tuple[str | None, str | None], float] = defaultdict(float)
        for (a, b), times in self.unary.items():
            counts[label_of(a), label_of(b)] += times
        return counts

    def _count(self, rule: tuple[str, ...], n: float) -> None:
        if len(rule) == 2:
            self.unary[rule[0], rule[1]] += n
        else:
            self.binary[rule[0], rule[1], rule[2]] += n

    def weights(self) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str], float]]:
        """Return the share of each rule among those of its left-hand side."""
        totals: dict[str, float] = defaultdict(float)
        for rule, n in [*self.binary.items(), *self.unary.items()]:
            totals[rule[0]] += n
        return (
            {rule: n / totals[rule[0]] for rule, n in self.binary.items()},
            {rule: n / totals[rule[0]] for rule, n in self.unary.items()},
        )


class _Expansions:
    """Counts of the children of constituents, whatever their farthest ancestor is."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.symbols: dict[str, set[str]] = {}

    def add(self, tree: Tree) -> None:
        for node in tree.subtrees:
            if not is_tag(node):
                coarse = without_farthest(node.label)
                self.counts[coarse, tuple(map(_label, node.children))] += 1
                self.symbols.setdefault(coarse, set()).add(node.label)

    def shared(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield (symbol, children, share) of each constituent that has several farthest ancestors."""
        often = {key: n for key, n in self.counts.items() if n > 1 and len(self.symbols[key[0]]) > 1}
        totals: Counter[str] = Counter()
        for (coarse, _), n in often.items():
            totals[coarse] += n
        for (coarse, names), n in often.items():
            for symbol in sorted(self.symbols[coarse]):
                yield symbol, names, n / totals[coarse]


def _rests(node: Tree, side: Side) -> Iterator[list[Tree]]:
    """Yield what is left when the first of three children or more, the first two, ... are split off, down to two."""
    children = [each for each in node.children if isinstance(each, Tree)]
    ordered = children if side == "right" else children[::-1]
    for i in range(1, len(ordered) - 1):
        yield ordered[i:]


def _label(child: Tree | str) -> str:
    assert isinstance(child, Tree)
    return child.label


# The counts of a treebank grammar as arrays, as its folder keeps them, and back.


def stored_counts(counts: RuleCounts, place: Mapping[str, int]) -> tuple[dict[str, object], dict[str, Array]]:
    """Return the entries of config.json and the arrays of a grammar; `place` numbers the symbols."""
    words = sorted({word for _, word in counts.words})
    column = {word: i for i, word in enumerate(words)}
    arrays = {
        "roots": np.array([[place[each], n] for each, n in counts.roots.items()], np.int64),
        "words": np.array([[place[a], column[w], n] for (a, w), n in counts.words.items()], np.int64),
    }
    for name, width, rules in (("binary", 3, counts.binary), ("unary", 2, counts.unary)):
        symbols = [[place[each] for each in rule] for rule in rules]
        arrays[name] = np.array(symbols, np.int64).reshape(-1, width)
        arrays[f"{name}_counts"] = np.array(list(rules.values()), np.float64)
    return {
        "settings": counts.config.to_dict(),
        "symbols": sorted(place, key=place.__getitem__),
        "words": words,
    }, arrays


def counts_from(stored: StoredModel) -> RuleCounts:
    """Return the counts of a folder."""
    counts = RuleCounts(GrammarConfig.from_dict(stored.config["settings"]))
    symbols, words, arrays = stored.config["symbols"], stored.config["words"], stored.weights
    if not all(isinstance(name, str) and name for name in (*symbols, *words)):
        raise ValueError("expected texts as symbols and words")
    for (a, b, c), n in zip(arrays["binary"].tolist(), arrays["binary_counts"].tolist(), strict=True):
        counts.binary[symbols[a], symbols[b], symbols[c]] = n
    for (a, b), n in zip(arrays["unary"].tolist(), arrays["unary_counts"].tolist(), strict=True):
        counts.unary[symbols[a], symbols[b]] = n
    for a, n in arrays["roots"].tolist():
        counts.roots[symbols[a]] = n
    for a, w, n in arrays["words"].tolist():
        counts.words[symbols[a], words[w]] = n
    if not all(n > 0 for each in (counts.binary, counts.unary, counts.roots, counts.words) for n in each.values()):
        raise ValueError("expected counts above 0")
    if not counts.words or not counts.roots:
        raise ValueError("expected words and roots of trees, got none")
    if any((arrays[name] < 0).any() for name in ("binary", "unary", "roots", "words")):
        raise ValueError("expected numbers of symbols and words from 0")
    counts.frequent = {(label_of(tag) or tag, word) for tag, _ in counts.words if (word := word_of(tag))}
    counts.contexts.known = {symbol for symbol in symbols if label_of(symbol) is None}
    return counts
