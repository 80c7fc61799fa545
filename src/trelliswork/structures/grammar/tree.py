"""Labelled ordered trees: read and written as brackets, binarised and back, unary chains collapsed and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trelliswork.errors import ScoreError

TOKENS = re.compile(r"[()]|[^\s()]+")
JOINT = "+"  # between the labels of a collapsed chain
_JOINTS = re.compile(r"(?<!\\)\+")
MARKER = "|"  # before what remains of a node that was binarised
Direction = Literal["left", "right"]


@dataclass(frozen=True)
class Tree:
    """A label and its children, which are trees or, at the leaves, words.

    >>> tree = Tree.parse("(S (NP we) (VP (V saw) (NP it)))")
    >>> tree.words, str(tree.children[1])
    (['we', 'saw', 'it'], '(VP (V saw) (NP it))')
    """

    label: str
    children: tuple[Tree | str, ...]

    @staticmethod
    def parse(text: str) -> Tree:
        """One tree in brackets."""
        trees = list(parse_all(text))
        if len(trees) != 1:
            raise ScoreError(
                f"expected one tree in brackets; got {len(trees)} in {text[:60]!r}; use parse_all for many"
            )
        return trees[0]

    @property
    def words(self) -> list[str]:
        """The leaves from left to right."""
        found: list[str] = []
        for child in self.children:
            found.extend([child] if isinstance(child, str) else child.words)
        return found

    @property
    def subtrees(self) -> Iterator[Tree]:
        """This tree and all below it, parents before children and left before right."""
        yield self
        for child in self.children:
            if not isinstance(child, str):
                yield from child.subtrees

    def spans(self, start: int = 0) -> list[tuple[int, int, str]]:
        """(start, end, label) of every node, end exclusive, parents before children."""
        below: list[tuple[int, int, str]] = []
        end = start
        for child in self.children:
            if isinstance(child, str):
                end += 1
            else:
                inner = child.spans(end)
                below.extend(inner)
                end = inner[0][1]
        return [(start, end, self.label), *below]

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(str, self.children))})"


def parse_all(text: str) -> Iterator[Tree]:
    """Every tree in a text of brackets; an unlabelled outer bracket around a tree is dropped."""
    open_nodes: list[list[Tree | str]] = []
    for match in TOKENS.finditer(text):
        token = match[0]
        if token == "(":
            open_nodes.append([])
        elif not open_nodes:
            raise ScoreError(f"expected '(' at character {match.start()}; got {token!r}; balance the brackets")
        elif token == ")":
            node = _closed(open_nodes.pop(), match.start())
            if open_nodes:
                open_nodes[-1].append(node)
            else:
                yield node
        else:
            open_nodes[-1].append(token)
    if open_nodes:
        raise ScoreError(f"{len(open_nodes)} brackets are not closed at the end of the text; balance the brackets")


def _closed(parts: list[Tree | str], place: int) -> Tree:
    if len(parts) == 1 and isinstance(parts[0], Tree):
        return parts[0]
    if len(parts) < 2 or not isinstance(parts[0], str):
        raise ScoreError(f"expected (label child ...) in the bracket that ends at character {place}; got {parts}")
    return Tree(parts[0], tuple(parts[1:]))


def binarise(tree: Tree, direction: Direction = "right", horizontal: int | None = None) -> Tree:
    """No node with more than two children: those left over hang from a new node `label|<a-b>`.

    "right" splits the first child off, so that the rest lies to the right; "left" the last. The new label names the
    next `horizontal` children that remain (None: all of them): few make a small grammar that generalises.
    `unbinarise` undoes it.
    """
    children = tuple(each if isinstance(each, str) else binarise(each, direction, horizontal) for each in tree.children)
    return _split(tree.label, tree.label, children, direction, horizontal)


def _split(
    label: str, owner: str, children: tuple[Tree | str, ...], direction: Direction, horizontal: int | None
) -> Tree:
    if len(children) <= 2:
        return Tree(label, children)
    rest = children[1:] if direction == "right" else children[:-1]
    n_named = len(rest) if horizontal is None else min(horizontal, len(rest))
    named = rest[:n_named] if direction == "right" else rest[len(rest) - n_named :]
    names = "-".join(each if isinstance(each, str) else each.label for each in named)
    below = _split(f"{owner}{MARKER}<{names}>", owner, rest, direction, horizontal)
    return Tree(label, (children[0], below) if direction == "right" else (below, children[-1]))


def unbinarise(tree: Tree) -> Tree:
    """Nodes that `binarise` made give way to their children."""
    children: list[Tree | str] = []
    for child in tree.children:
        if isinstance(child, str):
            children.append(child)
        else:
            whole = unbinarise(child)
            children.extend(whole.children if MARKER + "<" in whole.label else [whole])
    return Tree(tree.label, tuple(children))


def collapse_unary(tree: Tree) -> Tree:
    """A chain of only children becomes one node with the joint label `A+B`; the node above a word joins it too.

    A + that is part of a label is written \\+.
    """
    labels = [tree.label]
    while len(tree.children) == 1 and isinstance(tree.children[0], Tree):
        tree = tree.children[0]
        labels.append(tree.label)
    children = tuple(each if isinstance(each, str) else collapse_unary(each) for each in tree.children)
    return Tree(JOINT.join(label.replace(JOINT, "\\" + JOINT) for label in labels), children)


def restore_unary(tree: Tree) -> Tree:
    """Joint labels `A+B` become chains again."""
    children = tuple(each if isinstance(each, str) else restore_unary(each) for each in tree.children)
    *above, label = (each.replace("\\" + JOINT, JOINT) for each in _JOINTS.split(tree.label))
    found = Tree(label, children)
    for each in reversed(above):
        found = Tree(each, (found,))
    return found


def lifted(tree: Tree) -> Tree:
    """A word beside other children gets a node `<word>` of its own."""
    alone = len(tree.children) == 1
    children = (
        (each if alone else Tree(f"<{each}>", (each,))) if isinstance(each, str) else lifted(each)
        for each in tree.children
    )
    return Tree(tree.label, tuple(children))


def without_lifted(tree: Tree) -> Tree:
    """Nodes `<word>` give way to the word."""
    children: list[Tree | str] = []
    for child in tree.children:
        if not isinstance(child, str) and child.label == f"<{child.children[0]}>":
            children.extend(child.children)
        else:
            children.append(child if isinstance(child, str) else without_lifted(child))
    return Tree(tree.label, tuple(children))
