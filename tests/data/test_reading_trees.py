"""Treebanks in CoNLL-U: what is read of them, and what is said about those that are damaged."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.oracles import dependencies as oracle
from trelliswork.data import Choices, Sentence, read_treebank
from trelliswork.data.treebank import is_projective, survey_treebank, tree_problem
from trelliswork.errors import DataError

ROWS = (
    "# newdoc id = d\n# sent_id = first\n# text = I don't sing\n"
    "1\tI\ti\tPRON\tPRP\t_\t4\tnsubj\t4:nsubj\t_\n"
    "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_\n"
    "3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_\n"
    "4\tsing\tsing\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No\n"
    "4.1\tit\tit\tPRON\tPRP\t_\t_\t_\t4:obj\t_\n"
    "\n# sent_id = second\n"
    "1\tStop\tstop\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "en.conllu"
    path.write_text(ROWS, encoding="utf-8")
    return path


def read(path: Path, **choices: object) -> list[Sentence]:
    return read_treebank(path, Choices(**choices))[1]  # type: ignore[arg-type]


def test_words_heads_labels_and_columns_are_read(file: Path) -> None:
    first, second = read(file)
    assert first.words == ("I", "do", "n't", "sing") and first.heads == (4, 4, 4, 0)
    assert first.tags == ("nsubj", "aux", "advmod", "root") and first.features == ()
    tags = {"UPOS": ("PRON", "AUX", "PART", "VERB"), "XPOS": ("PRP", "VBP", "RB", "VB")}
    assert first.columns == {"LEMMA": ("i", "do", "not", "sing"), **tags}
    assert [first.line_of(i) for i in range(4)] == [4, 6, 7, 8] and first.file == str(file)
    assert second.line == 12 and second.heads == (0,)


def test_columns_that_a_parser_reads_are_chosen_by_name(file: Path) -> None:
    format, sentences = read_treebank(file, Choices(feature_columns=("UPOS", 5)))
    assert sentences[0].features == (("PRON", "AUX", "PART", "VERB"), ("PRP", "VBP", "RB", "VB"))
    assert format.feature_columns == (4, 5) and format.tag_column == 8 and format.conllu
    with pytest.raises(DataError, match="HEAD is what a parser learns to find; leave it out"):
        read(file, feature_columns=("HEAD",))
    with pytest.raises(DataError, match="--tag-column is for taggers"):
        read(file, tag_column="UPOS")


def test_windows_line_ends_and_a_missing_last_line_end_are_no_obstacle(file: Path) -> None:
    file.write_bytes(ROWS.rstrip("\n").replace("\n", "\r\n").encode())
    assert [sentence.heads for sentence in read(file)] == [(4, 4, 4, 0), (0,)]


def test_a_treebank_without_labels_is_read(file: Path) -> None:
    file.write_text(re.sub(r"\t(nsubj|aux|advmod|root)\t", "\t_\t", ROWS), encoding="utf-8")
    assert read(file)[0].tags == ("_",) * 4


BROKEN = {
    "two roots": ("PRP\t_\t4", "PRP\t_\t0", 8, "expected one word with head 0, got 2: 1 'I'"),
    "no root": ("VB\t_\t0\troot\t_\tS", "VB\t_\t1\troot\t_\tS", 4, "got a cycle: 1 'I' -> 4 'sing' -> 1 'I'"),
    "own head": ("3\tn't\tnot\tPART\tRB\t_\t4", "3\tn't\tnot\tPART\tRB\t_\t3", 7, "got a cycle: 3 \"n't\" -> 3"),
    "out of range": ("PRP\t_\t4", "PRP\t_\t9", 4, r"expected heads in 0..4, as there are 4 words, got 9 for 'I'"),
    "negative": ("PRP\t_\t4", "PRP\t_\t-4", 4, "expected the number of a head in column 7, got '-4' for 'I'"),
    "no number": ("PRP\t_\t4", "PRP\t_\tfour", 4, "expected the number of a head in column 7, got 'four'"),
    "unannotated": ("PRP\t_\t4", "PRP\t_\t_", 4, "got _: the sentence is not annotated; annotate it, or leave it out"),
    "gap in ids": ("3\tn't", "5\tn't", 7, "expected word 3, got the id 5; number the words"),
    "odd id": ("3\tn't", "x\tn't", 7, "expected an id such as 3, 3-4 or 3.1, got 'x'"),
    "token of several": ("2-3\t", "3-4\t", 5, "expected the words of a token to follow it, got 3-4 before word 2"),
    "token too long": ("2-3\t", "2-7\t", 9, "expected 7 words, as a token of several says, got 4"),
    "empty node": ("4.1\t", "3.1\t", 9, "expected an empty node 4.1 behind word 4, got 3.1"),
    "no blank line": ("2\tdo\t", "1\tdo\t", 6, "expected a blank line before the first word of a sentence"),
    "nine columns": ("\t4:nsubj\t_\n", "\t_\n", 4, "expected the 10 columns of CoNLL-U, separated by tabs, got 9"),
    "empty word": ("1\tI\t", "1\t\t", 4, "expected a word, got an empty column; fill it in"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_damage_is_told_with_its_place_and_the_name_of_the_sentence(file: Path, name: str) -> None:
    before, after, line, told = BROKEN[name]
    assert before in ROWS
    file.write_text(ROWS.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:{line}: sentence first: ") and told in str(caught.value)
    first, second = survey_treebank(file)
    assert isinstance(first, DataError) and first.line == line and isinstance(second, Sentence)


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none.conllu").write_text("# sent_id = 1\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected at least one sentence, got none"):
        read(tmp_path / "none.conllu")


def test_trees_and_projective_trees_are_those_of_an_enumeration() -> None:
    for n in range(1, 6):
        trees, projective = oracle.trees(n, True), set(oracle.trees(n, True, projective=True))
        every = itertools.product(range(n + 1), repeat=n)
        assert [heads for heads in every if tree_problem(heads, "abcde"[:n]) is None] == trees
        assert {heads for heads in trees if is_projective(heads)} == projective


def test_a_real_treebank_has_the_counts_of_its_notes() -> None:
    path = Path(__file__).parents[2].parent / "shared/data/ud_english_ewt/en_ewt-ud-test.conllu"
    if not path.exists():
        pytest.skip(f"UD English-EWT not found at {path}")
    sentences = read(path)
    assert (len(sentences), sum(map(len, sentences))) == (2077, 25094)
    assert sum(not is_projective(sentence.heads or ()) for sentence in sentences) == 26
    assert list(survey_treebank(path)) == sentences
    assert set(sentences[0].columns) == {"LEMMA", "UPOS", "XPOS", "FEATS"}
