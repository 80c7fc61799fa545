"""A context-free grammar in Chomsky normal form: symbols, numbered rules, a lexicon, and the way back to trees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Float
from trelliswork.structures.grammar.rules import (
    FoldedChains,
    Rule,
    read_rules,
    without_long,
    without_mixed,
    without_unary,
)
from trelliswork.structures.grammar.tree import (
    Direction,
    Tree,
    binarise,
    collapse_unary,
    lifted,
    rebuilt,
    restore_unary,
    unbinarise,
    without_lifted,
)


@dataclass(frozen=True, eq=False, repr=False)
class Grammar:
    """⟨N, S, Σ, R⟩ with rules N -> N N and N -> word only.

    `symbols` are ordered: those that only have binary rules, those that have both kinds, those that only stand above
    words. The first `n_phrases` have binary rules, the last `n_lexical` words.

    >>> grammar = Grammar.from_rules("S -> NP VP 1\\nNP -> 'we' 1\\nVP -> 'sleep' 1")
    >>> grammar.symbols, grammar.n_rules
    (('S', 'NP', 'VP'), 1)
    """  # [S2, CFG; S2, CNF]

    symbols: tuple[str, ...]
    n_phrases: int
    n_lexical: int
    rules: tuple[tuple[int, int, int], ...]  # (parent, left, right), sorted by parent
    rule_scores: Float[Tensor, "rules"]  # logarithms, float64
    root_scores: Float[Tensor, "symbols"]
    words: tuple[str, ...] = ()
    lexicon: Float[Tensor, "lexical words"] = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    chains: FoldedChains = field(default_factory=dict)
    joint_labels: bool = False  # whether labels such as A+B stand for chains
    binarised: tuple[Direction, int | None] = ("right", None)  # how trees were cut

    def __repr__(self) -> str:
        """Sizes only: a grammar from a treebank has thousands of rules."""
        return f"Grammar({len(self.symbols)} symbols, {self.n_rules} rules, {len(self.words)} words)"

    # --- ways to make one ------------------------------------------------------------------------------------

    @staticmethod
    def from_rules(
        rules: str | Iterable[Rule | tuple[str, tuple[str, ...], float]], start: str | None = None
    ) -> Grammar:
        """Build it from rules with weights, as text or tuples; `start` is the left-hand side of the first if not given.

        Words are in quotes. Long right-hand sides are cut in two with markers, unary rules are folded into the others.
        """
        given = read_rules(rules)
        start = given[0].left if start is None else start
        normal, chains = without_unary(without_long(without_mixed(given)))
        return Grammar._of(normal, {start: 1.0}, chains)

    @staticmethod
    def from_trees(trees: Iterable[Tree], *, direction: Direction = "right", horizontal: int | None = 1) -> Grammar:
        """Estimate the grammar of a treebank: each rule's count divided by that of its left-hand side.

        Trees are binarised and their unary chains become joint labels; `to_tree` undoes both.

        Args:
            trees: trees with words as leaves.
            direction: "right" to split the first child off first when a node is binarised, "left" the last.
            horizontal: how many of the remaining children a new label names; None for all.

        Returns:
            A grammar in Chomsky normal form with log-probabilities as scores.
        """
        rules: Counter[tuple[str, tuple[str, ...]]] = Counter()
        roots: Counter[str] = Counter()
        for tree in trees:
            normal = collapse_unary(binarise(lifted(tree), direction, horizontal))
            roots[normal.label] += 1
            for node in normal.subtrees:
                rules[node.label, tuple(_quoted(each) for each in node.children)] += 1
        if not roots:
            raise ScoreError("a grammar needs at least one tree; got none")
        lefts: Counter[str] = Counter()
        for (left, _), count in rules.items():
            lefts[left] += count
        weighted = [Rule(left, right, count / lefts[left]) for (left, right), count in rules.items()]
        total = roots.total()
        return Grammar._of(
            weighted, {name: count / total for name, count in roots.items()}, {}, (direction, horizontal)
        )

    @staticmethod
    def dense(n_phrases: int, n_lexical: int) -> Grammar:
        """Return every phrase over any two symbols, every phrase a root, scores of 0.

        For scores that a network gives.
        """
        size = n_phrases + n_lexical
        rules = tuple((a, b, c) for a in range(n_phrases) for b in range(size) for c in range(size))
        names = tuple(f"N{i}" for i in range(n_phrases)) + tuple(f"T{i}" for i in range(n_lexical))
        zeros = torch.zeros(len(rules), dtype=torch.float64)
        return Grammar(names, n_phrases, n_lexical, rules, zeros, torch.zeros(size, dtype=torch.float64))

    @staticmethod
    def _of(
        normal: Sequence[Rule],
        roots: dict[str, float],
        chains: FoldedChains,
        cut: tuple[Direction, int | None] | None = None,
    ) -> Grammar:
        above_words = {rule.left for rule in normal if len(rule.right) == 1}
        phrases = {rule.left for rule in normal if len(rule.right) == 2}
        used = above_words | phrases | set(roots)
        used |= {symbol for rule in normal if len(rule.right) == 2 for symbol in rule.right}
        missing = sorted(used - above_words - phrases)
        if missing:
            raise ScoreError(f"every symbol needs a rule; got none for {missing[:5]}; add rules or put words in quotes")
        symbols = (*sorted(phrases - above_words), *sorted(phrases & above_words), *sorted(above_words - phrases))
        place = {symbol: i for i, symbol in enumerate(symbols)}
        weights: dict[tuple[int, int, int], float] = {}
        words = sorted({rule.right[0][1:-1] for rule in normal if len(rule.right) == 1})
        column = {word: i for i, word in enumerate(words)}
        lexicon = torch.zeros(len(above_words), len(words), dtype=torch.float64)
        for left, right, weight in normal:
            if len(right) == 2:
                key = (place[left], place[right[0]], place[right[1]])
                weights[key] = weights.get(key, 0.0) + weight
            else:
                lexicon[place[left] - len(symbols) + len(above_words), column[right[0][1:-1]]] += weight
        rules = tuple(sorted(weights))
        scores = torch.tensor([weights[rule] for rule in rules], dtype=torch.float64).log()
        root = torch.full((len(symbols),), -INF, dtype=torch.float64)
        for name, weight in roots.items():
            root[place[name]] = math.log(weight)
        return Grammar(
            symbols, len(phrases), len(above_words), rules, scores, root, tuple(words), lexicon.log(), chains,
            cut is not None, cut or ("right", None),
        )  # fmt: skip

    # --- numbers ---------------------------------------------------------------------------------------------

    @property
    def n_rules(self) -> int:
        """Binary rules."""
        return len(self.rules)

    @property
    def first_lexical(self) -> int:
        """The first symbol that stands above words."""
        return len(self.symbols) - self.n_lexical

    @cached_property
    def rule_index(self) -> dict[tuple[int, int, int], int]:
        return {rule: i for i, rule in enumerate(self.rules)}

    @cached_property
    def symbol_index(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    def lexical_scores(
        self, sentences: Sequence[Sequence[str]], unknown: Float[Tensor, "lexical"] | None = None
    ) -> Float[Tensor, "batch n lexical"]:
        """Return log weights of N -> word; a word that is not in the lexicon scores `unknown`, or is an error."""
        if unknown is not None and unknown.shape != (self.n_lexical,):
            raise ScoreError(f"unknown must be ({self.n_lexical},), one score a symbol; got {tuple(unknown.shape)}")
        column = {word: i for i, word in enumerate(self.words)}
        n = max(map(len, sentences))
        scores = torch.zeros(len(sentences), n, self.n_lexical, dtype=torch.float64)
        for row, sentence in enumerate(sentences):
            for i, word in enumerate(sentence):
                if word in column:
                    scores[row, i] = self.lexicon[:, column[word]]
                elif unknown is None:
                    raise ScoreError(
                        f"{word!r} of sentence {row} is not in the lexicon; give scores for unknown words, one a symbol"
                    )
                else:
                    scores[row, i] = unknown
        return scores

    def locally_normalised(
        self, rules: Float[Tensor, "*batch rules"], lexicon: Float[Tensor, "*batch lexical words"]
    ) -> tuple[Tensor, Tensor]:
        """Logits as log probabilities: the rules of each left-hand side, words included, sum to 1."""  # [S2, PCFG]
        totals = self.left_hand_totals(rules, lexicon)
        lefts = torch.tensor([left for left, _, _ in self.rules], device=rules.device)
        return rules - totals[..., lefts], lexicon - totals[..., self.first_lexical :, None]

    def left_hand_totals(self, rules: Tensor, lexicon: Tensor) -> Float[Tensor, "*batch symbols"]:
        """Return log Σ of the weights of each symbol's rules."""
        lefts = np.array([left for left, _, _ in self.rules])
        totals = []
        for symbol in range(len(self.symbols)):
            parts = [rules[..., torch.from_numpy(np.nonzero(lefts == symbol)[0])]]
            if symbol >= self.first_lexical:
                parts.append(lexicon[..., symbol - self.first_lexical, :])
            totals.append(torch.cat(parts, -1).logsumexp(-1))
        return torch.stack(totals, -1)

    # --- trees -----------------------------------------------------------------------------------------------

    def to_tree(self, derivation: Tree) -> Tree:
        """Return a derivation as the tree it stands for: chains of unary rules restored, long nodes whole again."""
        if self.joint_labels:
            return without_lifted(unbinarise(restore_unary(derivation)))
        return without_lifted(unbinarise(self._with_chains(derivation)))

    def _with_chains(self, derivation: Tree) -> Tree:
        def restored(node: Tree, children: list[Tree | str]) -> Tree:
            rule = (node.label, *(_quoted(each) for each in node.children))
            below = tuple(children)
            for symbol in reversed(self.chains.get(rule, ())):
                below = (Tree(symbol, below),)
            return Tree(node.label, below)

        return rebuilt(derivation, restored)

    def to_derivation(self, tree: Tree) -> Tree:
        """Return a tree in the symbols of this grammar: the way back from `to_tree`.

        What chains pass through is dropped.
        """
        if self.joint_labels:
            return collapse_unary(binarise(lifted(tree), *self.binarised))
        return _without_chains(binarise(lifted(tree)))


def _quoted(child: Tree | str) -> str:
    return f"'{child}'" if isinstance(child, str) else child.label


def _without_chains(tree: Tree) -> Tree:
    def shortened(node: Tree, children: list[Tree | str]) -> Tree:
        only = children[0]
        return Tree(node.label, only.children if len(children) == 1 and isinstance(only, Tree) else tuple(children))

    return rebuilt(tree, shortened)
