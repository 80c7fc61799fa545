"""Texts with known tokens: CoNLL-U with its white space, tokens beside a text, and offsets in other units."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.errors import DataError, TrellisworkError
from trelliswork.text import Document, Offsets, Token, Tokeniser, read_documents, tokenisation_scores


def line(ident: str, form: str, misc: str = "_") -> str:
    return "\t".join([ident, form, *["_"] * 7, misc])


SENTENCES = "\n".join([
    "# newdoc id = a", "# newpar", "# text = He didn't.", line("1", "He"), line("2-3", "didn't", "SpaceAfter=No"),
    line("2", "did"), line("3", "n't"), line("4", ".", "SpaceAfter=No"), "",
    "# sent_id = 2", line("1", "So"), line("1.1", "empty"), line("2", "what", r"SpacesAfter=\s\s"), "",
    "# newpar = x", line("1", "End"), "",
    "# newdoc", line("1", "New"), "", "",
])  # fmt: skip


def test_the_text_of_a_treebank(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(SENTENCES, encoding="utf-8")
    first, second = read_documents(tmp_path / "a.conllu")
    assert first.text.rstrip() == "He didn't.So what\n\nEnd" and second.text.rstrip() == "New"
    assert [[token.text for token in each] for each in first.sentences] == [
        ["He", "didn't", "."],
        ["So", "what"],
        ["End"],
    ]
    assert first.sentences[0][1] == Token("didn't", 3, 9, ("did", "n't"))
    for document in (first, second):
        assert all(document.text[t.start : t.end] == t.text for sentence in document.sentences for t in sentence)


def test_every_sentence_of_a_real_treebank_reads_as_its_text_says(ewt: Path) -> None:
    file = ewt / "en_ewt-ud-test.conllu"
    said = [each.removeprefix("# text = ") for each in file.read_text("utf-8").splitlines() if each[:9] == "# text = "]
    found = [doc.text[s[0].start : s[-1].end] for doc in read_documents(file) for s in doc.sentences]
    assert found == said


def test_a_line_that_is_not_conllu(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("1\tHe\tPRP\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.conllu:1.*10 columns of CoNLL-U.*got 3"):
        read_documents(tmp_path / "a.conllu")


def test_tokens_beside_their_text() -> None:
    found = Document.aligned(
        'He said: "No (x)!"\nBye', [["He", "said", ":", "``", "No", "-LRB-", "x", ")", "!", "''"], ["Bye"]]
    )
    assert [token.text for token in found.sentences[0]] == ["He", "said", ":", '"', "No", "(", "x", ")", "!", '"']
    assert found.sentences[1][0] == Token("Bye", 19, 22)
    assert Document.aligned("10 000 fr", [["10 000", "fr"]]).sentences[0][0] == Token("10 000", 0, 6)


def test_a_token_that_is_not_in_the_text() -> None:
    with pytest.raises(DataError, match=r"raw\.txt:2.*expected the token 'you', got 'they'"):
        Document.aligned("I\nthey", [["I", "you"]], "raw.txt")


@given(st.text(max_size=40), st.data())
def test_offsets(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    assert Offsets(text)[place] == place
    assert Offsets(text, "utf-16")[place] == len(text[:place].encode("utf-16-le", "surrogatepass")) // 2
    assert Offsets(text, "bytes")[place] == len(text[:place].encode("utf-8", "surrogatepass"))


def test_an_unknown_unit() -> None:
    with pytest.raises(TrellisworkError, match="code-points, utf-16, bytes; got 'words'"):
        Offsets("a", "words")


class Given:
    """A tokeniser that knows its answer."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def tokenise(self, text: str) -> list[list[Token]]:
        return [list(sentence) for sentence in self.document.sentences]


def test_scores() -> None:
    text = "a b. c"
    gold = Document.aligned(text, [["a", "b", "."], ["c"]])
    right: Tokeniser = Given(gold)
    assert tokenisation_scores(right, [gold]) == {"tokens": 100.0, "words": 100.0, "sentences": 100.0}
    found = tokenisation_scores(Given(Document.aligned(text, [["a", "b.", "c"]])), [gold])
    assert found["tokens"] == pytest.approx(100 * 2 * 2 / 7)
    assert found["sentences"] == 0


def test_words_count_by_their_letters() -> None:
    gold = Document("don't", ((Token("don't", 0, 5, ("do", "n't")),),))
    other = Document("don't", ((Token("don't", 0, 5, ("do", "not")),),))
    assert tokenisation_scores(Given(other), [gold])["words"] == 50


@pytest.mark.parametrize("ident", ["x", "1-y", "²"])
def test_ids_that_are_no_numbers(tmp_path: Path, ident: str) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text(f"{ident}\tAnn" + "\t_" * 8 + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.conllu:1: expected an id such as 3, 3-4 or 3\.1"):
        read_documents(path)
