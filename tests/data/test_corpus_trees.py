"""The trees of the built-in corpus are trees, and say what its derivations say."""

from __future__ import annotations

from pathlib import Path

from trelliswork.data.corpus import builtin_corpus
from trelliswork.data.corpus.trees import constituents, dependencies, write_treebank, written

CORPUS = builtin_corpus(sizes=(60, 20, 20))


def test_every_word_has_a_way_to_the_one_root() -> None:
    for sentence in dependencies(CORPUS["train"]):
        heads = sentence.heads or ()
        assert heads.count(0) == 1
        for word in range(1, len(heads) + 1):
            for _ in heads:
                word = heads[word - 1] if word else 0
            assert word == 0
        assert "dep" not in (sentence.tags or ()), sentence


def test_words_of_a_phrase_hang_together() -> None:
    """A phrase has one word whose head is outside of it: its head."""
    for tree, phrases in zip(dependencies(CORPUS["dev"]), constituents(CORPUS["dev"]), strict=True):
        heads = tree.heads or ()
        for start, end, _ in phrases.brackets or ():
            outside = [i for i in range(start, end) if not start < heads[i] <= end]
            assert len(outside) == 1


def test_a_tree_by_hand() -> None:
    """The verb is the root, its subject and object hang from it, articles from their nouns."""
    for sentence in dependencies(CORPUS["train"]):
        tags, words = sentence.tags or (), sentence.words
        if tags[:2] == ("nsubj", "root") and words[2:3] == ("the",) and tags[3:4] == ("obj",):
            assert (sentence.heads or ())[:4] == (2, 0, 4, 2)
            return
    raise AssertionError("expected a sentence with a subject, a verb and an object among the first")


def test_files_say_the_same(tmp_path: Path) -> None:
    paths = write_treebank(CORPUS, tmp_path)
    assert sorted(path.name for path in paths) == sorted(f"{p}.{s}" for p in CORPUS for s in ("conllu", "mrg"))
    first = (tmp_path / "train.conllu").read_text("utf-8").split("\n\n")[0].splitlines()
    sentence = dependencies(CORPUS["train"])[0]
    assert first[1] == f"# text = {written(sentence.words)}"
    rows = [line.split("\t") for line in first[2:]]
    assert [int(row[6]) for row in rows] == list(sentence.heads or ())
    text = "".join(row[1] + ("" if "SpaceAfter=No" in row[9] else " ") for row in rows).strip()
    assert text == written(sentence.words)
    assert (tmp_path / "train.mrg").read_text("utf-8").count("\n") == 60
