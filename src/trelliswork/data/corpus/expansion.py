"""Random derivations of a grammar."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from trelliswork.data.corpus.derivation import Derivation
from trelliswork.data.corpus.grammar import Rule
from trelliswork.data.corpus.lexicon import OPEN, inflect, words

MAX_DEPTH = 14
GIVEN = "@"  # a kind that begins so is not drawn: `Expansion.given` makes it


@dataclass(frozen=True)
class Expansion:
    """Draws derivations and words; with `unseen`, held-out words are among them."""

    source: random.Random
    unseen: bool
    rules: Mapping[str, Sequence[Rule]]
    given: Callable[[str], Derivation] | None = None

    def tree(self, symbol: str, depth: int = 0) -> Derivation | None:
        """A random derivation of `symbol`, or None when it grows too deep."""
        label, _, kind = symbol.partition("/")
        if self.given is not None and kind.startswith(GIVEN):
            return self.given(kind.removeprefix(GIVEN))
        rules = self.rules.get(symbol)
        if rules is None:
            return Derivation(label, kind, word=self.word(label, kind))
        if depth > MAX_DEPTH:
            return None
        rule: Rule = self.source.choices(rules, [rule.weight for rule in rules])[0]
        children = []
        for child in rule.children:
            node = self.tree(child, depth + 1)
            if node is None:
                return None
            children.append(node)
        if len(children) == 1 and children[0].label == label:
            return children[0]  # a phrase over nothing but a phrase of its own label adds no structure
        return Derivation(label, kind, tuple(children), rule.head)

    def word(self, pos: str, kind: str) -> str:
        """A word of a kind in the form that a part of speech asks for."""
        choices = words(kind, self.unseen)
        word = self.source.choices(choices, cum_weights=_rank_weights(len(choices)))[0]
        return inflect(word, pos) if kind in OPEN else word


@cache
def _rank_weights(n: int) -> tuple[float, ...]:
    """Cumulative weights that fall with the rank, as word frequencies do."""
    total = 0.0
    cumulative = []
    for rank in range(n):
        total += (rank + 8) ** -0.7
        cumulative.append(total)
    return tuple(cumulative)
