"""Trees in brackets: what is read, what is left out, what is refused, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from trelliswork.data.brackets import bracket_text, is_brackets, read_brackets, sentence_of, tree_of
from trelliswork.errors import DataError
from trelliswork.structures.grammar.tree import Tree

TEXT = """( (S (NP-SBJ-1 (-LRB- -LRB-) (PRP We)
      (-RRB- -RRB-)) (VP (VBP sleep) (NP=2 (-NONE- *T*-1))) (. .)))
(TOP (FRAG (CD 1\\/2))) ( (X (NN a)) (Y (NN b)) )
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "trees.mrg"
    path.write_text(text, encoding="utf-8")
    return path


def test_traces_functions_and_outer_brackets_are_left_out(tmp_path: Path) -> None:
    first, second, third = read_brackets(written(tmp_path, TEXT))
    assert first.words == ("(", "We", ")", "sleep", ".")
    assert first.tags == ("-LRB-", "PRP", "-RRB-", "VBP", ".")
    assert first.brackets == ((0, 5, "S"), (0, 3, "NP"), (3, 4, "VP"))
    assert (first.line, second.line, third.line) == (1, 3, 3)
    assert (second.words, second.brackets) == (("1/2",), ((0, 1, "TOP"), (0, 1, "FRAG")))
    assert third.brackets == ((0, 2, "TOP"), (0, 1, "X"), (1, 2, "Y"))


def test_functions_stay_if_asked_for(tmp_path: Path) -> None:
    first, *_ = read_brackets(written(tmp_path, TEXT), detail="functions")
    assert first.brackets == ((0, 5, "S"), (0, 3, "NP-SBJ-1"), (3, 4, "VP"))


def test_traces_are_words_if_asked_for(tmp_path: Path) -> None:
    first, *_ = read_brackets(written(tmp_path, TEXT), detail="traces")
    assert first.words == ("(", "We", ")", "sleep", "*T*-1", ".") and first.tags[4] == "-NONE-"  # type: ignore[index]
    assert first.brackets == ((0, 6, "S"), (0, 3, "NP-SBJ-1"), (3, 5, "VP"), (4, 5, "NP=2"))


def test_what_is_read_can_be_written_and_read_again(tmp_path: Path) -> None:
    sentences = list(read_brackets(written(tmp_path, TEXT)))
    lines = [bracket_text(tree_of(each.words, each.tags or (), each.brackets or ())) for each in sentences]
    assert lines[0] == "( (S (NP (-LRB- -LRB-) (PRP We) (-RRB- -RRB-)) (VP (VBP sleep)) (. .)))"
    again = list(read_brackets(written(tmp_path, "\n".join(lines))))
    assert [(a.words, a.tags, a.brackets) for a in again] == [(a.words, a.tags, a.brackets) for a in sentences]


def test_a_tree_may_be_thousands_of_nodes_deep(tmp_path: Path) -> None:
    text = "(S (NN a) " * 3000 + "(NN b)" + ")" * 3000
    (sentence,) = read_brackets(written(tmp_path, text))
    assert len(sentence) == 3001 and len(sentence.brackets or ()) == 3000
    tree = tree_of(sentence.words, sentence.tags or (), sentence.brackets or ())
    assert sentence_of(Tree.parse(bracket_text(tree))).brackets == sentence.brackets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "(S (NN a))\n(S (NN\n",
            r"trees.mrg:2: tree 2: expected every bracket to close, got 2 open at the end of the file",
        ),
        ("(S (NN a))\n)", r"trees.mrg:2: tree 2: expected '\(' at the beginning of a tree, got '\)'"),
        ("\nword (S (NN a))", r"trees.mrg:2: tree 1: expected '\(' at the beginning of a tree, got 'word'"),
        ("(S (NN a) ())", r"trees.mrg:1: tree 1: expected \(label child ...\), got an empty tree \(\)"),
        ("(S (NN a)\n (NP))", r"trees.mrg:2: .*got an empty tree \(NP\)"),
        ("(S (NP (-NONE- *)))", r"trees.mrg:1: tree 1: expected a tree with words, got .*none but traces"),
        (
            "(S a (NN b))",
            r"trees.mrg:1: tree 1: expected a tag in brackets around each word.*bare word 'S a'; add its tag",
        ),
        ("(S (NN a b))", r"trees.mrg:1: tree 1: expected a tag in brackets around each word.*'NN a'"),
        ("  \n", r"trees.mrg: expected trees in brackets, got none; the file is empty"),
    ],
)
def test_what_is_no_tree_is_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_brackets(written(tmp_path, text)))


def test_names_of_files() -> None:
    assert is_brackets("wsj.MRG") and is_brackets("wsj.ptb.gz") and not is_brackets("wsj.conllu")
