"""The derivation tree of a sentence, from which every layer of annotation is read.

A node has a label (`NP`, `VBD`, ...) and a kind (`who`, `PER.full`, ...: the grammar's finer distinctions). A leaf
carries a word; an inner node carries children and says which of them is its head, so that constituents and head-
dependent arcs can both be read from the same tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

CHUNK_LABELS = frozenset({"NP", "VP", "PP", "ADJP", "ADVP", "SBAR"})
NO_CHUNK_TAGS = frozenset({".", ",", "CC"})
ENTITY_LABEL = "NML"


@dataclass(frozen=True, slots=True)
class Derivation:
    """One node of a derivation.

    >>> leaves = Derivation("DT", "the", word="the"), Derivation("NN", "thing", word="plan")
    >>> tree = Derivation("NP", "thing", leaves, head=1)
    >>> tree.words(), str(tree)
    (['the', 'plan'], '(NP (DT the) (NN plan))')
    """

    label: str
    kind: str = ""
    children: tuple[Derivation, ...] = ()
    head: int = 0
    word: str = ""

    def leaves(self) -> Iterator[Derivation]:
        """The leaves from left to right."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def words(self) -> list[str]:
        """The words from left to right."""
        return [leaf.word for leaf in self.leaves()]

    def head_leaf(self) -> Derivation:
        """The leaf that the heads lead to."""
        return self.children[self.head].head_leaf() if self.children else self

    def with_words(self, words: Iterator[str]) -> Derivation:
        """The same tree over other words, taken in order."""
        if not self.children:
            return replace(self, word=next(words))
        return replace(self, children=tuple(child.with_words(words) for child in self.children))

    def __str__(self) -> str:
        inside = self.word if not self.children else " ".join(str(child) for child in self.children)
        return f"({self.label} {inside})"


def placed(node: Derivation, start: int = 0) -> Iterator[tuple[Derivation, int]]:
    """All nodes, a parent before its children, each with its first position."""
    yield node, start
    for child in node.children:
        yield from placed(child, start)
        start += len(child.words())


def entity_spans(tree: Derivation) -> list[tuple[int, int, str]]:
    """The named entities: spans of the `NML` nodes, typed by the first part of their kind."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: Derivation, start: int) -> int:
        end = start if node.children else start + 1
        for child in node.children:
            end = visit(child, end)
        if node.label == ENTITY_LABEL:
            spans.append((start, end, node.kind.partition(".")[0]))
        return end

    visit(tree, 0)
    return sorted(spans)


def chunk_spans(tree: Derivation) -> list[tuple[int, int, str]]:
    """Base phrases: maximal runs of words that have the same phrase right above them.

    Nested verb phrases are one chunk ("will visit"), and the possessive 's opens the chunk of the noun it modifies.
    """
    owners = list(_owners(tree, None, None))
    spans: list[tuple[int, int, str]] = []
    start = 0
    for i in range(1, len(owners) + 1):
        if i < len(owners) and _same_chunk(owners[i - 1], owners[i]):
            continue
        owner = owners[start]
        if owner is not None:
            spans.append((start, i, owner.label))
        start = i
    return spans


def _same_chunk(left: Derivation | None, right: Derivation | None) -> bool:
    if left is None or right is None:
        return False
    return left is right or left.label == right.label == "VP"


def _owners(node: Derivation, above: Derivation | None, higher: Derivation | None) -> Iterator[Derivation | None]:
    """For each leaf, the phrase it belongs to; `above` is the nearest phrase, `higher` the one above that."""
    if not node.children:
        outside = node.label in NO_CHUNK_TAGS
        yield None if outside else higher if node.label == "POS" else above
        return
    if node.label in CHUNK_LABELS:
        above, higher = node, above
    for child in node.children:
        yield from _owners(child, above, higher)
