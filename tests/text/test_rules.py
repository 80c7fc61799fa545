"""The tokeniser of rules: what stays whole, what is cut, where sentences end, and where each token is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.text import RuleTokeniser, read_documents, tokenisation_scores, tokenise
from trelliswork.text.first_rules import FirstRules

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
        ("the 15-year term", ["the", "15-year", "term"]),
        ("Willem-Alexander van de N-VA", ["Willem-Alexander", "van", "de", "N-VA"]),
        ("non\u2011breaking co\u00adoperate rock-'n-roll", ["non\u2011breaking", "co\u00adoperate", "rock-'n-roll"]),
        ("de 27ste om 10.30 uur", ["de", "27ste", "om", "10.30", "uur"]),
        ("'s avonds in '98, 't is", ["'s", "avonds", "in", "'98", ",", "'t", "is"]),
        ("'No', she said", ["'", "No", "'", ",", "she", "said"]),
        ("1.000,50 tegen 3-2", ["1.000,50", "tegen", "3-2"]),
        ("Stadt- und Landkreis", ["Stadt-", "und", "Landkreis"]),
        ("yes - no -- or—maybe", ["yes", "-", "no", "--", "or", "—", "maybe"]),
        ("EE.UU. y J.-P. Belmondo", ["EE.UU.", "y", "J.-P.", "Belmondo"]),
        ("drs. P. en J. K. Rowling", ["drs.", "P.", "en", "J.", "K.", "Rowling"]),
        ("z.B. n.Chr. in\u00a0Rom", ["z.B.", "n.Chr.", "in", "Rom"]),
        ("https://x.org/a-b.html, heise.de.", ["https://x.org/a-b.html", ",", "heise.de", "."]),
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
        ("a_b x2 v1.2", ["a_b", "x2", "v1.2"]),
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
        ("Hij sprak met dhr. De Vries en mevr. Jansen.", 1),
        ("Am 3. Oktober kam Dr. Müller, am 27. november nicht.", 1),
        ("El Sr. González y la Sra. Ruiz viven en la C. Mayor núm. 3.", 1),
        ("Siehe Abs. 3 und Nr. 4 der Akte.", 1),
        ("He said no. Then he left.", 2),
        ("ALL CAPS. MORE CAPS", 2),
        ("it ended. nobody knew", 1),
        ("a line\u2028and more. The end", 2),
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


def test_the_rules_of_older_models() -> None:
    tokens = FirstRules().tokenise("Willem-Alexander won. Then dhr. De Vries left.")
    assert [[token.text for token in sentence] for sentence in tokens] == [
        ["Willem", "-", "Alexander", "won", "."],
        ["Then", "dhr", "."],
        ["De", "Vries", "left", "."],
    ]


@pytest.mark.parametrize("part", ["-", ".", "a.", '"', "x'", "1,", "a@", "a-", "J. ", "😀\u200d", "\n ", "www.", "-a."])
def test_a_long_repetition_is_read_in_linear_time(part: str) -> None:
    """Twenty thousand of them would take minutes if the work grew with the square."""
    text = part * 20_000
    tokens = [token for sentence in tokenise(text) for token in sentence]
    assert sum(len(token.text) for token in tokens) == sum(not each.isspace() for each in text)


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
