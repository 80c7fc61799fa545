"""Trees in brackets, as the Penn Treebank has them (.mrg, .ptb): read one by one, and written one a line.

>>> sentence = sentence_of(Tree.parse("( (S (NP-SBJ (PRP We)) (VP (VBP sleep) (NP (-NONE- *))) (. .)))"))
>>> sentence.words, sentence.tags
(('We', 'sleep', '.'), ('PRP', 'VBP', '.'))
>>> sentence.brackets
((0, 3, 'S'), (0, 1, 'NP'), (1, 2, 'VP'))

Marcus, Santorini and Marcinkiewicz (1993), Building a large annotated corpus of English: the Penn Treebank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trelliswork.data.choices import Detail
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.structures.grammar.tree import TOKENS, Tree

EMPTY_TAG = "-NONE-"
ROOTS = ("TOP", "ROOT", "S1", "VROOT")  # labels that say no more than that a tree begins
_SUFFIXES = tuple(f".{name}{packed}" for name in ("mrg", "ptb", "prd", "brackets", "trees") for packed in ("", ".gz"))
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_TO_ESCAPE = {plain: escaped for escaped, plain in _ESCAPED.items()}
_FUNCTION = re.compile(r"^([^-=]+)[-=].*")  # of NP-SBJ-1 or NP=2, but not of -LRB-
_BLANK = re.compile(r"\s+")


def is_brackets(path: str | Path) -> bool:
    """Return whether a name ends as those of files of trees in brackets do."""
    return str(path).lower().endswith(_SUFFIXES)


def read_brackets(
    path: str | Path, *, detail: Detail = "labels", keep: Callable[[bytes], None] | None = None
) -> Iterator[Sentence]:
    """Yield the trees of a file as sentences with parts of speech as tags, one by one; a tree may run over several
    lines.

    `detail` says what is kept: "labels" alone; also "functions", the function tags and co-indices of labels (NP-SBJ-1);
    also "traces", which are words with the tag -NONE- then. Without these, constituents above nothing else are left
    out. An unlabelled bracket around a tree is dropped; around several trees it becomes TOP.

    Args:
        path: A file, or "-" for standard input.
        detail: "labels", "functions" or "traces": how much of each tree is kept.
        keep: Called with all bytes that are read.

    Yields:
        A sentence for each tree.

    >>> [sentence.brackets for sentence in read_brackets("wsj_2300.mrg")]  # doctest: +SKIP
    """
    name, n_trees = name_of(path), 0
    try:
        for tree, line in _trees(numbered_lines(path, keep), name):
            yield _sentence(tree, name, line, detail)
            n_trees += 1
    except DataError as error:
        raise DataError(name, f"tree {n_trees + 1}: {error.problem}", line=error.line) from error
    if n_trees == 0:
        raise DataError(name, "expected trees in brackets, got none; the file is empty")


@dataclass
class _Open:
    """A bracket that is not closed."""

    line: int
    label: str = ""
    children: list[Tree | str] = field(default_factory=list)


def _trees(lines: Iterator[tuple[int, str]], file: str) -> Iterator[tuple[Tree, int]]:
    """Yield each tree with the line on which it begins."""
    open_nodes: list[_Open] = []
    for number, line in lines:
        fresh = False  # a label may follow the bracket just read
        for token in TOKENS.findall(line):
            if token == "(":
                open_nodes.append(_Open(number))
                fresh = True
                continue
            if not open_nodes:
                raise DataError(file, _stray(token), line=number)
            if token == ")":
                node = open_nodes.pop()
                tree = _closed(node, file)
                if open_nodes:
                    open_nodes[-1].children.append(tree)
                else:
                    yield tree, node.line
            elif fresh:
                open_nodes[-1].label = token
            else:
                open_nodes[-1].children.append(token)
            fresh = False
    if open_nodes:
        problem = f"expected every bracket to close, got {len(open_nodes)} open at the end of the file"
        raise DataError(file, f"{problem}; close the tree that begins here", line=open_nodes[0].line)


def _stray(token: str) -> str:
    if token == ")":
        return "expected '(' at the beginning of a tree, got ')'; take one closing bracket out, or add an opening one"
    return f"expected '(' at the beginning of a tree, got {token[:40]!r}; put the word into a tree, or take it out"


def _closed(node: _Open, file: str) -> Tree:
    children = node.children
    if not children:
        written = f"({node.label})" if node.label else "()"
        raise DataError(
            file, f"expected (label child ...), got an empty tree {written}; fill it, or take it out", line=node.line
        )
    words = [each for each in children if isinstance(each, str)]
    if words and (len(children) > 1 or not node.label):
        problem = f"expected a tag in brackets around each word, as in (NN {words[0][:40]})"
        shown = words[0] if not node.label else f"{node.label} {words[0]}"
        raise DataError(file, f"{problem}, got the bare word {shown[:60]!r}; add its tag", line=node.line)
    if not node.label and len(children) == 1 and isinstance(children[0], Tree):
        return children[0]
    return Tree(node.label or ROOTS[0], tuple(children))


def sentence_of(tree: Tree, *, detail: Detail = "labels") -> Sentence:
    """Return a tree, whose words have a tag each, as a sentence; what is dropped is said in `read_brackets`."""
    return _sentence(tree, "tree", 1, detail)


def _sentence(tree: Tree, file: str, line: int, detail: Detail) -> Sentence:
    words: list[str] = []
    tags: list[str] = []
    brackets: list[tuple[int, int, str]] = []
    for start, end, label, word in _kept(tree, () if detail == "traces" else (EMPTY_TAG,)):
        name = without_function(label) if detail == "labels" else label
        if word is None:
            brackets.append((start, end, name))
        else:
            tags.append(name)
            words.append(unescape(word))
    if not words:
        shown = str(tree)
        problem = f"expected a tree with words, got {shown[:60]!r}"
        raise DataError(file, f"{problem}, which has none but traces; take it out", line=line)
    return Sentence(
        tuple(words), tuple(tags), line=line, file=file, lines=(line,) * len(words), brackets=tuple(brackets)
    )


def _kept(tree: Tree, empty: Sequence[str]) -> list[tuple[int, int, str, str | None]]:
    """Return (start, end, label, the word of a tag) of each node that is above a word whose tag is not `empty`."""
    nodes: list[tuple[int, int, str, str | None]] = []
    n = 0  # words so far, from the last one back
    ends: list[int] = []  # of the words below nodes that are done, as numbers of words behind them
    for node in reversed(list(tree.subtrees)):
        only = node.children[0]
        if isinstance(only, str):
            behind, n = n, n + (node.label not in empty)
            ends.append(behind)
            if n > behind:
                nodes.append((n, behind, node.label, only))
        else:
            behind = ends[-len(node.children)]
            del ends[len(ends) - len(node.children) :]
            ends.append(behind)
            if n > behind:
                nodes.append((n, behind, node.label, None))
    return [(n - start, n - end, label, word) for start, end, label, word in reversed(nodes)]


def without_function(label: str) -> str:
    """Return a label without function tags and co-indices.

    >>> without_function("NP-SBJ-1"), without_function("NP=2"), without_function("-LRB-"), without_function("PRP$")
    ('NP', 'NP', '-LRB-', 'PRP$')
    """
    return _FUNCTION.sub(r"\1", label) if "-" in label or "=" in label else label


def unescape(word: str) -> str:
    r"""Return a word as it is in the text: -LRB- is a bracket, \/ a slash.

    >>> unescape("-LRB-"), unescape(r"1\/2")
    ('(', '1/2')
    """
    return _ESCAPED.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def escape(word: str) -> str:
    """Return a word as it is written between brackets; blanks become _."""
    if word.isalnum():
        return word
    written = _TO_ESCAPE.get(word)
    if written is None:
        written = _BLANK.sub("_", word.replace("(", "-LRB-").replace(")", "-RRB-"))
    return written


def tree_of(words: Sequence[str], tags: Sequence[str], brackets: Sequence[tuple[int, int, str]]) -> Tree:
    """Return the tree of a sentence, a tag above each word; without a bracket over all words it gets the root TOP.

    Args:
        words: The words of a sentence.
        tags: The tag of each word.
        brackets: (start, end, label) of each constituent, outermost first.

    Returns:
        The tree.
    """
    whole = bool(brackets) and brackets[0][:2] == (0, len(words))
    nodes = list(brackets) if whole or len(words) == 1 else [(0, len(words), ROOTS[0]), *brackets]
    tagged = [(i, i + 1, tag) for i, tag in enumerate(tags)]
    merged = sorted([*nodes, *tagged], key=lambda node: (node[0], -node[1]))  # stable: tags come after brackets
    return Tree.from_spans(merged, words)


def bracket_text(tree: Tree) -> str:
    """Return one tree as a line of a treebank, in an outer bracket unless its root is one of `ROOTS`.

    >>> bracket_text(Tree.parse("(S (NP (PRP We)) (VP (VBP sleep)))"))
    '( (S (NP (PRP We)) (VP (VBP sleep))))'
    """
    parts: list[str] = []
    waiting: list[Tree | str | None] = [tree]  # None closes a bracket
    while waiting:
        each = waiting.pop()
        if each is None:
            parts.append(")")
        elif isinstance(each, str):
            parts.append(" " + escape(each))
        else:
            parts.append(f" ({escape(each.label)}")
            waiting.append(None)
            waiting.extend(reversed(each.children))
    text = "".join(parts)[1:]
    return text if tree.label in ROOTS else f"( {text})"
