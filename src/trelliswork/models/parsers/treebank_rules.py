"""From trees to the rules of a grammar: ancestors in labels, children one by one, and counts.

>>> rules = RuleCounts(GrammarConfig(horizontal=1))
>>> rules.add(Tree.parse("(S (NP (PRP We)) (VP (VBP sleep)))"))
>>> sorted(rules.binary), sorted(rules.unary)[:2]
([('S^', 'NP^S', 'VP^S')], [('NP^S', 'PRP^NP'), ('VP^S', 'VBP^VP')])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trelliswork.models.parsers.pcfg_config import GrammarConfig
from trelliswork.structures.grammar.tree import MARKER, Tree, binarise

ABOVE = "^"  # between a label and those above it


def annotated(tree: Tree, vertical: int, tag_parents: bool) -> Tree:
    """Labels that also name the `vertical` - 1 nearest constituents above; tags name one, or none."""
    above: dict[int, tuple[str, ...]] = {id(tree): ()}
    found: dict[int, str] = {}
    for node in tree.subtrees:
        path = above[id(node)]
        is_tag = isinstance(node.children[0], str)
        n = (1 if tag_parents else 0) if is_tag else vertical - 1
        found[id(node)] = node.label + "".join(ABOVE + each for each in (path[:n] if path else ("",) * min(n, 1)))
        for child in node.children:
            if isinstance(child, Tree):
                above[id(child)] = (node.label, *path)[: max(vertical - 1, 1)]
    return _relabelled(tree, found)


def _relabelled(tree: Tree, labels: Mapping[int, str]) -> Tree:
    made: dict[int, Tree] = {}
    for node in reversed(list(tree.subtrees)):
        children = tuple(each if isinstance(each, str) else made[id(each)] for each in node.children)
        made[id(node)] = Tree(labels[id(node)], children)
    return made[id(tree)]


def label_of(symbol: str) -> str | None:
    """The label of a symbol; None of one that only stands for the rest of some children.

    >>> label_of("NP^S"), label_of("VP^S|<NP^VP>")
    ('NP', None)
    """
    return None if MARKER + "<" in symbol else symbol.split(ABOVE)[0] or symbol


class RuleCounts:
    """How often each rule occurs in trees, by the symbols that `annotated` and `binarise` make."""

    def __init__(self, config: GrammarConfig):
        self.config = config
        self.binary: Counter[tuple[str, str, str]] = Counter()
        self.unary: Counter[tuple[str, str]] = Counter()
        self.words: Counter[tuple[str, str]] = Counter()  # (symbol, word)
        self.roots: Counter[str] = Counter()

    def add(self, tree: Tree) -> None:
        """Count the rules of a tree."""
        config = self.config
        normal = binarise(annotated(tree, config.vertical, config.tag_parents), config.side, config.horizontal)
        self.roots[normal.label] += 1
        for node in normal.subtrees:
            if isinstance(node.children[0], str):
                self.words[node.label, node.children[0]] += 1
            elif len(node.children) == 1:
                self.unary[node.label, _label(node.children[0])] += 1
            else:
                self.binary[node.label, _label(node.children[0]), _label(node.children[1])] += 1

    def weights(self) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str], float]]:
        """The share of each rule among those of its left-hand side."""
        totals: Counter[str] = Counter()
        for rule, n in [*self.binary.items(), *self.unary.items()]:
            totals[rule[0]] += n
        return (
            {rule: n / totals[rule[0]] for rule, n in self.binary.items()},
            {rule: n / totals[rule[0]] for rule, n in self.unary.items()},
        )


def _label(child: Tree | str) -> str:
    assert isinstance(child, Tree)
    return child.label
