"""Words that may follow a prefix: Earley's algorithm, for any context-free grammar without empty rules.

    >>> grammar = PrefixGrammar("S -> '(' S ')' 1\\nS -> 'a' 1\\nS -> S '+' S 1")
    >>> state = grammar.start
    >>> for word in "( a".split():
    ...     state = grammar.step(state, word)
    >>> sorted(grammar.following(state)), grammar.is_complete(state)
    ([')', '+'], False)

Earley (1970), An efficient context-free parsing algorithm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from trelliswork.errors import ConstraintError
from trelliswork.structures.grammar.rules import Rule, is_word, read_rules

Item: TypeAlias = tuple[int, int, int]  # rule, symbols of it that are read, the column in which it began


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The items behind one prefix.

    `after` has the fewest words from the end of a symbol that began here to that of the string; `distance` those from
    here.
    """

    items: frozenset[Item]
    after: dict[str, float]
    distance: float


class Prefix:
    """The words read so far: a column for each prefix of them, the empty one first. Equal if all items are."""

    __slots__ = ("_hash", "columns")

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._hash = hash((len(columns), columns[-1].items))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prefix) or self._hash != other._hash or len(self.columns) != len(other.columns):
            return False
        pairs = zip(reversed(self.columns), reversed(other.columns), strict=True)
        return all(one is two or one.items == two.items for one, two in pairs)


NEVER = float("inf")


class PrefixGrammar:
    """The prefixes of a grammar's strings. A state has read a prefix; states are values, and steps make new ones.

    `words` are those that can be written; rules with others are left out. A grammar of no string is an error.

    Args:
        rules: rules as text, or as (left, right, weight).
        start: the symbol that strings are made from; None for that of the first rule.
        words: words that can be written; None for all.
    """

    def __init__(self, rules: str | Iterable[Rule | tuple[str, tuple[str, ...], float]], start: str | None = None, *,
                 words: Container[str] | None = None):  # fmt: skip
        given = [rule for rule in read_rules(rules) if words is None or _written(rule, words)]
        if start is None and not given:
            raise ConstraintError("expected a grammar with at least one string of the words that are known; got none")
        self.top = given[0].left if start is None else start
        self.lengths = _shortest(given)
        if self.lengths.get(self.top, NEVER) == NEVER:
            raise ConstraintError(
                f"expected a grammar with at least one string, got none from {self.top!r}; "
                "add a rule that ends in words"
            )
        # symbols from which no string comes are never begun
        self.rules = [rule for rule in given if self._length(rule.right) < NEVER]
        self._rests = [[self._length(rule.right[at:]) for at in range(len(rule.right) + 1)] for rule in self.rules]
        self._by_left: defaultdict[str, list[int]] = defaultdict(list)
        for number, rule in enumerate(self.rules):
            self._by_left[rule.left].append(number)
        self.start = Prefix((self._close({(rule, 0, 0) for rule in self._by_left[self.top]}, ()),))

    def following(self, state: Prefix) -> set[str]:
        """Return the words that may come next."""
        symbols = (self._next(item) for item in state.columns[-1].items)
        return {symbol[1:-1] for symbol in symbols if symbol is not None and is_word(symbol)}

    def is_complete(self, state: Prefix) -> bool:
        """Return whether the words read are a string of the grammar."""
        return any(
            self.rules[rule].left == self.top and at == len(self.rules[rule].right) and began == 0
            for rule, at, began in state.columns[-1].items
        )

    def step(self, state: Prefix, word: str) -> Prefix:
        """Read one more word, which must be one that may follow."""
        quoted = (f"'{word}'", f'"{word}"')
        moved = {
            (rule, at + 1, began)
            for rule, at, began in state.columns[-1].items
            if self._next((rule, at, began)) in quoted
        }
        if not moved:
            known = ", ".join(sorted(self.following(state))[:8]) or "the end"
            raise ConstraintError(f"expected one of {known} after {len(state.columns) - 1} words; got {word!r}")
        return Prefix((*state.columns, self._close(moved, state.columns)))

    def distance(self, state: Prefix) -> float:
        """Return the fewest words that complete what was read."""
        return state.columns[-1].distance

    def _after(self, items: frozenset[Item], before: tuple[Column, ...]) -> dict[str, float]:
        """Return `after` of a new column, by that of the columns before it."""
        here, after, waits = len(before), dict[str, float](), list[tuple[str, float, str]]()
        if here == 0:
            after[self.top] = 0
        for rule, at, began in items:
            symbol, left = self._next((rule, at, began)), self.rules[rule].left
            if symbol is None or is_word(symbol):
                continue
            rest = self._rests[rule][at + 1]
            if began == here:
                waits.append((symbol, rest, left))
            else:
                after[symbol] = min(after.get(symbol, NEVER), rest + before[began].after[left])
        changed = True
        while changed:
            changed = False
            for symbol, rest, left in waits:
                if rest + after.get(left, NEVER) < after.get(symbol, NEVER):
                    after[symbol], changed = rest + after[left], True
        return after

    def _next(self, item: Item) -> str | None:
        rule, at, _ = item
        right = self.rules[rule].right
        return right[at] if at < len(right) else None

    def _length(self, symbols: Iterable[str]) -> float:
        return sum(1 if is_word(symbol) else self.lengths.get(symbol, NEVER) for symbol in symbols)

    def _close(self, items: set[Item], before: tuple[Column, ...]) -> Column:
        """Close the items: with all that may begin here, and all that has ended here."""
        here, closed, waiting = len(before), set(items), list(items)
        while waiting:
            rule, _, began = item = waiting.pop()
            symbol = self._next(item)
            if symbol is None:
                around = closed if began == here else before[began].items
                left = self.rules[rule].left
                new = [(r, a + 1, o) for r, a, o in list(around) if self._next((r, a, o)) == left]
            elif is_word(symbol):
                new = []
            else:
                new = [(number, 0, here) for number in self._by_left[symbol]]
            waiting += [each for each in new if each not in closed]
            closed.update(new)
        done = frozenset(closed)
        after = self._after(done, before)
        rests = (
            self._rests[rule][at] + (after if began == here else before[began].after)[self.rules[rule].left]
            for rule, at, began in done
        )
        return Column(done, after, min(rests))


def _written(rule: Rule, words: Container[str]) -> bool:
    return all(symbol[1:-1] in words for symbol in rule.right if is_word(symbol))


def _shortest(rules: Iterable[Rule]) -> dict[str, float]:
    """Return the fewest words that each symbol stands for."""
    rules, lengths = list(rules), dict[str, float]()
    changed = True
    while changed:
        changed = False
        for rule in rules:
            length = sum(1 if is_word(each) else lengths.get(each, NEVER) for each in rule.right)
            if length < lengths.get(rule.left, NEVER):
                lengths[rule.left], changed = length, True
    return lengths
