"""Prefixes of a grammar against the enumeration of its strings."""

from __future__ import annotations

import pytest
import torch

from trelliswork.errors import ConstraintError
from trelliswork.nn.decoders.generation import GrammarConstraint
from trelliswork.structures.grammar.prefixes import PrefixGrammar
from trelliswork.structures.grammar.rules import is_word, read_rules

GRAMMARS = [
    "S -> 'a' S 'b' | 'a' 'b'",
    "S -> S S | 'a'\nS -> '(' S ')'",
    "S -> S '+' T | T\nT -> T '*' F | F\nF -> 'x' | '(' S ')'",
    "S -> A | B 'c'\nA -> B | 'a'\nB -> A | 'b' A",  # unary rules that go round
    "S -> 'a' N | 'b'\nN -> 'c' N",  # N has no string
]
LONGEST = 6


def strings_of(text: str) -> set[tuple[str, ...]]:
    """All strings up to a length, by rewriting the leftmost symbol."""
    rules = read_rules(text)
    found: set[tuple[str, ...]] = set()
    seen: set[tuple[str, ...]] = set()
    waiting: list[tuple[str, ...]] = [(rules[0].left,)]
    while waiting:
        form = waiting.pop()
        if form in seen or len(form) > LONGEST:
            continue
        seen.add(form)
        place = next((i for i, symbol in enumerate(form) if not is_word(symbol)), None)
        if place is None:
            found.add(tuple(symbol[1:-1] for symbol in form))
        else:
            waiting += [(*form[:place], *r.right, *form[place + 1 :]) for r in rules if r.left == form[place]]
    return found


@pytest.mark.parametrize("text", GRAMMARS)
def test_what_may_follow_and_how_far_the_end_is(text: str) -> None:
    strings, grammar = strings_of(text), PrefixGrammar(text)
    for prefix in {string[:n] for string in strings for n in range(len(string))}:
        state = grammar.start
        for word in prefix:
            state = grammar.step(state, word)
        longer = [string for string in strings if string[: len(prefix)] == prefix]
        following = {string[len(prefix)] for string in longer if len(string) > len(prefix)}
        distance = min(len(string) for string in longer) - len(prefix)
        assert grammar.is_complete(state) == (prefix in strings)
        assert grammar.distance(state) == distance
        if len(prefix) + 3 <= LONGEST:  # what follows later is not all enumerated
            assert grammar.following(state) >= following
        for word in grammar.following(state):
            after = len(prefix) + 1 + grammar.distance(grammar.step(state, word))
            assert (word in following) == (after <= LONGEST)


@pytest.mark.parametrize("text", GRAMMARS)
def test_generation_writes_every_string_and_no_other(text: str) -> None:
    strings = strings_of(text)
    words = sorted({word for string in strings for word in string})
    constraint = GrammarConstraint(PrefixGrammar(text, words=words), ["<end>", *words], end=0)
    found: set[tuple[str, ...]] = set()
    waiting: list[tuple[tuple[str, ...], torch.Tensor]] = [((), constraint.initial(1))]
    while waiting:
        prefix, state = waiting.pop()
        room = torch.tensor([[LONGEST + 1 - len(prefix)]])
        for symbol in constraint.allowed(state, room)[0, 0].nonzero().flatten().tolist():
            if symbol == 0:
                found.add(prefix)
            else:
                after = constraint.step(state, torch.tensor([[symbol]]))
                waiting.append(((*prefix, words[symbol - 1]), after))
    assert found == strings


def test_a_grammar_of_nothing_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="at least one string, got none from 'S'"):
        PrefixGrammar("S -> 'a' S")
    with pytest.raises(ConstraintError, match="at least one string"):
        PrefixGrammar("S -> 'a' 'b'", words=["a"])
    with pytest.raises(ConstraintError, match="expected one of a after 0 words; got 'b'"):
        PrefixGrammar("S -> 'a' 'b'").step(PrefixGrammar("S -> 'a' 'b'").start, "b")
    quoted = PrefixGrammar('S -> "it\'s"')
    assert quoted.following(quoted.start) == {"it's"}
