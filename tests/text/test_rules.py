"""The tokeniser of rules: what stays whole, what is cut, where sentences end, and where each token is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.text import RuleTokeniser, read_documents, tokenisation_scores, tokenise

FAMILY = "👨\u200d👩\u200d👧"


def forms(text: str) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in tokenise(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Jan woont in Brugge, zegt hij.", ["Jan", "woont", "in", "Brugge", ",", "zegt", "hij", "."]),
        ("(See www.x.org/a?b=1, now)", ["(", "See", "www.x.org/a?b=1", ",", "now", ")"]),
        ("mail ann.lee+x@uni-a.be!", ["mail", "ann.lee+x@uni-a.be", "!"]),
        ("@ann likes #nlp", ["@ann", "likes", "#nlp"]),
        ("$3,000.50 at 10:30", ["$", "3,000.50", "at", "10:30"]),
        ("the 15-year term", ["the", "15", "-", "year", "term"]),
        ("don't they're Ann's CAN'T", ["do", "n't", "they", "'re", "Ann", "'s", "CA", "N'T"]),
        ("l'homme qu’il d'État", ["l'", "homme", "qu’", "il", "d'", "État"]),
        ("O'Brien", ["O'Brien"]),
        (f"{FAMILY} 🇧🇪 👍🏽 1️⃣ :-) ok", [FAMILY, "🇧🇪", "👍🏽", "1️⃣", ":-)", "ok"]),
        ("e\u0301te\u0301!", ["e\u0301te\u0301", "!"]),
        ("我爱北京", ["我", "爱", "北", "京"]),
        ("これはペンです", ["こ", "れ", "は", "ペン", "で", "す"]),
        ("wait... what?!", ["wait", "...", "what", "?!"]),
        ("שלום, עולם", ["שלום", ",", "עולם"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("a_b x2 v1.2", ["a_b", "x2", "v1", ".", "2"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert [token for sentence in forms(text) for token in sentence] == expected


@pytest.mark.parametrize(
    ("text", "n_sentences"),
    [
        ("He came. She left.", 2),
        ('He said "Stop." Then he left.', 2),
        ("Dr. Lee met Mrs. Poe vs. Mr. J. Smith.", 1),
        ("The U.S. Senate voted.", 1),
        ("i.e. this one", 1),
        ("It costs 3.5 dollars.", 1),
        ("Really?! Yes.", 2),
        ("one\ntwo", 1),
        ("one\n\ntwo", 2),
        ("one \n \n two", 2),
        ("我爱北京。你呢？好！", 3),
        ("مرحبا بك؟ نعم.", 2),
        ("यह है। वह था।", 2),
        ("", 0),
        (" \n\n ", 0),
    ],
)
def test_sentences(text: str, n_sentences: int) -> None:
    assert len(forms(text)) == n_sentences


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_every_visible_character_is_in_one_token_at_its_place(text: str) -> None:
    tokens = [token for sentence in tokenise(text) for token in sentence]
    assert all(token.text == text[token.start : token.end] for token in tokens)
    assert all(left.end <= right.start for left, right in pairwise(tokens))
    covered = {place for token in tokens for place in range(token.start, token.end)}
    assert {place for place, each in enumerate(text) if not each.isspace()} <= covered


def test_a_treebank(ewt: Path) -> None:
    found = tokenisation_scores(RuleTokeniser(), read_documents(ewt / "en_ewt-ud-dev.conllu"))
    assert found["tokens"] > 96 and found["sentences"] > 78
