"""A constraint that allows only the strings of a context-free grammar, so that every generated string parses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from trelliswork.nn.decoders.constraints import PrefixConstraint
from trelliswork.structures.grammar.prefixes import NEVER, Prefix, PrefixGrammar


class GrammarConstraint(PrefixConstraint):
    """Allows only the strings of a grammar.

    Args:
        grammar: The grammar.
        symbols: Names of the output symbols by number.
        end: Number of the symbol that ends a string.
        classes: The word of the grammar that each symbol stands for; symbols without one are not allowed. By default
            each symbol stands for itself.

    >>> import torch
    >>> grammar = PrefixGrammar("S -> 'a' S 'b' | 'a' 'b'")
    >>> only = GrammarConstraint(grammar, ["<end>", "a", "b"], end=0)
    >>> only.allowed(only.initial(1), torch.tensor([[3]]))
    tensor([[[False,  True, False]]])
    """

    def __init__(
        self, grammar: PrefixGrammar, symbols: Sequence[str], end: int, classes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(len(symbols), end)
        self.grammar, self.numbers = grammar, defaultdict[str, list[int]](list)
        for i, name in enumerate(symbols):
            word = name if classes is None else classes.get(name)
            if i != end and word is not None:
                self.numbers[word].append(i)

    def start(self, row: int) -> Hashable:
        return self.grammar.start

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, Prefix)
        after = {word: self.grammar.step(state, word) for word in self.grammar.following(state)}
        return {number: state for word, state in after.items() for number in self.numbers.get(word, ())}

    def distance(self, state: Hashable) -> int | None:
        assert isinstance(state, Prefix)
        fewest = self.grammar.distance(state)
        return None if fewest == NEVER else int(fewest) + 1
