"""Words and their spellings, as a tree: which labels may come next, and which word has been spelt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trelliswork.errors import ScoreError


@dataclass
class Node:
    """The labels spelt since a word began; `word` if they are one."""

    children: dict[int, Node] = field(default_factory=dict)
    word: str | None = None


class Lexicon:
    """Label strings are words, with `separator` between them; without a separator a string is one word.

    >>> lexicon = Lexicon({"at": [1, 2], "a": [1]}, separator=3)
    >>> lexicon.words_of([1, 3, 1, 2])
    ['a', 'at']
    """

    def __init__(self, spellings: Mapping[str, Sequence[int]], separator: int | None = None):
        if not spellings:
            raise ScoreError("a lexicon needs at least one word; got none; give {word: its labels}")
        self.root, self.separator = Node(), separator
        self.labels = {int(label) for labels in spellings.values() for label in labels}
        if separator is not None:
            self.labels.add(separator)
        for word, labels in spellings.items():
            if not labels or separator in labels:
                raise ScoreError(
                    f"a word needs labels, and none may be the separator; got {list(labels)} for {word!r}; "
                    "spell it with other labels or choose another separator"
                )
            node = self.root
            for label in labels:
                node = node.children.setdefault(int(label), Node())
            if node.word is not None:
                raise ScoreError(
                    f"words must differ in their labels; got {node.word!r} and {word!r} with {list(labels)}"
                )
            node.word = word

    def labels_after(self, node: Node) -> Iterator[int]:
        """Yield the labels that may come next."""
        yield from node.children
        if node.word is not None and self.separator is not None:
            yield self.separator

    def words_of(self, labels: Sequence[int]) -> list[str | None]:
        """Return the words of a label string; None for one that is not in the lexicon."""
        words, node = [], self.root if labels else None
        for label in labels:
            if label == self.separator:
                words.append(None if node is None else node.word)
                node = self.root
            else:
                node = None if node is None else node.children.get(label)
        return [*words, None if node is None else node.word] if labels else []
