"""Which words may follow a prefix: Earley's algorithm, for any context-free grammar without empty rules.

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
from typing import TypeAlias

from trelliswork.errors import ConstraintError
from trelliswork.structures.grammar.rules import Rule, is_word, read_rules

Item: TypeAlias = tuple[int, int, int]  # rule, symbols of it that are read, the column in which it began
Column: TypeAlias = frozenset[Item]
Columns: TypeAlias = tuple[Column, ...]  # one for each prefix of what was read, the empty one first
NEVER = float("inf")


class PrefixGrammar:
    """The prefixes of a grammar's strings. A state has read a prefix; states are values, and steps make new ones.

    `words` are those that can be written; rules with others are left out. A grammar of no string is an error.
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
        self._by_left: defaultdict[str, list[int]] = defaultdict(list)
        for number, rule in enumerate(self.rules):
            self._by_left[rule.left].append(number)
        self.start: Columns = (self._closed({(rule, 0, 0) for rule in self._by_left[self.top]}, ()),)

    def following(self, state: Columns) -> set[str]:
        """The words that may come next."""
        found = (self._next(item) for item in state[-1])
        return {symbol[1:-1] for symbol in found if symbol is not None and is_word(symbol)}

    def is_complete(self, state: Columns) -> bool:
        """Whether what was read is a string of the grammar."""
        return any(
            self.rules[rule].left == self.top and at == len(self.rules[rule].right) and began == 0
            for rule, at, began in state[-1]
        )

    def step(self, state: Columns, word: str) -> Columns:
        """After one more word, which must be one that may follow."""
        quoted = (f"'{word}'", f'"{word}"')
        moved = {(rule, at + 1, began) for rule, at, began in state[-1] if self._next((rule, at, began)) in quoted}
        if not moved:
            known = ", ".join(sorted(self.following(state))[:8]) or "the end"
            raise ConstraintError(f"expected one of {known} after {len(state) - 1} words; got {word!r}")
        return (*state, self._closed(moved, state))

    def distance(self, state: Columns) -> float:
        """The fewest words that complete what was read."""
        after = self._after(state)
        return min(
            self._length(self.rules[rule].right[at:]) + after[self.rules[rule].left, began]
            for rule, at, began in state[-1]
        )

    def _after(self, state: Columns) -> dict[tuple[str, int], float]:
        """For each symbol that began in a column, the fewest words from its end to that of the string."""
        begun = {(self.rules[rule].left, began) for column in state for rule, _, began in column}
        waits = [
            ((symbol, here), self._length(self.rules[rule].right[at + 1 :]), (self.rules[rule].left, began))
            for here, column in enumerate(state)
            for rule, at, began in column
            if (symbol := self._next((rule, at, began))) is not None and (symbol, here) in begun
        ]
        found = dict.fromkeys(begun, NEVER) | {(self.top, 0): 0}
        changed = True
        while changed:
            changed = False
            for symbol, rest, around in waits:
                if rest + found[around] < found[symbol]:
                    found[symbol], changed = rest + found[around], True
        return found

    def _next(self, item: Item) -> str | None:
        rule, at, _ = item
        right = self.rules[rule].right
        return right[at] if at < len(right) else None

    def _length(self, symbols: Iterable[str]) -> float:
        return sum(1 if is_word(symbol) else self.lengths.get(symbol, NEVER) for symbol in symbols)

    def _closed(self, items: set[Item], before: Columns) -> Column:
        """With all that may begin here, and all that has ended here."""
        here, found, waiting = len(before), set(items), list(items)
        while waiting:
            rule, _, began = item = waiting.pop()
            symbol = self._next(item)
            if symbol is None:
                around = found if began == here else before[began]
                left = self.rules[rule].left
                new = [(r, a + 1, o) for r, a, o in list(around) if self._next((r, a, o)) == left]
            elif is_word(symbol):
                new = []
            else:
                new = [(number, 0, here) for number in self._by_left[symbol]]
            waiting += [each for each in new if each not in found]
            found.update(new)
        return frozenset(found)


def _written(rule: Rule, words: Container[str]) -> bool:
    return all(symbol[1:-1] in words for symbol in rule.right if is_word(symbol))


def _shortest(rules: Iterable[Rule]) -> dict[str, float]:
    """The fewest words that each symbol stands for."""
    rules, found = list(rules), dict[str, float]()
    changed = True
    while changed:
        changed = False
        for rule in rules:
            length = sum(1 if is_word(each) else found.get(each, NEVER) for each in rule.right)
            if length < found.get(rule.left, NEVER):
                found[rule.left], changed = length, True
    return found
