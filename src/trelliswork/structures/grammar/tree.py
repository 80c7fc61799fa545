"""Labelled ordered trees: read and written as brackets, binarised and back, unary chains collapsed and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from trelliswork.draw import tree as draw_tree
from trelliswork.draw.notebook import Piece, Rich
from trelliswork.errors import ScoreError

TOKENS = re.compile(r"[()]|[^\s()]+")
JOINT = "+"  # between the labels of a collapsed chain
_JOINTS = re.compile(r"(?<!\\)\+")
MARKER = "|"  # before what remains of a node that was binarised
Direction = Literal["left", "right"]
Span = tuple[int, int, str]
Result = TypeVar("Result")


@dataclass(init=False, frozen=True, eq=False, repr=False)
class Tree(Rich):
    """A label and its children, which are trees or, at the leaves, words. Any depth: nothing here is recursive.

    >>> tree = Tree.parse("(S (NP we) (VP (V saw) (NP it)))")
    >>> tree.words, str(tree.children[1])
    (['we', 'saw', 'it'], '(VP (V saw) (NP it))')
    """

    label: str
    children: tuple[Tree | str, ...]

    def __init__(self, label: str, children: tuple[Tree | str, ...]) -> None:
        own = self.__dict__  # twice as fast as what a frozen dataclass does
        own["label"], own["children"] = label, children

    @staticmethod
    def parse(text: str) -> Tree:
        """Return one tree in brackets."""
        trees = list(parse_all(text))
        if len(trees) != 1:
            raise ScoreError(
                f"expected one tree in brackets; got {len(trees)} in {text[:60]!r}; use parse_all for many"
            )
        return trees[0]

    @property
    def words(self) -> list[str]:
        """The leaves from left to right."""
        return [each for each in self._walk() if isinstance(each, str)]

    @property
    def subtrees(self) -> Iterator[Tree]:
        """This tree and all below it, parents before children and left before right."""
        return (each for each in self._walk() if isinstance(each, Tree))

    def _walk(self) -> Iterator[Tree | str]:
        """Yield nodes and words, parents before children and left before right."""
        waiting: list[Tree | str] = [self]
        while waiting:
            each = waiting.pop()
            yield each
            if isinstance(each, Tree):
                waiting.extend(reversed(each.children))

    def spans(self, start: int = 0) -> list[Span]:
        """Return (start, end, label) of every node, end exclusive, parents before children."""
        spans: list[Span] = []
        open_nodes: list[int] = []  # places in `spans` of the nodes whose end has not been reached
        waiting: list[Tree | str | None] = [self]  # None closes a node
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                start += 1
            elif each is None:
                at = open_nodes.pop()
                spans[at] = (spans[at][0], start, spans[at][2])
            else:
                open_nodes.append(len(spans))
                spans.append((start, start, each.label))
                waiting.append(None)
                waiting.extend(reversed(each.children))
        return spans

    @staticmethod
    def from_spans(spans: Iterable[Span], words: Iterable[str]) -> Tree:
        """Return the way back from `spans`: nodes with parents before children, and the words below them.

        >>> str(Tree.from_spans([(0, 2, "S"), (0, 1, "NP")], ["we", "sleep"]))
        '(S (NP we) sleep)'
        """
        leaves, at = list(words), 0
        open_nodes: list[tuple[Span, list[Tree | str]]] = [((0, len(leaves), ""), [])]

        def fill(place: int) -> None:
            nonlocal at
            open_nodes[-1][1].extend(leaves[at:place])
            at = place

        def close() -> None:
            (_, end, label), children = open_nodes[-1]
            fill(end)
            open_nodes.pop()
            open_nodes[-1][1].append(Tree(label, tuple(children)))

        for start, end, label in spans:
            while len(open_nodes) > 1 and end > open_nodes[-1][0][1]:
                close()
            fill(start)
            open_nodes.append(((start, end, label), []))
        while len(open_nodes) > 1:
            close()
        top = open_nodes[0][1]
        if len(top) != 1 or not isinstance(top[0], Tree) or at != len(leaves):
            raise ScoreError("expected spans of one tree, the outermost over all words; add a span over all of them")
        return top[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return tuple(each if isinstance(each, str) else (each.label, len(each.children)) for each in self._walk())

    def __str__(self) -> str:
        return folded(self, lambda node, children: f"({node.label} {' '.join(children)})", lambda word: word)

    def __repr__(self) -> str:
        return f"Tree.parse({str(self)!r})"

    def _shown(self) -> Sequence[Piece]:
        return [draw_tree(self)]


def folded(tree: Tree, join: Callable[[Tree, list[Result]], Result], leaf: Callable[[str], Result]) -> Result:
    """Fold from the words up: `leaf` of each word, `join` of each node and of what was made of its children.

    Args:
        tree: the tree.
        join: a function from a node, and the results of its children, to its result.
        leaf: a function from a word to its result.

    Returns:
        The result of the root; trees of any depth are no problem.
    """
    made: list[Result] = []
    for each in reversed(list(tree._walk())):  # children before parents, the last child first
        if isinstance(each, str):
            made.append(leaf(each))
        else:
            n = len(each.children)
            children = made[len(made) - n :][::-1]
            del made[len(made) - n :]
            made.append(join(each, children))
    return made[0]


def rebuilt(tree: Tree, join: Callable[[Tree, list[Tree | str]], Tree]) -> Tree:
    """Rebuild from the words up: each node as `join` makes it, given its children as they were made."""
    root = folded(tree, join, lambda word: word)
    assert isinstance(root, Tree)
    return root


def parse_all(text: str) -> Iterator[Tree]:
    """Yield every tree in a text of brackets; an unlabelled outer bracket around a tree is dropped."""
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
    """Leave no node with more than two children: those left over hang from a new node `label|<a-b>`.

    Args:
        tree: the tree, which stays as it is.
        direction: "right" splits the first child off, so that the rest lies to the right; "left" the last.
        horizontal: the next children that remain and that the new label names; None for all. Few make a small grammar
            that generalises.

    Returns:
        A binary tree; `unbinarise` undoes it.
    """

    def cut(node: Tree, children: list[Tree | str]) -> Tree:
        return _split(node.label, children, direction, horizontal)

    return rebuilt(tree, cut)


def _split(label: str, children: list[Tree | str], direction: Direction, horizontal: int | None) -> Tree:
    """Return a node over two children, those left over below new nodes: the innermost is made first."""
    if len(children) <= 2:
        return Tree(label, tuple(children))
    names = [each if isinstance(each, str) else each.label for each in children]
    n, from_left = len(children), direction == "right"
    below = children[-1] if from_left else children[0]
    for size in range(2, n):  # of the rest that a new node is above
        rest = names[n - size :] if from_left else names[:size]
        n_named = size if horizontal is None else min(horizontal, size)
        named = "-".join(rest[:n_named] if from_left else rest[size - n_named :])
        pair = (children[n - size], below) if from_left else (below, children[size - 1])
        below = Tree(f"{label}{MARKER}<{named}>", pair)
    return Tree(label, (children[0], below) if from_left else (below, children[-1]))


def unbinarise(tree: Tree) -> Tree:
    """Return nodes that `binarise` made give way to their children."""

    def whole(node: Tree, children: list[Tree | str]) -> Tree:
        unfolded: list[Tree | str] = []
        for child in children:
            marked = isinstance(child, Tree) and MARKER + "<" in child.label
            unfolded.extend(child.children if marked and isinstance(child, Tree) else [child])
        return Tree(node.label, tuple(unfolded))

    return rebuilt(tree, whole)


def collapse_unary(tree: Tree) -> Tree:
    """Turn a chain of only children into one node with the joint label `A+B`; the node above a word joins it too.

    A + that is part of a label is written \\+.
    """

    def joined(node: Tree, children: list[Tree | str]) -> Tree:
        label = node.label.replace(JOINT, "\\" + JOINT)
        if len(children) == 1 and isinstance(children[0], Tree):
            return Tree(label + JOINT + children[0].label, children[0].children)
        return Tree(label, tuple(children))

    return rebuilt(tree, joined)


def restore_unary(tree: Tree) -> Tree:
    """Turn joint labels `A+B` into chains again."""

    def chain(node: Tree, children: list[Tree | str]) -> Tree:
        *above, label = chain_of(node.label)
        top = Tree(label, tuple(children))
        for each in reversed(above):
            top = Tree(each, (top,))
        return top

    return rebuilt(tree, chain)


def chain_of(label: str) -> list[str]:
    """Return the labels of a joint label, from the top down.

    >>> chain_of("S+VP")
    ['S', 'VP']
    """
    return [each.replace("\\" + JOINT, JOINT) for each in _JOINTS.split(label)]


def joint_label(labels: Iterable[str]) -> str:
    """Return the inverse of `chain_of`."""
    return JOINT.join(label.replace(JOINT, "\\" + JOINT) for label in labels)


def lifted(tree: Tree) -> Tree:
    """Give a word next to other children a node `<word>` of its own."""

    def above_words(node: Tree, children: list[Tree | str]) -> Tree:
        if len(children) == 1:
            return Tree(node.label, tuple(children))
        return Tree(
            node.label, tuple(Tree(f"<{each}>", (each,)) if isinstance(each, str) else each for each in children)
        )

    return rebuilt(tree, above_words)


def without_lifted(tree: Tree) -> Tree:
    """Replace nodes `<word>` by the word."""

    def lowered(node: Tree, children: list[Tree | str]) -> Tree:
        return Tree(node.label, tuple(_word_of(each) for each in children))

    return rebuilt(tree, lowered)


def _word_of(child: Tree | str) -> Tree | str:
    is_lifted = isinstance(child, Tree) and len(child.children) == 1 and child.label == f"<{child.children[0]}>"
    return child.children[0] if is_lifted and isinstance(child, Tree) else child
