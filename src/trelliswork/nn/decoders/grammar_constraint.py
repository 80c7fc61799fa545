"""Only the strings of a context-free grammar: what comes out always parses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from trelliswork.nn.decoders.constraints import PrefixConstraint
from trelliswork.structures.grammar.prefixes import NEVER, PrefixGrammar


class GrammarConstraint(PrefixConstraint):
    """Only the strings of a grammar; `symbols` are the names of the symbols by number.

    >>> import torch
    >>> grammar = PrefixGrammar("S -> 'a' S 'b' | 'a' 'b'")
    >>> only = GrammarConstraint(grammar, ["<end>", "a", "b"], end=0)
    >>> only.allowed(only.initial(1), torch.tensor([[3]]))
    tensor([[[False,  True, False]]])
    """

    def __init__(self, grammar: PrefixGrammar, symbols: Sequence[str], end: int) -> None:
        super().__init__(len(symbols), end)
        self.grammar, self.numbers = grammar, {name: i for i, name in enumerate(symbols) if i != end}

    def start(self, row: int) -> Hashable:
        return self.grammar.start

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, tuple)
        words = self.grammar.following(state)
        return {self.numbers[word]: self.grammar.step(state, word) for word in words if word in self.numbers}

    def distance(self, state: Hashable) -> int | None:
        assert isinstance(state, tuple)
        fewest = self.grammar.distance(state)
        return None if fewest == NEVER else int(fewest) + 1
