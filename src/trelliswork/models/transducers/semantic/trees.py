"""Targets as trees: the form that they are read in, and what of the training data bounds those that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trelliswork.data import Sentence
from trelliswork.errors import DataError, TermError, TrellisworkError
from trelliswork.models.transducers.semantic.constraints import arities_in, names_alone
from trelliswork.models.transducers.semantic.forms import CLOSE, FORMS, OPEN, Form, FormName, Symbols
from trelliswork.models.transducers.semantic.names import Lexicon, Opened
from trelliswork.models.transducers.semantic.sql import SqlForm

LARGEST = 10_000  # size of a tree that a model may write
DEEPER, LONGER = 2, 1.5  # than the deepest and the longest tree of the training data: what may be generated


def form_named(name: FormName) -> Form:
    """The form of a name that is settled."""
    return SqlForm() if name == "sql" else FORMS[name]


def tree_of(form: Form, pair: Sentence) -> Symbols:
    """The target of a pair as it is learned."""
    if pair.target is None:
        raise TrellisworkError("expected pairs with targets to learn from, got a source alone; give its target")
    try:
        return form.read(pair.target)
    except TermError as error:
        raise DataError(pair.file or "pairs", f"{error}; correct the target", line=pair.line) from error


def opened_tree(form: Form, question: Opened, tree: Symbols) -> Symbols:
    """A tree with the open names of its question; the order of conjuncts is that of open names, too."""
    return form.read(form.written(question.tree(tree))) if question.names else tree


def opened_pairs(
    pairs: Sequence[Sentence], form: Form, open_names: bool
) -> tuple[Lexicon, list[Symbols], list[Symbols]]:
    """A lexicon of the names in some pairs, and the pairs with open names; without names, as they are."""
    trees, lexicon = [tree_of(form, pair) for pair in pairs], Lexicon({})
    if open_names and form.name == "lambda":
        lexicon = Lexicon.learned([(pair.words, tree) for pair, tree in zip(pairs, trees, strict=True)])
    opened = [lexicon.opened(pair.words) for pair in pairs]
    trees = [opened_tree(form, each, tree) for each, tree in zip(opened, trees, strict=True)]
    return lexicon, [each.words for each in opened], trees


def limits_of(trees: Sequence[Symbols]) -> dict[str, Any]:
    """The arities of heads, the names that may stand alone, and the sizes that trees may have."""
    return {
        "arities": arities_in(trees),
        "alone": sorted(names_alone(trees)),
        "deepest": max(map(_depth, trees)) + 1 + DEEPER,
        "longest": int(LONGER * max(map(len, trees))) + 1,
    }


def check_limits(limits: Mapping[str, Any]) -> None:
    """Refuse limits of a folder that `limits_of` did not make."""
    texts = [*limits["alone"], *limits["lexicon"], *limits["lexicon"].values(), *limits["arities"]]
    texts += [name for table, columns in limits.get("schema", {}).items() for name in (table, *columns)]
    if not all(isinstance(each, str) for each in texts):
        raise ValueError("expected texts as names")
    if not all(_is_size(limits[name]) for name in ("deepest", "longest", "known")):
        raise ValueError(f"expected sizes of at most {LARGEST:,}")
    for least, most in limits["arities"].values():
        if not (_is_size(least) and (most is None or _is_size(most))):
            raise ValueError("expected numbers of arguments as arities")


def _is_size(given: Any) -> bool:
    return type(given) is int and 0 <= given <= LARGEST


def _depth(tree: Symbols) -> int:
    """The deepest level of brackets."""
    depth = deepest = 0
    for symbol in tree:
        depth += (symbol == OPEN) - (symbol == CLOSE)
        deepest = max(deepest, depth)
    return deepest
