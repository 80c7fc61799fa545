"""A plausible text of tokens: which of them touch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.text.spacing import is_unspaced, plausible_text


def written(*sentences: str) -> str:
    return plausible_text([sentence.split(" ") for sentence in sentences]).text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Jan , Piet ( en An ) .", "Jan, Piet (en An)."),
        ('He said : " Go ! " and " no " .', 'He said: "Go!" and "no".'),
        ("`` Go , '' he said .", '"Go," he said.'),
        ("-LRB- see p. 3 -RRB-", "(see p. 3)"),
        ("Er sagt „ ja “ , und « nein » .", "Er sagt „ja“, und «nein»."),
        ("¿ Qué ? ¡ No !", "¿Qué? ¡No!"),
        ("I do n't know Ann 's dog", "I don't know Ann's dog"),
        ("l' homme d' État", "l'homme d'État"),
        ("gon na go for $ 10", "gonna go for $10"),
        ("' s avonds '", "'s avonds'"),
        ("我 爱 北京 。", "我爱北京。"),
        ("ฉัน รัก กรุงเทพ", "ฉันรักกรุงเทพ"),
        ("我 用 Python 写 。", "我用 Python 写。"),
    ],
)
def test_one_sentence(tokens: str, text: str) -> None:
    assert written(tokens) == text


def test_a_lone_hyphen_is_a_dash_if_words_have_hyphens_inside() -> None:
    cut, kept = "a long - term plan", "a well-known , half-baked one - or not"
    assert written(cut, cut, cut) == "\n\n".join(["a long-term plan"] * 3)
    assert written(kept, cut) == "a well-known, half-baked one - or not\n\na long - term plan"


def test_a_clitic_stands_alone_if_words_have_it_inside() -> None:
    dutch = ["foto's en auto's van Anna's oma", "'s avonds , om 's morgens"]
    assert written(*dutch).endswith("'s avonds, om 's morgens")
    assert written("it 's Ann 's") == "it's Ann's"


def test_sentences_and_places() -> None:
    document = plausible_text([["Ann", "left", "."], ["A", "headline"], ["Why", "?"]])
    assert document.text == "Ann left. A headline\n\nWhy?"
    for sentence in document.sentences:
        assert all(document.text[token.start : token.end] == token.text for token in sentence)


def test_some_sentences_of_a_large_file() -> None:
    document = plausible_text([["word", "."]] * 1000, most=700)
    assert 80 <= len(document.sentences) <= 110


def test_scripts_without_spaces() -> None:
    assert is_unspaced([["我", "爱", "Python"]]) and is_unspaced([["ペン", "です"]])
    assert not is_unspaced([["I", "love", "北京"]]) and not is_unspaced([["안녕", "세상"]]) and not is_unspaced([])


@given(st.lists(st.lists(st.text(max_size=4), max_size=8), max_size=5))
def test_any_tokens_are_in_the_text(sentences: list[list[str]]) -> None:
    document = plausible_text(sentences)
    tokens = [token for sentence in document.sentences for token in sentence]
    assert all(document.text[token.start : token.end] == token.text for token in tokens)


def test_a_lone_hyphen_of_results_stands_between_spaces_where_words_keep_theirs() -> None:
    results = [["Madrid", "83", "-", "Sevilla", "73"]] * 5
    words = [["el", "Marca-Betis", "y", "Rolls-Royce"], ["Euro-Sport", "gana"]] * 5
    assert plausible_text([*results, *words]).text.startswith("Madrid 83 - Sevilla 73")
