"""Checks of the arguments of distributions over derivations, each with a sentence that explains the error."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trelliswork.distributions.checks import cast, check_floating, check_tensors, flat_lengths, refuse_not_scores
from trelliswork.errors import ScoreError
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.structures.grammar.grammar import Grammar
from trelliswork.structures.grammar.structure import Productions, RuleTable
from trelliswork.structures.grammar.tree import Tree

Nodes = list[tuple[int, int, int]]


def productions(
    grammar: Grammar,
    table: RuleTable,
    lexical: Tensor,
    rules: Tensor | None,
    root: Tensor | None,
    nodes: Tensor | None,
    lengths: Tensor | None,
) -> Productions:
    """Return the scores in one dtype, shapes checked; what is missing comes from the grammar.

    Args:
        grammar: the grammar, whose own scores are used where none are given.
        table: its rules by number.
        lexical: scores [batch, n, n_lexical] of the symbols that stand above each word.
        rules: scores of the binary rules: [rules], [batch, rules] or by span [batch, n, n, rules]; None for those of
            the grammar.
        root: scores of the root symbols; None for those of the grammar.
        nodes: scores [batch, n, n, symbols] that every node adds; None for 0.
        lengths: the number of words of each row [batch]; None if all rows are full.

    Returns:
        The scores, in the dtype of `lexical`.
    """
    check_tensors(lexical=lexical, rules=rules, root=root, nodes=nodes)
    size, n_rules = len(grammar.symbols), grammar.n_rules
    if lexical.dim() != 3 or 0 in lexical.shape[:2] or lexical.shape[2] != grammar.n_lexical:
        raise ScoreError(
            f"lexical scores must be [batch, n, {grammar.n_lexical}], one for each symbol that stands above words; "
            f"got {tuple(lexical.shape)}"
        )
    batch, n, _ = lexical.shape
    device, dtype = lexical.device, lexical.dtype
    rules = grammar.rule_scores.to(device, dtype) if rules is None else rules
    root = grammar.root_scores.to(device, dtype) if root is None else root
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {
        (n_rules,): (1, 1, 1, n_rules),
        (batch, n_rules): (batch, 1, 1, n_rules),
        (batch, n, n, n_rules): (batch, n, n, n_rules),
    }
    if tuple(rules.shape) not in shapes:
        raise ScoreError(f"rules must have one of the shapes {list(shapes)}; got {tuple(rules.shape)}")
    if tuple(root.shape) not in ((size,), (batch, size)):
        raise ScoreError(f"root must be ({size},) or ({batch}, {size}), one a symbol; got {tuple(root.shape)}")
    if nodes is not None and tuple(nodes.shape) != (batch, n, n, size):
        raise ScoreError(f"nodes must be {(batch, n, n, size)}, [first, last token, symbol]; got {tuple(nodes.shape)}")
    for part in (rules, root, nodes):
        dtype = dtype if part is None else torch.promote_types(dtype, part.dtype)
    check_floating(dtype)
    rows = flat_lengths("lengths", lengths, lexical.shape[:1], n, device, 1)
    precise = torch.float64 if dtype == torch.float64 else torch.float32
    return Productions(
        cast(rules, precise).reshape(shapes[tuple(rules.shape)]), cast(lexical, precise),
        cast(root, precise).reshape(-1, size), None if nodes is None else cast(nodes, precise), rows, table,
    )  # fmt: skip


def check_scores(parts: Productions) -> None:
    """Refuse NaN and +inf, by name and place, where they are read."""
    if parts.lexical.device.type == "cpu":
        flat = [as_array(each).reshape(-1) for each in parts.scores if each is not None]
        if first_not_a_score(tuple(flat))[0] < 0:
            return
    real = torch.arange(parts.n, device=parts.lengths.device) < parts.lengths[:, None]
    spans = real[:, :, None] & real[:, None, :]
    rules_read = spans[..., None] if parts.rules.shape[1] > 1 else torch.ones_like(parts.rules, dtype=torch.bool)
    read = {"rules": rules_read, "lexical": real[..., None], "root": None, "nodes": spans[..., None]}
    for (name, where), part in zip(read.items(), parts.scores, strict=True):
        if part is not None:
            refuse_not_scores(name, part, where)


def to_tree(nodes: Nodes, symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Return nodes (start, end, symbol), parents before children, as a tree above the words.

    Args:
        nodes: (start, end, symbol) of each node.
        symbols: the name of each symbol.
        words: the words of the row.

    Returns:
        The tree, words as its leaves.
    """
    above: list[Tree] = []  # from the last node to the first: both children of a node wait on top, the left above
    for start, end, symbol in reversed(nodes):
        children = (words[start],) if end - start == 1 else (above.pop(), above.pop())
        above.append(Tree(symbols[symbol], children))
    return above[0]


def from_tree(tree: Tree, grammar: Grammar, words: Sequence[str], row: int) -> Nodes:
    """Return a derivation as nodes; it must be binary, in symbols of the grammar, above the words of its row.

    Args:
        tree: a binary tree.
        grammar: the grammar whose symbols it has.
        words: the words of the row.
        row: the number of the row, for the sentence of an error.

    Returns:
        (start, end, symbol) of each node, parents before children.
    """
    if not isinstance(tree, Tree):
        raise ScoreError(f"a value must be one Tree a row; got {type(tree).__name__} at row {row}")
    if tree.words != list(words):
        raise ScoreError(f"the tree at row {row} must stand above {list(words)}; got {tree.words}")
    nodes: Nodes = []
    for start, end, label in tree.spans():
        if label not in grammar.symbol_index:
            raise ScoreError(
                f"{label!r} at row {row} is not a symbol of the grammar; "
                "use grammar.to_derivation to bring a tree into its form"
            )
        nodes.append((start, end, grammar.symbol_index[label]))
    for node in tree.subtrees:
        leaf = len(node.children) == 1 and isinstance(node.children[0], str)
        if not leaf and (len(node.children) != 2 or any(isinstance(each, str) for each in node.children)):
            raise ScoreError(
                f"each node must stand above one word or two nodes; got {node} at row {row}; "
                "use grammar.to_derivation to bring a tree into this form"
            )
    return nodes


def check_sentences(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    if isinstance(sentences, str) or any(isinstance(each, str) for each in sentences):
        raise ScoreError("sentences must be lists of words, one list a row; got a string; split it: [text.split()]")
    rows = [list(each) for each in sentences]
    if not rows or not all(rows):
        raise ScoreError("sentences must be at least one, with at least one word each; got an empty one")
    return rows
