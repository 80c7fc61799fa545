"""Tokenising takes time that is linear in the length of a text, whatever it is made of."""

from __future__ import annotations

import time

import pytest

from trelliswork.models.tokenisers import LearnedRules
from trelliswork.text import RuleTokeniser, Tokeniser
from trelliswork.text.first_rules import FirstRules

LEARNED = LearnedRules.fit([["the", "long", "-", "term", "plan", "."], ["a", "short", "-", "lived", "one", "."]] * 3)
TOKENISERS = {"rules": RuleTokeniser(), "first rules": FirstRules(), "learned": LEARNED}
LENGTH = 12_000  # of the shorter text; the longer one has four times as many characters
# What a text begins with, what is repeated, and what it ends with.
TEXTS = {
    "dotted": ("", "a.b", ""), "one letter": ("", "a", ""), "spaces": ("", " ", ""),
    "around a line end": ("\n", " ", "x"),
    "at signs": ("", "@", ""), "mail chain": ("", "a@", ""), "long mail": (".", ".", "a@b.cc X"),
    "marks": ("", ".,;-'\"()", ""),
    "quotes": ("", '"', ""), "brackets": ("...", ")", " A"), "hyphens": ("", "x-", ""), "plus": ("", "+", ""),
    "initials": ("", "A.", ""), "times": ("", "1:", "1a"), "points": ("", "1.", "1a"), "Han": ("", "漢", ""),
    "accents": ("a", "\u0301", ""), "blank lines": ("", "\n \n", ""), "address": ("http://", ".", "x. A"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOKENISERS)
@pytest.mark.parametrize("kind", TEXTS)
def test_four_times_the_text_takes_about_four_times_as_long(name: str, kind: str) -> None:
    before, unit, behind = TEXTS[kind]
    short, long = (before + unit * (n // len(unit)) + behind for n in (LENGTH, 4 * LENGTH))
    assert seconds(TOKENISERS[name], long) < 12 * max(seconds(TOKENISERS[name], short), 0.01)


def seconds(tokeniser: Tokeniser, text: str) -> float:
    """The shorter time of two."""
    times = []
    for _ in range(2):
        began = time.process_time()
        tokeniser.tokenise(text)
        times.append(time.process_time() - began)
    return min(times)
