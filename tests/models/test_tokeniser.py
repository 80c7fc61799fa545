"""The trained tokeniser: a plain slow version of its scores, what it learns, and its folder."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import trelliswork as tw
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.tokenisers import CharacterTokeniser
from trelliswork.models.tokenisers.character_kernels import N_ATTRIBUTES
from trelliswork.models.tokenisers.learned_rules import MultiwordTable
from trelliswork.models.tokenisers.tokeniser import INSIDE, LABELS, Paragraphs
from trelliswork.text import Document, Token

TEXTS = [
    ("Ann didn't go. Bob (a dog) did!", [["Ann", "didn't", "go", "."], ["Bob", "(", "a", "dog", ")", "did", "!"]]),
    ("Mr. Lee left. So did Dr. Poe.", [["Mr.", "Lee", "left", "."], ["So", "did", "Dr.", "Poe", "."]]),
    ("Why? It isn't Ann.\n\nEnd", [["Why", "?"], ["It", "isn't", "Ann", "."], ["End"]]),
]
SETTINGS = LearningConfig(c2=0.05, max_iterations=40)


def documents() -> list[Document]:
    found = [Document.aligned(text, sentences) for text, sentences in TEXTS]
    for document in found:
        yield_words = tuple(tuple(with_words(token) for token in sentence) for sentence in document.sentences)
        object.__setattr__(document, "sentences", yield_words)
    return found


def with_words(token: Token) -> Token:
    split = token.text.endswith("n't")
    return Token(token.text, token.start, token.end, (token.text[:-3], "n't") if split else ())


@pytest.fixture(scope="module")
def tokeniser() -> CharacterTokeniser:
    return CharacterTokeniser.fit(documents(), SETTINGS)


def forms(sentences: list[list[Token]]) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in sentences]


def test_it_learns_its_texts(tokeniser: CharacterTokeniser) -> None:
    for text, sentences in TEXTS:
        assert forms(tokeniser.tokenise(text)) == sentences
    assert tokeniser.evaluate(documents())["score"] == 1


def test_places_are_those_of_the_text(tokeniser: CharacterTokeniser) -> None:
    text = "  😀 Ann \t didn't\ngo.\n \n\nשלום e\u0301! "
    tokens = [token for sentence in tokeniser.tokenise(text) for token in sentence]
    assert all(token.text == text[token.start : token.end] for token in tokens)
    assert "".join(token.text for token in tokens) == "".join(text.split())


@pytest.mark.parametrize("text", ["", " ", "\n\n\n"])
def test_text_without_characters(tokeniser: CharacterTokeniser, text: str) -> None:
    assert tokeniser.tokenise(text) == []


def test_line_breaks_are_white_space_and_blank_lines_end_sentences(tokeniser: CharacterTokeniser) -> None:
    assert forms(tokeniser.tokenise("Mr.\nLee left. So did Dr.\nPoe.")) == TEXTS[1][1]
    assert len(tokeniser.tokenise("Ann\n\nBob")) == 2


def test_scores_are_the_sums_of_the_weights(tokeniser: CharacterTokeniser) -> None:
    laid = Paragraphs.of("Ann didn't go.\n\nBob, a new dog, left!")
    crf, counts = tokeniser.crf, np.full(len(laid), N_ATTRIBUTES)
    expected = crf.emissions(crf.rows(laid.lengths, counts, laid.keys()))
    found = tokeniser.scores(laid)
    possible = np.isfinite(found)
    np.testing.assert_allclose(found[possible], expected[possible], rtol=1e-12)
    assert not possible[laid.before_space, INSIDE].any() and possible[~laid.before_space].all()


def test_the_best_labels_are_those_of_enumeration(tokeniser: CharacterTokeniser) -> None:
    text = "He go. A"
    laid = Paragraphs.of(text)
    scores, arcs = tokeniser.scores(laid), tokeniser.crf.parameters.transitions(tokeniser.crf.weights)
    paths = product(range(len(LABELS)), repeat=len(laid))
    best = max(paths, key=lambda y: sum(scores[t, y[t]] + (arcs[y[t - 1], y[t]] if t else 0) for t in range(len(y))))
    cut: list[list[str]] = [[]]
    word = ""
    for place, label in zip(laid.places.tolist(), best, strict=True):
        word += text[place]
        if label != INSIDE:
            cut[-1].append(word)
            word = ""
        if LABELS[label] == "sentence":
            cut.append([])
    assert forms(tokeniser.tokenise(text)) == cut[:-1]


def test_attributes_see_the_same_wherever_the_paragraph_is() -> None:
    alone = Paragraphs.of("Bob left! Why").keys().reshape(-1, N_ATTRIBUTES)
    behind = Paragraphs.of("Ann, too.\n\nBob  left!\tWhy").keys().reshape(-1, N_ATTRIBUTES)
    assert (behind[-len(alone) :] == alone).all()
    assert len({*alone.reshape(-1).tolist()}) > len(alone)


def test_words_without_spaces_are_learned() -> None:
    text = "我爱北京。我爱猫。猫爱北京。"
    gold = Document.aligned(text, [["我", "爱", "北京", "。"], ["我", "爱", "猫", "。"], ["猫", "爱", "北京", "。"]])
    tokeniser = CharacterTokeniser.fit([gold], SETTINGS)
    assert forms(tokeniser.tokenise("猫爱北京。我爱北京。")) == [["猫", "爱", "北京", "。"], ["我", "爱", "北京", "。"]]


def test_tokens_with_spaces_are_learned() -> None:
    gold = Document.aligned("10 000 fr, 20 000 fr", [["10 000", "fr", ",", "20 000", "fr"]])
    tokeniser = CharacterTokeniser.fit([gold] * 3, SETTINGS)
    assert tokeniser.spaces_inside
    assert forms(tokeniser.tokenise("20 000 fr, 10 000 fr")) == [["20 000", "fr", ",", "10 000", "fr"]]


def test_words_of_tokens(tokeniser: CharacterTokeniser) -> None:
    table = MultiwordTable.of(with_words(Token(each, 0, 9)) for each in ("didn't", "isn't", "can't", "won't"))
    assert table.words("DIDN'T") == ("DID", "N'T")
    assert table.words("Couldn't") == ("Could", "n't")  # by its ending
    assert table.words("paint") == ("paint",)
    french = MultiwordTable.of([Token("du", 0, 2, ("de", "le"))] * 2 + [Token("des", 0, 3)])
    assert french.words("Du") == ("De", "le") and french.words("des") == ("des",)
    assert [token.words for token in tokeniser.tokenise("Ann didn't go.")[0]][1] == ("did", "n't")


def test_a_folder_gives_the_same_tokeniser(tokeniser: CharacterTokeniser, tmp_path: Path) -> None:
    tokeniser.save(tmp_path / "t")
    again = tw.load(tmp_path / "t")
    assert isinstance(again, CharacterTokeniser)
    text = "Ann didn't. New couldn't? Yes"
    assert again.tokenise(text) == tokeniser.tokenise(text)
    assert again.predict([text])[0].value == forms(tokeniser.tokenise(text))
    assert again.describe().sections[0][1]["attributes"] == len(tokeniser.crf.index)


def test_a_damaged_folder(tokeniser: CharacterTokeniser, tmp_path: Path) -> None:
    tokeniser.save(tmp_path / "t")
    config = json.loads((tmp_path / "t" / "config.json").read_text("utf-8"))
    (tmp_path / "t" / "config.json").write_text(json.dumps(config | {"n_keys": 3}), "utf-8")
    with pytest.raises(ModelError, match=r"36 attributes expected, 3 found"):
        CharacterTokeniser.load(tmp_path / "t")


def test_nothing_to_learn_from() -> None:
    with pytest.raises(TrellisworkError, match="got none"):
        CharacterTokeniser.fit([])
