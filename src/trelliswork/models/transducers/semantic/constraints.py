"""Constraints on trees in brackets: brackets close, heads have their number of arguments, variables are bound.

The constraint is a pushdown machine: its state has a frame for each open bracket. What it lets through always reads as
the form that it was made for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from trelliswork.data import Sentence, Vocabulary
from trelliswork.errors import DataError, TermError, TrellisworkError
from trelliswork.models.storage import StoredConfig
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN
from trelliswork.models.transducers.semantic.forms import BESIDE, CLOSE, FORMS, OPEN, Form, FormName, Symbols
from trelliswork.models.transducers.semantic.names import NameLexicon, OpenedQuestion
from trelliswork.models.transducers.semantic.sql import SqlForm
from trelliswork.nn.decoders.constraints import PrefixConstraint
from trelliswork.terms.brackets import BINDERS, LAMBDA
from trelliswork.terms.clauses import UNORDERED
from trelliswork.terms.nesting import NEW, is_mark

Arity = tuple[int, int | None]  # fewest and most arguments; None is any number
Arities = Mapping[str, Arity]
VARIABLE = "$"
TYPE = re.compile(r"[eti]|<.+>")
SPECIAL = (UNKNOWN, BEGIN, END)
_APART = (None, NEW, *UNORDERED)  # heads, or none at the root, of parts that do not see each other's variables
MANY = 4  # arguments of a bracket: more are not counted, unless a head has as many


def arities_in(trees: Iterable[Sequence[str]]) -> dict[str, Arity]:
    """Count the arguments of each head, the name before a bracket: one number if always the same, else the fewest.

    >>> arities_in(["and ( f ( x ) f ( y ) )".split(), "and ( a b c )".split()])
    {'f': (1, 1), 'and': (2, None)}
    """
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for tree in trees:
        path: list[tuple[str, int]] = [("", 0)]
        before = ""
        for symbol in tree:
            if symbol == OPEN:
                path.append((before, 0))
            elif symbol != CLOSE:
                path[-1] = (path[-1][0], path[-1][1] + 1)
            elif len(path) > 1:
                head, n = path.pop()
                seen[head].add(n)
            before = symbol
    return {head: (min(each), max(each) if len(each) == 1 else None) for head, each in seen.items()}


def names_alone(trees: Iterable[Sequence[str]]) -> set[str]:
    """Return the names that stand somewhere without a bracket behind them."""
    return {
        symbol
        for tree in trees
        for symbol, after in zip(tree, (*tree[1:], END), strict=True)
        if after != OPEN and symbol not in (OPEN, CLOSE)
    }


class BracketFrame(NamedTuple):
    """An open bracket, or the root: its head, how many arguments it has, and the variables that it binds.

    `in_scope` is how many variables without names the next argument may refer to, `owed` how many symbols the brackets
    around it need at least until they are closed.
    """

    head: str | None
    n: int
    bound: tuple[str, ...] = ()
    in_scope: int = 0
    owed: int = 0


class BracketState(NamedTuple):
    """The frames from the root to the innermost, how many variables have been bound, and the name just written."""

    frames: tuple[BracketFrame, ...]
    n_bound: int = 0
    last: str | None = None


class BracketConstraint(PrefixConstraint):
    """Trees f ( a g ( b ) ) at most `deepest` - 1 levels deep, whose heads have the arities that are known.

    A head that is not among the names `alone` needs its bracket. Terms have one root; `lambda` and the binders
    introduce $0, $1, ... in this order, and no variable is free. Prolog refers to variables that are new before, as
    `terms/nesting.py` counts them. Plain brackets need nothing but to close and to hold something.

    Args:
        symbols: Symbols of targets.
        form: Form of targets.
        arities: Fewest and most arguments of each head.
        alone: Names that may stand without a bracket.
        deepest: Largest number of open brackets, the root included.
    """

    def __init__(
        self, symbols: Vocabulary, form: FormName, arities: Arities, alone: Iterable[str], deepest: int
    ) -> None:
        super().__init__(len(symbols), symbols.index(END))
        self.form, self.arities, self.deepest = form, arities, deepest
        known = {name: i for i, name in enumerate(symbols) if name not in SPECIAL}
        self.names = {name: i for name, i in known.items() if name not in (OPEN, CLOSE)}
        self.types = {name: i for name, i in known.items() if TYPE.fullmatch(name)}
        self.brackets = {name: symbols.index(name) for name in (OPEN, CLOSE) if name in symbols}
        self.references = {name: (name[0], int(name[1:])) for name in self.names if is_mark(name) and name != NEW}
        self.most = {
            kind: max((n + 1 for mark, n in self.references.values() if mark == kind), default=0) for kind in "^="
        }
        self.needing = frozenset() if form == "brackets" else frozenset(arities) - frozenset(alone)
        self.many = 2 + max((most for _, most in arities.values() if most is not None), default=MANY)

    def start(self, row: int) -> Hashable:
        return BracketState((BracketFrame(None, 0),))

    def distance(self, state: Hashable) -> int:
        assert isinstance(state, BracketState)
        own = 2 + self._limits(state.last)[0] if state.last in self.needing else 0
        return self._owed(state) + own + (state.frames[0].n == 0) + 1

    def _owed(self, state: BracketState) -> int:
        """Return the number of symbols that close all open brackets."""
        frame = state.frames[-1]
        return frame.owed + (self._missing(frame) + 1 if len(state.frames) > 1 else 0)

    def _missing(self, frame: BracketFrame) -> int:
        """Return the number of arguments that a bracket lacks at least."""
        return max(0, self._limits(frame.head)[0] - frame.n)

    def _limits(self, head: str | None) -> Arity:
        if self.form == "brackets":
            return 1, None
        if self.form == "lambda" and head == LAMBDA:
            return 3, 3
        least, most = self.arities.get(head or "", (0, None))
        if self.form == "prolog":
            least = max(least, 2 if head == BESIDE else 1)
        return (max(least, 2), most) if self._binds(head) else (least, most)

    def _binds(self, head: str | None) -> bool:
        """Return whether the first argument of a head is a variable that it binds."""
        return self.form == "lambda" and (head == LAMBDA or head in BINDERS)

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, BracketState)
        frame, following = state.frames[-1], self._opened(state)
        if state.last in self.needing:
            return following
        if len(state.frames) > 1 and not self._missing(frame) and CLOSE in self.brackets:
            following[self.brackets[CLOSE]] = BracketState(state.frames[:-1], state.n_bound)
        if self._is_full(state):
            return following
        if self._binds(frame.head) and frame.n == 0:
            return following | self._binding(state)
        if frame.head == LAMBDA and self.form == "lambda" and frame.n == 1:
            return following | dict.fromkeys(self.types.values(), self._more(state))
        return following | self._named(state)

    def _opened(self, state: BracketState) -> dict[int, Hashable]:
        """Return the state behind a bracket, after a name that can have one; plain brackets may stand anywhere."""
        may = self.form == "brackets" or state.last in self.arities
        if not may or OPEN not in self.brackets or len(state.frames) >= self.deepest:
            return {}
        around = self._more(state) if self.form == "brackets" else state
        frame = around.frames[-1]
        in_scope = min(frame.in_scope + (state.last == NEW and frame.head in _APART), self.most["^"])
        inner = BracketFrame(state.last, 0, in_scope=in_scope, owed=self._owed(around))
        return {self.brackets[OPEN]: BracketState((*around.frames, inner), state.n_bound)}

    def _is_full(self, state: BracketState) -> bool:
        frame = state.frames[-1]
        if len(state.frames) == 1:
            return frame.n > 0 and self.form != "brackets"
        most = self._limits(frame.head)[1]
        return most is not None and frame.n >= most

    def _binding(self, state: BracketState) -> dict[int, Hashable]:
        """Return the state behind the next variable, which stays bound until the bracket closes."""
        name = f"{VARIABLE}{state.n_bound}"
        if name not in self.names:
            return {}
        frame = state.frames[-1]
        bound = frame._replace(n=frame.n + 1, bound=(*frame.bound, name))
        return {self.names[name]: BracketState((*state.frames[:-1], bound), state.n_bound + 1)}

    def _named(self, state: BracketState) -> dict[int, Hashable]:
        """Return the states behind one more argument, or behind the root."""
        refers = self._reference(state)
        deep = len(state.frames) >= self.deepest
        more = self._more(state)
        following: dict[int, Hashable] = {
            i: more._replace(last=name) if name in self.arities else more
            for name, i in self.names.items()
            if not (deep and name in self.needing) and refers(name)
        }
        if self.form == "prolog" and NEW in self.names:
            following[self.names[NEW]] = self._introduced(more)
        return following

    def _reference(self, state: BracketState) -> Callable[[str], bool]:
        """Return a test whether a name stands for a variable that is known here, or for none."""
        if self.form == "lambda":
            bound = {name for each in state.frames for name in each.bound}
            return lambda name: not name.startswith(VARIABLE) or name in bound
        if self.form == "prolog":
            known = {"^": state.frames[-1].in_scope, "=": state.n_bound}
            return lambda name: (
                name not in self.references or self.references[name][1] < known[self.references[name][0]]
            )
        return lambda name: True

    def _introduced(self, more: BracketState) -> BracketState:
        """Return the state in which the argument that was added is a new variable, known to those behind it."""
        frame = more.frames[-1]
        in_scope = min(frame.in_scope + (frame.head not in _APART), self.most["^"])
        n_bound = min(more.n_bound + 1, self.most["="])
        return BracketState(
            (*more.frames[:-1], frame._replace(in_scope=in_scope)), n_bound, NEW if NEW in self.arities else None
        )

    def _more(self, state: BracketState) -> BracketState:
        """Return the state with one more argument in the innermost bracket."""
        frame = state.frames[-1]
        return BracketState((*state.frames[:-1], frame._replace(n=min(frame.n + 1, self.many))), state.n_bound)


# Targets as trees: the form that they are read in, and what of the training data bounds those that are written.

LARGEST = 10_000  # size of a tree that a model may write
DEEPER, LONGER = 2, 1.5  # than the deepest and the longest tree of the training data: what may be generated


def form_named(name: FormName) -> Form:
    """Return the form of a name that is not "auto"."""
    return SqlForm() if name == "sql" else FORMS[name]


def tree_of(form: Form, pair: Sentence) -> Symbols:
    """Return the target of a pair as it is learned."""
    if pair.target is None:
        raise TrellisworkError("expected pairs with targets to learn from, got a source alone; give its target")
    try:
        return form.read(pair.target)
    except TermError as error:
        raise DataError(pair.file or "pairs", f"{error}; correct the target", line=pair.line) from error


def opened_tree(form: Form, question: OpenedQuestion, tree: Symbols) -> Symbols:
    """Return a tree with the open names of its question; the order of conjuncts is that of open names, too.

    Args:
        form: The language of the trees.
        question: The question, with the names that it leaves open.
        tree: Symbols of the tree.

    Returns:
        The tree, rewritten.
    """
    return form.read(form.written(question.tree(tree))) if question.names else tree


def opened_pairs(
    pairs: Sequence[Sentence], form: Form, open_names: bool
) -> tuple[NameLexicon, list[Symbols], list[Symbols]]:
    """Return a lexicon of the names in some pairs, and the pairs with open names; without names, as they are.

    Args:
        pairs: Questions with their meanings.
        form: Form of targets.
        open_names: True to leave names open.

    Returns:
        The lexicon, the words of each question, and its tree.
    """
    trees, lexicon = [tree_of(form, pair) for pair in pairs], NameLexicon({})
    if open_names and form.name == "lambda":
        lexicon = NameLexicon.learned([(pair.words, tree) for pair, tree in zip(pairs, trees, strict=True)])
    opened = [lexicon.opened(pair.words) for pair in pairs]
    trees = [opened_tree(form, each, tree) for each, tree in zip(opened, trees, strict=True)]
    return lexicon, [each.words for each in opened], trees


def limits_of(trees: Sequence[Symbols]) -> dict[str, object]:
    """Return the arities of heads, the names that may stand alone, and the sizes that trees may have."""
    return {
        "arities": arities_in(trees),
        "alone": sorted(names_alone(trees)),
        "deepest": max(map(_depth, trees)) + 1 + DEEPER,
        "longest": int(LONGER * max(map(len, trees))) + 1,
    }


def check_limits(limits: StoredConfig) -> None:
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


def _is_size(given: object) -> bool:
    return type(given) is int and 0 <= given <= LARGEST


def _depth(tree: Symbols) -> int:
    """Return the deepest level of brackets."""
    depth = deepest = 0
    for symbol in tree:
        depth += (symbol == OPEN) - (symbol == CLOSE)
        deepest = max(deepest, depth)
    return deepest
