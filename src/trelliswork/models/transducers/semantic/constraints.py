"""What a tree in brackets may look like: brackets close, heads have their number of arguments, variables are bound.

The constraint is a pushdown machine: its state has a frame for each open bracket. What it lets through always reads as
the form that it was made for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from trelliswork.data import Vocabulary
from trelliswork.models.transducers.network import BEGIN, END, UNKNOWN
from trelliswork.models.transducers.semantic.forms import BESIDE, CLOSE, GROUP, OPEN, FormName
from trelliswork.nn.decoders.constraints import PrefixConstraint
from trelliswork.terms.brackets import BINDERS, LAMBDA

Arity = tuple[int, int | None]  # fewest and most arguments; None is any number
Arities = Mapping[str, Arity]
VARIABLE = "$"
TYPE = re.compile(r"[eti]|<.+>")
SPECIAL = (UNKNOWN, BEGIN, END)
MANY = 4  # items of a bracket: more are not counted


def arities_in(trees: Iterable[Sequence[str]]) -> dict[str, Arity]:
    """How many arguments each head of a bracket has: one number if it is always the same, else the fewest and more.

    >>> arities_in(["( and ( f x ) ( f y ) )".split(), "( and a b c )".split()])
    {'f': (1, 1), 'and': (2, None)}
    """
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for tree in trees:
        path: list[list[str]] = [[]]
        for symbol in tree:
            if symbol == OPEN:
                path.append([])
            elif symbol != CLOSE:
                path[-1].append(symbol)
            elif len(path) > 1:
                head, *arguments = path.pop() or [OPEN]
                seen[head].add(len(arguments))
                path[-1].append(OPEN)  # a bracket, as one item of that around it
    return {head: (min(each), max(each) if len(each) == 1 else None) for head, each in seen.items()}


class Frame(NamedTuple):
    """An open bracket, or the root: its head, how many items it has, and the variables that it binds."""

    head: str | None
    n: int
    bound: tuple[str, ...] = ()


class Open(NamedTuple):
    """The frames from the root to the innermost, and how many variables have been bound."""

    frames: tuple[Frame, ...]
    n_bound: int = 0


class BracketConstraint(PrefixConstraint):
    """Trees in brackets at most `deepest` - 1 levels deep, whose heads have the arities that are known.

    Lambda terms have one root; `lambda` and the binders introduce $0, $1, ... in this order, and no variable is free.
    """

    def __init__(self, symbols: Vocabulary, form: FormName, arities: Arities, deepest: int) -> None:
        super().__init__(len(symbols), symbols.index(END))
        self.form, self.arities, self.deepest = form, arities, deepest
        known = {name: i for i, name in enumerate(symbols) if name not in SPECIAL}
        self.names = {name: i for name, i in known.items() if name not in (OPEN, CLOSE)}
        self.types = {name: i for name, i in known.items() if TYPE.fullmatch(name)}
        self.many = 2 + max((most for _, most in arities.values() if most is not None), default=MANY)
        self.brackets = {name: symbols.index(name) for name in (OPEN, CLOSE) if name in symbols}

    def start(self, row: int) -> Hashable:
        return Open((Frame(None, 0),))

    def distance(self, state: Hashable) -> int:
        assert isinstance(state, Open)
        needed = sum(self._missing(frame) + 1 for frame in state.frames[1:])
        return needed + (state.frames[0].n == 0) + 1

    def _missing(self, frame: Frame) -> int:
        """How many items a bracket lacks at least."""
        if frame.n == 0:
            return 1
        least, _ = self._limits(frame)
        return max(0, least + 1 - frame.n)

    def _limits(self, frame: Frame) -> Arity:
        if self.form == "lambda" and frame.head == LAMBDA:
            return 3, 3
        least, most = self.arities.get(frame.head or "", (0, None))
        if self.form == "prolog":
            least = max(least, 2 if frame.head == BESIDE else 1)
        return (max(least, 2), most) if self._binds(frame.head) else (least, most)

    def _binds(self, head: str | None) -> bool:
        """Whether the first argument of a head is a variable that it binds."""
        return self.form == "lambda" and (head == LAMBDA or head in BINDERS)

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, Open)
        frame = state.frames[-1]
        found: dict[int, Hashable] = {}
        if len(state.frames) > 1 and not self._missing(frame) and CLOSE in self.brackets:
            found[self.brackets[CLOSE]] = state._replace(frames=state.frames[:-1])
        if self._is_full(state):
            return found
        if self._binds(frame.head) and frame.n == 1:
            return found | self._binding(state)
        if frame.head == LAMBDA and self.form == "lambda" and frame.n == 2:
            return found | dict.fromkeys(self.types.values(), self._more(state))
        return found | self._items(state)

    def _is_full(self, state: Open) -> bool:
        frame = state.frames[-1]
        if len(state.frames) == 1:
            return frame.n > 0 and self.form != "brackets"
        most = self._limits(frame)[1]
        return frame.n > 0 and most is not None and frame.n > most

    def _binding(self, state: Open) -> dict[int, Hashable]:
        """The next variable, which stays bound until the bracket closes."""
        name = f"{VARIABLE}{state.n_bound}"
        if name not in self.names:
            return {}
        frame = state.frames[-1]
        bound = Frame(frame.head, frame.n + 1, (*frame.bound, name))
        return {self.names[name]: Open((*state.frames[:-1], bound), state.n_bound + 1)}

    def _items(self, state: Open) -> dict[int, Hashable]:
        """A name, which is the head if it is the first of a bracket, or a bracket."""
        frame, found = state.frames[-1], dict[int, Hashable]()
        is_head = len(state.frames) > 1 and frame.n == 0
        bound = {name for each in state.frames for name in each.bound}
        for name, i in self.names.items():
            if self._may_stand(name, is_head, bound):
                found[i] = self._more(state, name if is_head else frame.head)
        if OPEN in self.brackets and len(state.frames) < self.deepest and (not is_head or self.form == "brackets"):
            inside = Frame(None, 0)
            found[self.brackets[OPEN]] = Open((*self._more(state).frames, inside), state.n_bound)
        return found

    def _may_stand(self, name: str, is_head: bool, bound: set[str]) -> bool:
        if self.form == "brackets":
            return True
        if is_head and name not in self.arities:
            return False
        if self.form == "lambda" and name.startswith(VARIABLE):
            return name in bound
        return is_head or name not in ((LAMBDA,) if self.form == "lambda" else (GROUP, BESIDE))

    def _more(self, state: Open, head: str | None = None) -> Open:
        """With one more item in the innermost bracket."""
        frame = state.frames[-1]
        more = Frame(head or frame.head, min(frame.n + 1, self.many), frame.bound)
        return state._replace(frames=(*state.frames[:-1], more))
