"""CoNLL columns: inference of the layout, reading, and errors that name the place."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trelliswork import reading as files
from trelliswork.data import (
    Choices,
    ColumnFormat,
    Sentence,
    columns,
    conll_text,
    infer_format,
    open_conll,
    read_conll,
)
from trelliswork.errors import DataError

Write = Callable[..., Path]

THREE = "The DT B-NP\nplan NN I-NP\nfailed VBD B-VP\n. . O\n\nShe PRP B-NP\nleft VBD B-VP\n"


def test_three_columns(write: Write) -> None:
    format, sentences = open_conll(write(THREE))
    assert format.describe() == "space-separated, 3 columns: word = 1, tag = 3 (IOB2), features = 2"
    first, second = sentences
    assert first.words == ("The", "plan", "failed", ".")
    assert first.tags == ("B-NP", "I-NP", "B-VP", "O")
    assert first.features == (("DT", "NN", "VBD", "."),)
    assert (first.line, second.line) == (1, 6)


def test_messy_but_legal(write: Write) -> None:
    text = "\ufeff-DOCSTART-\tO\r\n\r\nNew York\tB-LOC\r\n#\tO\r\n\t\r\n \t \r\n\r\n# 1\tO\r\nx\tI-LOC\r\n"
    path = write(text)
    assert infer_format(path) == ColumnFormat("\t", 2, 1, 2, (), "IOB2")
    assert [(s.words, s.line) for s in read_conll(path)] == [(("New York", "#"), 3), (("# 1", "x"), 8)]


def test_no_break_space_is_part_of_a_word(write: Write) -> None:
    (sentence,) = read_conll(write("1\u00a0000 CD\nx NN\n"))
    assert sentence.words == ("1\u00a0000", "x")


def test_runs_of_blanks(write: Write) -> None:
    path = write("The    DT\nplan\t NN \n")
    assert infer_format(path).describe() == "separated by white space, 2 columns: word = 1, tag = 2 (plain)"
    assert next(read_conll(path)).tags == ("DT", "NN")


def test_comments_only_where_they_cannot_be_tokens(write: Write) -> None:
    with_comments = write("# a comment of five words\nAnn B-PER\n\n# more to say\n# B-PER\n")
    assert [s.words for s in read_conll(with_comments)] == [("Ann",), ("#",)]
    only_tokens = write("# # B-NP\n5 CD I-NP\n")
    assert next(read_conll(only_tokens)).words == ("#", "5")


def test_gzip_and_standard_input(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = write(gzip.compress(THREE.encode()), "train.conll.gz")
    assert len(list(read_conll(packed))) == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(THREE.encode())))
    format, sentences = open_conll("-")
    assert format.n_columns == 3
    assert [s.file for s in sentences] == ["<stdin>", "<stdin>"]


def test_conllu(write: Write) -> None:
    def row(id_: str, word: str, upos: str) -> str:
        return "\t".join([id_, word, "_", upos, *"_" * 6]) + "\n"

    text = "# text = vámonos\n" + row("1-2", "vámonos", "_") + row("1", "vamos", "VERB") + row("2", "nos", "PRON")
    path = write(text + row("2.1", "ghost", "NOUN") + "\n", "x.conllu")
    format, sentences = open_conll(path)
    assert format.describe() == "CoNLL-U, tab-separated, 10 columns: word = 2, tag = 4 (plain)"
    assert [(s.words, s.tags) for s in sentences] == [(("vamos", "nos"), ("VERB", "PRON"))]
    assert next(open_conll(path, Choices(tag_column=1))[1]).tags == ("1", "2")
    broken = write(text + "3\tthree columns\tNOUN\n", "y.conllu")
    with pytest.raises(DataError, match=r"y\.conllu:5:3: expected 10 columns, got 3"):
        list(read_conll(broken))


def test_choices_win(write: Write) -> None:
    path = write(THREE)
    format = infer_format(path, Choices(tag_column=2, feature_columns=(), scheme="plain"))
    assert (format.tag_column, format.feature_columns, format.scheme) == (2, (), "plain")
    assert infer_format(path, Choices(tag_column=2)).feature_columns == (3,)
    with pytest.raises(DataError, match=r"expected the tag column in 1\.\.3, got 4"):
        infer_format(path, Choices(tag_column=4))


def test_without_tags(write: Write) -> None:
    words = write("Ann\nsings\n\nBob\n", "words.txt")
    assert [(s.words, s.tags) for s in read_conll(words, with_tags=False)] == [
        (("Ann", "sings"), None),
        (("Bob",), None),
    ]
    trained = ColumnFormat(" ", 3, 1, 3, (2,), "IOB2")
    for text in (THREE, "The DT\nplan NN\n"):
        sentence = next(read_conll(write(text), trained, with_tags=False))
        assert (sentence.words[:2], sentence.tags, sentence.features[0][:2]) == (("The", "plan"), None, ("DT", "NN"))
    with pytest.raises(DataError, match=r":1:1: expected 3 columns, got 1"):
        list(read_conll(words, trained, with_tags=False))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a DT O\nb NN\nc DT O\n", ":2:2: expected 3 columns, got 2"),
        ("a DT O\nb NN O O\nc DT O\n", ":2:4: expected 3 columns, got 4"),
        ("a\tO\n" * 20 + "b\n", ":21:1: expected 2 columns, got 1"),
        ("a\tO\n\tO\nb\tO\n", ":2:1: expected a word, got an empty column"),
        ("a\tx\tO\na\tx\t\n", ":2:3: expected a value, got an empty column"),
        ("", ": expected at least one sentence, got none"),
        ("\n \t\n", ": expected at least one sentence, got none"),
        ("-DOCSTART- O\n\n", ": expected at least one sentence, got none"),
        ("Ann\nsings\n", ": expected a word and a tag column, got 1 column"),
        (b"a O\n\xff\xfe O\n", ":2:1: expected UTF-8 text, got the byte 0xff"),
        (b"a O\n\x00\x01", ":2: expected UTF-8 text, got a binary"),
    ],
)
def test_bad_files(write: Write, content: str | bytes, message: str) -> None:
    path = write(content)
    with pytest.raises(DataError) as caught:
        list(read_conll(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_bad_paths(write: Write, tmp_path: Path) -> None:
    for path, message in [
        (tmp_path / "missing.conll", "no such file"),
        (tmp_path, "expected a file, got a folder"),
        (write(b"not gzip", "x.gz"), "not a whole gzip file"),
        (write(gzip.compress(THREE.encode() * 100)[:-20], "cut.gz"), "not a whole gzip file"),
    ]:
        with pytest.raises(DataError, match=message):
            list(read_conll(path))
    with pytest.raises(DataError, match="read only once"):
        infer_format("-")


def test_reading_is_streaming(write: Write) -> None:
    path = write("a DT\n\n" * 40_000 + "broken\n")  # the fault lies beyond the sample and is met only when reached
    sentences = read_conll(path)
    assert next(sentences).words == ("a",)
    with pytest.raises(DataError, match=r":80001:1: expected 2 columns, got 1"):
        list(sentences)


def test_text_round_trip(write: Write) -> None:
    sentence = Sentence(("New York", "sleeps"), ("B-LOC", "O"), (("NNP", "VBZ"),))
    (back,) = read_conll(write(conll_text(sentence)))
    assert (back.words, back.tags, back.features) == (sentence.words, sentence.tags, sentence.features)


def test_lines_of_tokens_where_some_are_skipped(write: Write) -> None:
    blank = "\t_" * 7
    text = f"# text = cannot go\n1-2\tcannot\t_{blank}\n1\tcan\t_{blank}\n# odd\n2\tnot\t_{blank}\n3\tgo\t_{blank}\n\n"
    (sentence,) = read_conll(write(text))
    assert [sentence.line_of(i) for i in range(3)] == [3, 5, 6]


@pytest.mark.parametrize("word", ["a\tb", "a\nb", "a\r"])
def test_words_that_columns_cannot_hold_are_not_torn_apart(word: str) -> None:
    sentence = Sentence(("fine", word), ("O", "O"), line=3, file="new.jsonl")
    with pytest.raises(DataError, match=r"new\.jsonl:3: columns cannot hold 'a.*; write JSON lines"):
        conll_text(sentence)


@pytest.mark.parametrize(
    ("name", "n_sentences", "n_tokens", "layout"),
    [
        ("conll2000/train.txt", 8936, 211727, "space-separated, 3 columns: word = 1, tag = 3 (IOB2), features = 2"),
        ("conll2000/test.txt", 2012, 47377, "space-separated, 3 columns: word = 1, tag = 3 (IOB2), features = 2"),
        ("wnut17/wnut17train.conll", 3394, 62730, "tab-separated, 2 columns: word = 1, tag = 2 (IOB2)"),
        ("wnut17/emerging.dev.conll", 1009, 15733, "tab-separated, 2 columns: word = 1, tag = 2 (IOB2)"),
        ("wnut17/emerging.test.annotated", 1287, 23394, "tab-separated, 2 columns: word = 1, tag = 2 (IOB2)"),
        (
            "ud_english_ewt/en_ewt-ud-dev.conllu",
            2001,
            25147,
            "CoNLL-U, tab-separated, 10 columns: word = 2, tag = 4 (plain)",
        ),
        (
            "ud_english_ewt/en_ewt-ud-train.conllu.gz",
            12544,
            204577,
            "CoNLL-U, tab-separated, 10 columns: word = 2, tag = 4 (plain)",
        ),
    ],
)
def test_public_corpora(shared_data: Path, name: str, n_sentences: int, n_tokens: int, layout: str) -> None:
    format, sentences = open_conll(shared_data / name)
    lengths = [len(sentence) for sentence in sentences]
    assert (len(lengths), sum(lengths)) == (n_sentences, n_tokens)
    assert format.describe() == layout


ODD_FILES = {
    "plain": "a X O\nb Y O\n\nc Z O\n",
    "mark and windows": "\ufeffa X O\r\nb Y O\r\n\r\n\r\nc Z O\r\n",
    "no end": "a X O\nb Y O",
    "blanks at ends": "a X O \nb Y O\n \t \nc Z O",
    "other blanks": "a\xa0b X O\nc Y O\n\n\u3000 X O\n",
    "tabs": "a b\tX\tO\nc\t \tO\n",
    "comments": "# one\na X O\n# two\nb Y O\n\n-DOCSTART- X O\n\nc Z O\n",
    "empty column": "a X O\nb  O\n",
    "short line": "a X O\nb Y\nc Z O\n",
    "long line": "a X O\nb Y Z O\n",
}


@pytest.mark.parametrize("name", ODD_FILES)
@pytest.mark.parametrize("with_tags", [True, False])
def test_sentences_read_at_once_are_those_read_token_by_token(
    name: str, with_tags: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "odd.conll"
    path.write_bytes(ODD_FILES[name].encode())

    def answer() -> object:
        try:
            return [(s, s.lines) for s in read_conll(path, with_tags=with_tags)]
        except DataError as error:
            return str(error)

    at_once = answer()
    monkeypatch.setattr(columns, "_regular", lambda *_: None)
    monkeypatch.setattr(
        files,
        "_decoded",
        lambda text, file, n: (files._decode(r, file, n + i) for i, r in enumerate(text.splitlines(True))),
    )
    assert answer() == at_once


@pytest.mark.parametrize("size", [1, 7, 1 << 17])
def test_groups_of_lines_leave_no_trace(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_AT_A_TIME", size)
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffone\ntwo é\n\nfour\r\n five".encode())
    lines = [(1, "one"), (2, "two é"), (3, ""), (4, "four"), (5, " five")]
    assert list(files.numbered_lines(path)) == lines


def test_the_scheme_of_tags_that_do_not_matter_is_not_looked_for(write: Write) -> None:
    path = write("Ann B-PER\nsings O\n\n" * 2000)
    assert infer_format(path).scheme == "IOB2"
    assert infer_format(path, with_tags=False).scheme is None
    assert sum(1 for _ in open_conll(path, with_tags=False)[1]) == 2000  # also behind the sampled lines


GERMEVAL = "#\thttp://x.org/a\t[2010-07-04]\t\n1\tUlm\tB-LOC\tO\n2\t#\tO\tO\n\n#\thttp://x.org/b [2009]\n1\tEin\tO\tO\n"


def test_comments_whose_last_columns_are_empty(write: Write) -> None:
    """GermEval 2014 names the source of each sentence in a line with an empty fourth column."""
    format, sentences = open_conll(write(GERMEVAL), Choices(word_column=2, tag_column=3))
    assert format.comments
    assert [each.words for each in sentences] == [("Ulm", "#"), ("Ein",)]


def test_a_hash_with_all_columns_is_a_token(write: Write) -> None:
    format, sentences = open_conll(write("#\tO\nwin\tO\n\n-DOCSTART-\tO\n\n#\tO\nAnn\tB-PER\n"))
    assert not format.comments
    assert [each.words for each in sentences] == [("#", "win"), ("#", "Ann")]


@pytest.mark.parametrize("delimiter", ["\t", " "])
def test_comments_of_sentences_in_two_columns(write: Write, delimiter: str) -> None:
    text = "# sent_id = 1\n# text = Ann sings #\nAnn B-PER\nsings O\n# O\n\n# sent_id = 2\nUlm B-LOC\n"
    lines = [line if "=" in line else line.replace(" ", delimiter) for line in text.split("\n")]
    _, sentences = open_conll(write("\n".join(lines)))
    assert [each.words for each in sentences] == [("Ann", "sings", "#"), ("Ulm",)]
