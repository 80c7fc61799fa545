"""Only the strings of a context-free grammar: what comes out always parses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from trelliswork.nn.decoders.constraints import PrefixConstraint
from trelliswork.structures.grammar.prefixes import NEVER, Prefix, PrefixGrammar


class GrammarConstraint(PrefixConstraint):
    """Only the strings of a grammar; `symbols` are the names of the symbols by number.

    `classes` say which word of the grammar a symbol stands for, if not for itself; with them, others are not written.

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
